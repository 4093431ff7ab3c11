"""Members of every kind against a coordinator whose writes are cut short, in any order of events.

The clients are simulated: they give up partitions when they get to it, lose answers, expire, come back;
their group moves to the consumer protocol and back. At no moment do two of them have one partition, and
when they are left in peace for a while, all partitions are consumed.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from kio.schema.errors import ErrorCode

from handler.config import GroupsConfig
from handler.groups.classic.machine import ClassicGroup
from handler.groups.classic.members import Join, JoinAnswer, Leaving, State, Sync, SyncAnswer
from handler.groups.consumer.machine import ConsumerGroup
from handler.groups.consumer.members import JOINING, LEAVING, LEAVING_FOR_A_WHILE, Beat, BeatAnswer
from handler.groups.coordinator import Coordinator
from handler.groups.machine import Now
from handler.groups.records import read_record
from handler.groups.records.subscription import read_parts, write_parts
from handler.groups.restored import restored
from handler.groups.shard import Group, NotLeading, Phase
from handler.groups.topics import TopicBook
from tests.support.memory_term_log import MemoryOffsets
from tests.support.memory_topics import MemoryTopics

Place = tuple[Any, int]  # topic id and partition

GROUP = "g"
SESSION = 45_000
NAMES = ("a", "b", "c")
ASK_AGAIN = (ErrorCode.not_coordinator, ErrorCode.coordinator_load_in_progress, ErrorCode.coordinator_not_available)


class Bench:
    """A coordinator of one shard, in an event loop that runs when it is told to, by a clock that is moved by hand."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.offsets = MemoryOffsets()
        self.topics = MemoryTopics()
        self.skew = 0.0
        self.run(self._begin())

    def run(self, work: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(work)

    async def _begin(self) -> None:
        config = GroupsConfig(initial_rebalance_delay_ms=0)
        self.coordinator = Coordinator(config, self.now, lambda name: name, TopicBook(self.topics), lambda key, value: None)
        self.coordinator.begin([("__consumer_offsets-0", self.offsets.open)])
        (self.shard,) = self.coordinator.shards
        self.shard.elect()
        await self._calm()

    def now(self) -> Now:
        clock = self.loop.time() + self.skew
        return Now(clock, int(clock * 1000))

    async def _calm(self) -> None:
        """Until the shard leads and nobody waits for topics."""
        for turn in range(2_000):
            await asyncio.sleep(0 if turn < 100 else 0.001)
            if self.shard.phase is Phase.LEADING and not self.coordinator.informed._queues and turn > 3:
                return
        raise AssertionError("the shard does not come to lead")

    def ask(self, question: Callable[[], None], refused: Callable[[ErrorCode], None]) -> None:
        """In the loop, until all that follows of it is done."""

        async def asked() -> None:
            self.coordinator.beat()
            try:
                question()
            except NotLeading as error:
                refused(error.error)
            await self._calm()

        self.run(asked())

    def pass_time(self, seconds: float) -> None:
        self.skew += seconds

        async def ticked() -> None:
            self.coordinator._beat_at = self.coordinator._awake_clock()
            for group_id in list(self.shard.groups):
                self.shard._tick(group_id)
            await self._calm()

        self.run(ticked())

    def refresh(self) -> None:
        """Twice: what is gone is believed when it is said again."""

        async def refreshed() -> None:
            for _ in range(2):
                needs = self.coordinator.consumers.needed(self.coordinator.shards)
                await self.coordinator.topics.refresh(needs)
                self.coordinator.consumers.refresh(self.coordinator.shards)
                await self._calm()

        self.run(refreshed())

    @property
    def group(self) -> Group | None:
        return self.shard.groups.get(GROUP)

    def close(self) -> None:
        self.run(self.coordinator.informed.close())
        self.shard.depose("end")
        self.run(asyncio.sleep(0))
        self.loop.close()


class NewClient:
    """Speaks the consumer protocol."""

    def __init__(self, bench: Bench, member_id: str, instance: str | None, topics: tuple[str, ...] | None, regex: str | None) -> None:
        self.bench = bench
        self.member_id = member_id
        self.instance = instance
        self.topics = topics
        self.regex = regex
        self.epoch = JOINING
        self.assigned: set[Place] = set()
        self.owned: set[Place] = set()
        self.tells_all = True
        self.gone = False

    def beat(self, *, lose_answer: bool = False) -> None:
        full = self.tells_all or self.epoch == JOINING
        owned: dict[Any, frozenset[int]] = {}
        for topic_id, index in self.owned:
            owned[topic_id] = owned.get(topic_id, frozenset()) | {index}
        request = Beat(
            self.member_id, self.epoch, self.instance, None, 60_000 if full else -1, self.topics if full else None,
            self.regex if full else None, None, owned, "client", "/h",
        )  # fmt: skip
        self.tells_all = lose_answer
        hear = (lambda answer: None) if lose_answer else self.hear
        self.bench.ask(lambda: self.bench.coordinator.consumers.heartbeat(request, GROUP, hear), lambda error: hear(BeatAnswer(error)))

    def hear(self, answer: BeatAnswer) -> None:
        if answer.error is ErrorCode.none:
            self.epoch = answer.epoch
            if answer.assignment is not None:
                self.assigned = {(topic_id, index) for topic_id, indexes in answer.assignment.items() for index in indexes}
                self.owned |= self.assigned
        elif answer.error in ASK_AGAIN:
            self.tells_all = True
        elif answer.error is ErrorCode.unreleased_instance_id:
            self.gone = True  # another has its place
        else:
            assert answer.error in (ErrorCode.fenced_member_epoch, ErrorCode.unknown_member_id, ErrorCode.fenced_instance_id), answer
            self.begin_again()
            self.gone = answer.error is ErrorCode.fenced_instance_id

    def begin_again(self) -> None:
        self.epoch, self.assigned, self.owned = JOINING, set(), set()

    def revoke(self) -> None:
        self.owned &= self.assigned

    def step(self) -> None:
        self.revoke()
        self.beat()

    def leave(self, epoch: int = LEAVING) -> None:
        request = Beat(self.member_id, epoch, self.instance, None, -1, None, None, None, None, "client", "/h")
        self.begin_again()
        self.gone = True
        self.bench.ask(lambda: self.bench.coordinator.consumers.heartbeat(request, GROUP, lambda _: None), lambda _: None)


class OldClient:
    """Speaks the classic protocol, and gives everything up before it joins again."""

    def __init__(self, bench: Bench, stem: str, topics: tuple[str, ...]) -> None:
        self.bench = bench
        self.stem = stem
        self.topics = topics
        self.member_id = ""
        self.generation = -1
        self.owned: set[Place] = set()
        self.waits = ""  # for which answer
        self.leads: tuple[str, ...] = ()  # these members, if it is the leader
        self.needs = "join"
        self.gone = False
        self._ids = itertools.count(1)

    def step(self) -> None:
        if self.waits:
            return
        if self.needs == "join":
            self.join()
        elif self.needs == "sync":
            self.sync()
        else:
            self.heartbeat()

    def join(self) -> None:
        self.owned = set()
        self.waits = "join"
        metadata = write_parts({}, 0)[:2] + write_names(self.topics)
        new_id = f"{self.stem}-{next(self._ids)}"
        request = Join(
            self.member_id, None, "client", "/h", SESSION, 60_000, "consumer", (("range", metadata),), True, False, new_id
        )  # fmt: skip
        self.bench.ask(lambda: self.bench.coordinator.join(request, GROUP, self.joined), lambda error: self.joined(JoinAnswer(error)))

    def joined(self, answer: JoinAnswer) -> None:
        self.waits = ""
        if answer.error is ErrorCode.none:
            self.member_id, self.generation, self.needs = answer.member_id, answer.generation, "sync"
            self.leads = tuple(member_id for member_id, _, _ in answer.members)
        elif answer.error is ErrorCode.member_id_required:
            self.member_id = answer.member_id
        else:
            self.refused(answer.error)

    def sync(self) -> None:
        self.waits = "sync"
        request = Sync(self.member_id, None, self.generation, "consumer", "range", self.parts())
        self.bench.ask(lambda: self.bench.coordinator.sync(request, GROUP, self.synced), lambda error: self.synced(SyncAnswer(error)))

    def parts(self) -> dict[str, bytes]:
        """As the leader it gives out what there is."""
        given: dict[str, dict[str, frozenset[int]]] = {member_id: {} for member_id in self.leads}
        for name in self.topics:
            for index in range(self.bench.topics.partitions.get(name, 0) if self.leads else 0):
                part = given[self.leads[index % len(self.leads)]]
                part[name] = part.get(name, frozenset()) | {index}
        return {member_id: write_parts(part, 0) for member_id, part in given.items()}

    def synced(self, answer: SyncAnswer) -> None:
        self.waits = ""
        if answer.error is ErrorCode.none:
            parts = read_parts(answer.assignment).partitions
            self.owned = {(self.bench.topics.topic_id(name), index) for name, indexes in parts.items() for index in indexes}
            self.needs = ""
        else:
            self.refused(answer.error)

    def heartbeat(self) -> None:
        def asked() -> None:
            error = self.bench.coordinator.heartbeat(GROUP, self.member_id, None, self.generation)
            if error is not ErrorCode.none:
                self.refused(error)

        self.bench.ask(asked, self.refused)

    def refused(self, error: ErrorCode) -> None:
        if error is ErrorCode.rebalance_in_progress:
            self.needs = "join"
        elif error in (ErrorCode.unknown_member_id, ErrorCode.illegal_generation, ErrorCode.fenced_instance_id):
            self.needs, self.owned = "join", set()
            self.member_id = self.member_id if error is ErrorCode.illegal_generation else ""
        else:
            assert error in ASK_AGAIN, error

    def revoke(self) -> None:
        """It does that when it joins."""

    def leave(self) -> None:
        self.owned, self.gone = set(), True
        leaving = [Leaving(self.member_id, None)]
        self.bench.ask(lambda: self.bench.coordinator.leave(GROUP, leaving, lambda _: None), lambda _: None)


def write_names(names: tuple[str, ...]) -> bytes:
    texts = b"".join(len(name).to_bytes(2) + name.encode() for name in names)
    return len(names).to_bytes(4) + texts + b"\xff\xff\xff\xff"


class Members(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.clients: list[NewClient | OldClient] = []
        self._ids = itertools.count(1)

    def teardown(self) -> None:
        try:
            self.settle()
        finally:
            self.bench.close()

    def one(self, choice: int) -> NewClient | OldClient:
        return self.clients[choice % len(self.clients)]

    # --- what happens

    @initialize(counts=st.tuples(*(st.integers(1, 4) for _ in NAMES)))
    def topics_are_there(self, counts: tuple[int, ...]) -> None:
        self.bench.topics.partitions |= dict(zip(NAMES, counts, strict=True))

    @precondition(lambda self: len(self.clients) < 6)
    @rule(topics=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True), instance=st.none() | st.sampled_from("xy"))
    def a_member_comes(self, topics: list[str], instance: str | None) -> None:
        known = next((one for one in self.clients if isinstance(one, NewClient) and one.instance == instance and not one.gone), None)
        if instance is None or known is None:
            self.clients.append(NewClient(self.bench, f"new-{next(self._ids)}", instance, tuple(topics), None))
            self.clients[-1].step()

    @precondition(lambda self: len(self.clients) < 6)
    @rule(regex=st.sampled_from(["a|b", "[bc]", ".*", "nothing"]))
    def a_member_comes_with_a_regex(self, regex: str) -> None:
        self.clients.append(NewClient(self.bench, f"new-{next(self._ids)}", None, None, regex))
        self.clients[-1].step()

    @precondition(lambda self: len(self.clients) < 6)
    @rule()
    def an_old_member_comes(self) -> None:
        self.clients.append(OldClient(self.bench, f"old-{next(self._ids)}", NAMES))
        self.clients[-1].step()

    @precondition(lambda self: self.clients)
    @rule(choice=st.integers(0, 5), lose_answer=st.booleans())
    def it_asks(self, choice: int, lose_answer: bool) -> None:
        client = self.one(choice)
        if isinstance(client, NewClient):
            client.beat(lose_answer=lose_answer)
        else:
            client.step()

    @precondition(lambda self: self.clients)
    @rule(choice=st.integers(0, 5))
    def it_revokes(self, choice: int) -> None:
        self.one(choice).revoke()

    @precondition(lambda self: self.clients)
    @rule(choice=st.integers(0, 5), topics=st.lists(st.sampled_from(NAMES), max_size=3, unique=True))
    def it_changes_its_mind(self, choice: int, topics: list[str]) -> None:
        client = self.one(choice)
        if isinstance(client, NewClient):
            client.topics, client.regex, client.tells_all = tuple(topics), "", True
            client.beat()

    @precondition(lambda self: self.clients)
    @rule(choice=st.integers(0, 5))
    def it_leaves(self, choice: int) -> None:
        self.one(choice).leave()

    @precondition(lambda self: self.clients)
    @rule(choice=st.integers(0, 5))
    def it_leaves_for_a_while_and_another_process_takes_its_place(self, choice: int) -> None:
        client = self.one(choice)
        if isinstance(client, NewClient) and client.instance is not None and client.epoch > 0:
            client.leave(LEAVING_FOR_A_WHILE)
            self.clients.append(NewClient(self.bench, f"new-{next(self._ids)}", client.instance, client.topics, client.regex))

    @precondition(lambda self: self.clients)
    @rule(choice=st.integers(0, 5))
    def it_vanishes(self, choice: int) -> None:
        self.one(choice).gone = True

    @rule(seconds=st.sampled_from([1, 20, 50]))
    def time_passes(self, seconds: int) -> None:
        self.bench.pass_time(seconds)

    @rule(name=st.sampled_from(NAMES))
    def a_topic_grows(self, name: str) -> None:
        if name in self.bench.topics.partitions and self.bench.topics.partitions[name] < 6:
            self.bench.topics.partitions[name] += 1
            self.bench.refresh()

    @rule(name=st.sampled_from(NAMES), stays_away=st.booleans())
    def a_topic_is_made_again(self, name: str, stays_away: bool) -> None:
        topics = self.bench.topics
        topics.generation[name] = topics.generation.get(name, 0) + 1
        topics.partitions.pop(name, None)
        if not stays_away:
            topics.partitions[name] = 2
        self.bench.refresh()

    @rule(records=st.integers(0, 12))
    def the_next_write_is_cut(self, records: int) -> None:
        self.bench.offsets.cut_next = records

    @rule()
    def the_term_ends(self) -> None:
        async def ended() -> None:
            self.bench.shard.restart("because")
            await self.bench._calm()

        self.bench.run(ended())

    # --- what always holds

    @invariant()
    def nobody_has_what_another_has(self) -> None:
        self.clients = [one for one in self.clients if not one.gone]
        group = self.bench.group
        if group is None:
            return
        taken: dict[Place, str] = {}
        for client in self.clients:
            if client.member_id in group.members:  # else it is out, and will hear of it
                for place in client.owned:
                    owner = taken.setdefault(place, client.member_id)
                    assert owner == client.member_id, f"{place} is {owner}'s and {client.member_id}'s"

    @invariant()
    def what_is_stored_is_what_is(self) -> None:
        """Another term would find the same."""
        group, shard = self.bench.group, self.bench.shard
        stored: dict[Any, Any] = {}
        for key_data, value_data in self.bench.offsets.stored:
            record = read_record(key_data, value_data)
            assert record is not None
            stored.pop(record.key, None)
            if record.value is not None:
                stored[record.key] = record.value
        found, leftovers = restored(GROUP, stored, shard.new_group, shard.new_consumer_group, self.bench.now())
        assert not leftovers
        if isinstance(group, ConsumerGroup) and group.epoch:
            assert isinstance(found, ConsumerGroup)
            assert found.facts.members == group.facts.members
            assert found.facts.targets == group.facts.targets
            assert found.facts.epoch == group.facts.epoch
            assert found.facts.target_epoch == group.facts.target_epoch
            assert not found.take_effects()
        elif isinstance(group, ClassicGroup) and group.state is State.STABLE:
            assert isinstance(found, ClassicGroup)
            assert found.members.keys() == group.members.keys()

    def settle(self) -> None:
        """Left in peace, all partitions come to be consumed."""
        self.bench.offsets.cut_next = None
        self.nobody_has_what_another_has()
        self.bench.pass_time(70)  # who vanished is out
        self.bench.pass_time(70)
        for _ in range(12):
            for client in [one for one in self.clients if not one.gone]:
                client.step()
            self.nobody_has_what_another_has()
            self.bench.pass_time(1)
        group = self.bench.group
        if not self.clients:
            return
        assert group is not None
        assert set(group.members) == {client.member_id for client in self.clients}
        consumed = [place for client in self.clients for place in client.owned]
        assert len(consumed) == len(set(consumed))
        expected = {
            (self.bench.topics.topic_id(name), index)
            for name in self.subscribed()
            for index in range(self.bench.topics.partitions.get(name, 0))
        }
        assert set(consumed) == expected
        only_old = all(isinstance(client, OldClient) for client in self.clients)
        assert isinstance(group, ClassicGroup if only_old else ConsumerGroup)

    def subscribed(self) -> set[str]:
        names: set[str] = set()
        for client in self.clients:
            names |= set(client.topics or ())
            if isinstance(client, NewClient) and client.regex:
                names |= self.bench.coordinator.topics.matching(client.regex)
        return names


Members.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestMembers = Members.TestCase
