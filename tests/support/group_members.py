"""A coordinator that runs when it is told to, and simulated members of both protocols."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from kafka_sidecar.config import GroupsConfig
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.coordination.term import Phase
from kafka_sidecar.groups.classic.members import (
    JoinResult,
    MemberIdentity,
    MemberJoin,
    MemberSync,
    SyncResult,
    sync_refused,
)
from kafka_sidecar.groups.consumer.members import (
    JOIN_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_MEMBER_EPOCH,
    HeartbeatResult,
    MemberHeartbeat,
)
from kafka_sidecar.groups.coordinator import Coordinator
from kafka_sidecar.groups.effects import Group
from kafka_sidecar.groups.records import read_record
from kafka_sidecar.groups.records.subscription import read_parts, write_parts
from kafka_sidecar.groups.topics_image import TopicsImage
from kafka_sidecar.groups.vocabulary import UNKNOWN_MEMBER_ID, Committer, Now
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.memory_term_log import MemoryOffsets
from tests.support.memory_topics import MemoryTopics

# A consumer that assigns its partitions itself commits so.
NO_MEMBER: Final = Committer(UNKNOWN_MEMBER_ID, None, -1)

T = TypeVar("T")

Place = tuple[Any, int]  # topic id and partition

GROUP = "g"
SESSION = 45_000
NAMES = ("a", "b", "c")
ASK_AGAIN = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class Bench:
    """A coordinator of one shard, in an event loop that runs when it is told to, by a clock that is moved by hand."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.offsets = MemoryOffsets()
        self.topics = MemoryTopics()
        self.skew = 0.0
        self._asking: set[asyncio.Task[None]] = set()
        self.run(self._begin())

    def run(self, work: Awaitable[Any]) -> Any:
        return self.loop.run_until_complete(work)

    async def _begin(self) -> None:
        config = GroupsConfig(initial_rebalance_delay_ms=0)
        image = TopicsImage(self.topics)
        self.coordinator = Coordinator(config, self.now, lambda name: name, image, lambda key, value: None)
        self.coordinator.begin([("__consumer_offsets-0", self.offsets.open)])
        (self.shard,) = self.coordinator.shards
        self.shard.term.elect()
        await self._calm()

    def now(self) -> Now:
        clock = self.loop.time() + self.skew
        return Now(clock, int(clock * 1000))

    async def _calm(self) -> None:
        """Until the shard leads and nobody waits for topics."""
        for turn in range(2_000):
            await asyncio.sleep(0 if turn < 100 else 0.001)
            if self.shard.term.phase is Phase.LEADING and self.coordinator.awaiting_topics.is_idle and turn > 9:
                return
        raise AssertionError("the shard does not come to lead")

    def ask(self, question: Awaitable[T], hear: Callable[[T], object], refused: Callable[[ErrorCode], object]) -> None:
        """Until all that follows of it is done. The answer may come later."""

        async def asked() -> None:
            try:
                hear(await question)
            except CoordinatorError as error:
                refused(error.error)

        async def ask() -> None:
            self.coordinator.beat()
            asking = self.loop.create_task(asked())
            self._asking.add(asking)
            asking.add_done_callback(self._asking.discard)
            await self._calm()
            if asking.done():
                asking.result()

        self.run(ask())

    def answer(self, question: Awaitable[T], refused: Callable[[ErrorCode], T]) -> T:
        """What is answered at once."""
        answers: list[T] = []
        self.ask(question, answers.append, lambda error: answers.append(refused(error)))
        (answer,) = answers
        return answer

    def pass_time(self, seconds: float) -> None:
        self.skew += seconds

        async def ticked() -> None:
            self.coordinator.shards._beat_at = self.coordinator.shards._awake_clock()
            for group_id in list(self.shard.groups):
                self.shard._tick(group_id)
            await self._calm()

        self.run(ticked())

    def refresh(self) -> None:
        """Twice: what is gone is believed when it is said again."""

        async def refreshed() -> None:
            for _ in range(2):
                with contextlib.suppress(Unavailable):
                    await self.coordinator.topics.refresh(
                        lambda: self.coordinator.consumer_groups.all_required_topics(self.coordinator.shards)
                    )
                self.coordinator.consumer_groups.refresh(self.coordinator.shards)
                await self._calm()

        self.run(refreshed())

    @property
    def group(self) -> Group | None:
        return self.shard.groups.get(GROUP)

    def stored(self) -> dict[Any, Any]:
        """What the log says, in the order of the last writes."""
        found: dict[Any, Any] = {}
        for key, value in self.offsets.stored:
            record = read_record(key, value)
            assert record is not None
            found.pop(record.key, None)
            if record.value is not None:
                found[record.key] = record.value
        return found

    def close(self) -> None:
        self.shard.term.depose("end")
        self.run(self._end())
        self.loop.close()

    async def _end(self) -> None:
        for asking in self._asking:
            asking.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)


