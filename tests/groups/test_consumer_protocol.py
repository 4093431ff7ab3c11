"""Members of every kind against a coordinator whose writes are cut short, in any order of events.

The clients are simulated: they give up partitions when they get to it, lose answers, expire, come back;
their group moves to the consumer protocol and back. At no moment do two of them have one partition, and
when they are left in peace for a while, all partitions are consumed.
"""

from __future__ import annotations

import itertools

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kafka_sidecar.groups.classic.machine import ClassicGroup
from kafka_sidecar.groups.classic.state import State
from kafka_sidecar.groups.consumer.machine import ConsumerGroup
from kafka_sidecar.groups.consumer.members import LEAVE_GROUP_STATIC_MEMBER_EPOCH
from kafka_sidecar.groups.restored import restored
from tests.support.group_members import GROUP, NAMES, Bench, NewClient, OldClient, Place


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
    @rule(
        topics=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True),
        instance=st.none() | st.sampled_from("xy"),
    )
    def a_member_comes(self, topics: list[str], instance: str | None) -> None:
        known = next(
            (one for one in self.clients if isinstance(one, NewClient) and one.instance == instance and not one.gone),
            None,
        )
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
            client.leave(LEAVE_GROUP_STATIC_MEMBER_EPOCH)
            self.clients.append(
                NewClient(self.bench, f"new-{next(self._ids)}", client.instance, client.topics, client.regex)
            )

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

    @rule(away=st.booleans())
    def pulsar_is_away_or_back(self, away: bool) -> None:
        self.bench.topics.unavailable = away
        self.bench.refresh()

    @rule(records=st.integers(0, 12))
    def the_next_write_is_cut(self, records: int) -> None:
        self.bench.offsets.cut_next = records

    @rule()
    def the_term_ends(self) -> None:
        """And the next one knows nothing of topics."""

        async def ended() -> None:
            book = self.bench.coordinator.topics
            book._topics, book._names, book._matching = {}, {}, {}
            book._version += 1
            self.bench.shard.term.restart("because")
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
        found, leftovers = restored(
            GROUP, self.bench.stored(), shard.new_group, shard.new_consumer_group, self.bench.now()
        )
        assert not leftovers
        if isinstance(group, ConsumerGroup) and group.epoch:
            assert isinstance(found, ConsumerGroup)
            assert found.group_state.members == group.group_state.members
            assert found.group_state.targets == group.group_state.targets
            assert found.epoch == group.epoch
            assert group.group_state.epoch.metadata_hash in (
                found.group_state.epoch.metadata_hash,
                0,
            )  # 0: it is to be assigned anew
            assert found.group_state.regexes == group.group_state.regexes
            assert found.group_state.static == group.group_state.static
            assert found.group_state.target_epoch == group.group_state.target_epoch
            assert not found.take_effects()
        elif isinstance(group, ClassicGroup) and group.state is State.STABLE:
            assert isinstance(found, ClassicGroup)
            assert found.members.keys() == group.members.keys()

    def settle(self) -> None:
        """Left in peace, all partitions come to be consumed."""
        self.bench.offsets.cut_next = None
        self.bench.topics.unavailable = False
        self.bench.refresh()
        self.nobody_has_what_another_has()
        for _ in range(
            3
        ):  # the first members are waited for once more, who vanished does not sync, and its session ends
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


Members.TestCase.settings = settings(max_examples=150, stateful_step_count=40)
TestMembers = Members.TestCase