class NewClient:
    """Speaks the consumer protocol."""

    def __init__(
        self, bench: Bench, member_id: str, instance: str | None, topics: tuple[str, ...] | None, regex: str | None
    ) -> None:
        self.bench = bench
        self.member_id = member_id
        self.instance = instance
        self.topics = topics
        self.regex = regex
        self.epoch = JOIN_GROUP_MEMBER_EPOCH
        self.assigned: set[Place] = set()
        self.owned: set[Place] = set()
        self.tells_all = True
        self.gone = False

    def beat(self, *, lose_answer: bool = False) -> None:
        full = self.tells_all or self.epoch == JOIN_GROUP_MEMBER_EPOCH
        owned: dict[Any, frozenset[int]] = {}
        for topic_id, index in self.owned:
            owned[topic_id] = owned.get(topic_id, frozenset()) | {index}
        request = MemberHeartbeat(
            self.member_id,
            self.epoch,
            self.instance,
            None,
            60_000 if full else -1,
            self.topics if full else None,
            self.regex if full else None,
            None,
            owned,
            "client",
            "/h",
        )
        self.tells_all = lose_answer
        hear = (lambda answer: None) if lose_answer else self.hear
        self.bench.ask(
            self.bench.coordinator.consumer_groups.heartbeat(request, GROUP),
            hear,
            lambda error: hear(HeartbeatResult(error)),
        )

    def hear(self, answer: HeartbeatResult) -> None:
        if answer.error is ErrorCode.NONE:
            self.epoch = answer.epoch
            if answer.assignment is not None:
                self.assigned = {
                    (topic_id, index) for topic_id, indexes in answer.assignment.items() for index in indexes
                }
                self.owned |= self.assigned
        elif answer.error in ASK_AGAIN:
            self.tells_all = True
        elif answer.error is ErrorCode.UNRELEASED_INSTANCE_ID:
            self.gone = True  # another has its place
        else:
            assert answer.error in (
                ErrorCode.FENCED_MEMBER_EPOCH,
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.FENCED_INSTANCE_ID,
            ), answer
            self.begin_again()
            self.gone = answer.error is ErrorCode.FENCED_INSTANCE_ID

    def begin_again(self) -> None:
        self.epoch, self.assigned, self.owned = JOIN_GROUP_MEMBER_EPOCH, set(), set()

    def revoke(self) -> None:
        self.owned &= self.assigned

    def step(self) -> None:
        self.revoke()
        self.beat()

    def leave(self, epoch: int = LEAVE_GROUP_MEMBER_EPOCH) -> None:
        request = MemberHeartbeat(
            self.member_id, epoch, self.instance, None, -1, None, None, None, None, "client", "/h"
        )
        self.begin_again()
        self.gone = True
        self.bench.ask(self.bench.coordinator.consumer_groups.heartbeat(request, GROUP), lambda _: None, lambda _: None)


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
        self.required_topics = "join"
        self.gone = False
        self._ids = itertools.count(1)

    def step(self) -> None:
        if self.waits:
            return
        if self.required_topics == "join":
            self.join()
        elif self.required_topics == "sync":
            self.sync()
        else:
            self.heartbeat()

    def join(self) -> None:
        self.owned = set()
        self.waits = "join"
        metadata = write_parts({}, 0)[:2] + write_names(self.topics)
        new_id = f"{self.stem}-{next(self._ids)}"
        request = MemberJoin(
            self.member_id,
            None,
            "client",
            "/h",
            SESSION,
            60_000,
            "consumer",
            (("range", metadata),),
            True,
            False,
            new_id,
        )
        self.bench.ask(
            self.bench.coordinator.join(request, GROUP), self.joined, lambda error: self.joined(JoinResult(error))
        )

    def joined(self, answer: JoinResult) -> None:
        self.waits = ""
        if answer.error is ErrorCode.NONE:
            self.member_id, self.generation, self.required_topics = answer.member_id, answer.generation, "sync"
            self.leads = tuple(member_id for member_id, _, _ in answer.members)
        elif answer.error is ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        else:
            self.refused(answer.error)

    def sync(self) -> None:
        self.waits = "sync"
        request = MemberSync(self.member_id, None, self.generation, "consumer", "range", self.parts())
        self.bench.ask(self.bench.coordinator.sync(request, GROUP), self.synced, self.sync_refused)

    def parts(self) -> dict[str, bytes]:
        """As the leader it gives out what there is."""
        given: dict[str, dict[str, frozenset[int]]] = {member_id: {} for member_id in self.leads}
        for name in self.topics:
            for index in range(self.bench.topics.partitions.get(name, 0) if self.leads else 0):
                part = given[self.leads[index % len(self.leads)]]
                part[name] = part.get(name, frozenset()) | {index}
        return {member_id: write_parts(part, 0) for member_id, part in given.items()}

    def synced(self, answer: SyncResult) -> None:
        self.waits = ""
        if answer.error is ErrorCode.NONE:
            parts = read_parts(answer.assignment).partitions
            self.owned = {
                (self.bench.topics.topic_id(name), index) for name, indexes in parts.items() for index in indexes
            }
            self.required_topics = ""
        else:
            assert answer.error is not ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "Java dies of it here"
            self.refused(answer.error)

    def sync_refused(self, error: ErrorCode) -> None:
        """While the log is read, SyncGroup is answered as a14 does."""
        self.synced(sync_refused(error))

    def heartbeat(self) -> None:
        async def asked() -> ErrorCode:
            return self.bench.coordinator.heartbeat(GROUP, self.member_id, None, self.generation)

        self.bench.ask(asked(), lambda error: None if error is ErrorCode.NONE else self.refused(error), self.refused)

    def refused(self, error: ErrorCode) -> None:
        if error is ErrorCode.REBALANCE_IN_PROGRESS:
            self.required_topics = "join"
        elif error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID):
            self.required_topics, self.owned = "join", set()
            self.member_id = self.member_id if error is ErrorCode.ILLEGAL_GENERATION else ""
        else:
            assert error in ASK_AGAIN, error

    def revoke(self) -> None:
        """It does that when it joins."""

    def leave(self) -> None:
        self.owned, self.gone = set(), True
        leaving = [MemberIdentity(self.member_id, None)]
        self.bench.ask(self.bench.coordinator.leave(GROUP, leaving), lambda _: None, lambda _: None)


def write_names(names: tuple[str, ...]) -> bytes:
    texts = b"".join(len(name).to_bytes(2) + name.encode() for name in names)
    return len(names).to_bytes(4) + texts + b"\xff\xff\xff\xff"
