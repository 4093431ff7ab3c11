"""`__kept_states`, modelled: an internal topic that the broker compacts while sidecars read it, and the real store over
it.

Its connections are cut, SENDs of it hang or are never answered, and its admin API fails, as often as a plan says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from dataclasses import replace
from typing import Any, Final, cast

from kafka_sidecar.internal_topics.snapshot_topic import SnapshotTopic
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.pulsar.admin import PulsarAdmin
from kafka_sidecar.pulsar.client import PulsarClient
from kafka_sidecar.pulsar.entry import CompactionStats, LogStats, Position, RawEntry
from kafka_sidecar.pulsar.errors import TopicMissing, Unavailable
from kafka_sidecar.pulsar.events import ConsumerEvents, ProducerEvents
from kafka_sidecar.pulsar.messages import Message, read_messages
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from tests.model.conduct import NOBODYS, Caller
from tests.model.connections import Reader, Writer
from tests.model.topic import Topic
from tests.simulation.chance import Chance
from tests.simulation.conduct import DrawnCaller, DrawnConduct, DrawnWay
from tests.simulation.plan import Bounds

# Until a SEND lands that hangs. A store waits for ten seconds.
HANGS_SECONDS: Final = (0.5, 3.0, 15.0, 60.0)
COMPACTS_AFTER_SECONDS: Final = (2.0, 10.0, 40.0)
COMPACTION_SECONDS: Final = (0.01, 0.5, 3.0)


class SnapshotLog(Topic):
    def __init__(self, loop: asyncio.AbstractEventLoop, chance: Chance, bounds: Bounds) -> None:
        self._chance = chance.apart("kept")
        snapshot_bounds = replace(
            bounds,
            lost_receipts=0.0,
            refused_sends=0.0,
            failed_questions=bounds.failed_values,
            orphans=0.0,
            slow_stores=0.0,
        )
        self._drawn = DrawnConduct(loop, self._chance, snapshot_bounds)
        super().__init__(self._drawn)
        self.is_there = False
        self._loop = loop
        self._draw = self._chance.of("compaction")
        self._left_out: set[Position] = set()  # entries that compaction has left out
        self.compacted_to: Position | None = None
        self.compactions = 0
        self._gives_back = self._chance.of("retention").random() < 0.5  # what is compacted, at once
        self._compacts_soon()

    @property
    def is_calm(self) -> bool:
        return self._drawn.is_calm

    @is_calm.setter
    def is_calm(self, is_calm: bool) -> None:
        self._drawn.is_calm = is_calm

    # --- what sidecars ask

    def states(self, name: str, clock: Clock, context: Context) -> SnapshotTopic:
        """As one life of a sidecar has them."""
        caller = _Caller(self._drawn, name, context)
        ids = iter(range(1, 10**9))
        topic = cast(Any, _Asked(self, caller, name))
        return SnapshotTopic(
            cast(PulsarClient, topic), cast(PulsarAdmin, topic), "public/__kafka", clock, lambda: f"{name}/{next(ids)}"
        )

    def values(self) -> dict[bytes, bytes]:
        """What is stored now, by key."""
        found: dict[bytes, bytes] = {}
        for entry in self.entries:
            message = _message_in(entry)
            found[message.key or b""] = message.value or b""
        return {key: value for key, value in found.items() if value}

    # --- compaction

    def compact_soon(self) -> None:
        """TwoPhaseCompactor: what stands up to now is gone through, and readers are given what is left of it a while
        later.
        """
        last = len(self.entries)
        self._loop.call_later(self._draw.choice(COMPACTION_SECONDS), self._compact, last, context=NOBODYS)

    def _compacts_soon(self) -> None:
        self._loop.call_later(self._draw.choice(COMPACTS_AFTER_SECONDS), self._compact_and_go_on, context=NOBODYS)

    def _compact_and_go_on(self) -> None:
        self.compact_soon()
        if not self._drawn.is_calm:
            self._compacts_soon()

    def _compact(self, count: int) -> None:
        last: dict[bytes, Position] = {}
        for entry in self.entries[:count]:
            last[_message_in(entry).key or b""] = entry.position
        for entry in self.entries[:count]:
            message = _message_in(entry)
            if last[message.key or b""] != entry.position or not message.value:
                self._left_out.add(entry.position)
        if count:
            self.compacted_to = self.entries[count - 1].position
            self.compactions += 1
            if self._gives_back:
                self.roll()

    def stats_now(self) -> LogStats:
        """Without the closed ledgers that retention has taken: of these only what is compacted is left, and readers are
        given that.
        """
        stats, end = super().stats_now(), self.compacted_to
        if not self._gives_back or end is None:
            return stats
        left = [
            one for one in stats.ledgers if one.ledger == self.ledger or Position(one.ledger, one.entries - 1) > end
        ]
        return LogStats(tuple(left), stats.empty_ledger)

    def is_hidden(self, entry: RawEntry) -> bool:
        return entry.position in self._left_out

    def last_named(self) -> Position | None:
        return self.entries[-1].position if self.entries else None


def _message_in(entry: RawEntry) -> Message:
    """Sidecars write one to an entry."""
    (message,) = read_messages(entry.message_metadata, entry.payload)
    return message


class _Caller(DrawnCaller):
    def way(self, name: str) -> DrawnWay:
        return _Way(self._conduct, name, self._context)


class _Way(DrawnWay):
    """Of which a SEND now and then hangs, is lost with its connection, or is never answered."""

    def __init__(self, conduct: DrawnConduct, name: str, context: Context) -> None:
        super().__init__(conduct, name, context)
        self.lost = conduct.bounds.lost_values
        self.fate = conduct.chance.of(f"{name}/fate")

    def send(self, arrive: Callable[[], None], payload: bytes | bytearray, stored: bytes) -> None:
        if not self._conduct.is_calm and self.fate.random() < self.lost / 2:
            self._up_at = max(self._up_at, self._conduct.loop.time()) + self.fate.choice(HANGS_SECONDS)
        self.up(arrive)

    def loses_receipt(self) -> bool:
        return not self._conduct.is_calm and self.fate.random() < self.lost / 4

    def loses_connection(self) -> bool:
        """Behind a SEND."""
        return not self._conduct.is_calm and self.fate.random() < self.lost / 4

    def lands_though_unknown(self) -> bool:
        """Of a producer whose process is gone: the broker has read it, and stores it when it comes to it."""
        return self.fate.random() < 0.5


class _Writer(Writer):
    def send_batch(self, sequence: int, count: int, payload: bytes) -> None:
        way = self.way
        assert isinstance(way, _Way)
        self.send(
            sequence, count, MessageMetadata(num_messages_in_batch=count).SerializePartialToString(), payload, None
        )
        if way.loses_connection():
            self.cut()


class _Asked:
    """The topic as Pulsar's client and its admin API give it to one sidecar."""

    def __init__(self, topic: SnapshotLog, caller: Caller, name: str) -> None:
        self._topic = topic
        self._caller = caller
        self._name = name
        self.topics = self.cluster = self.subscriptions = self

    async def producer(self, topic: str, name: str, events: ProducerEvents, purpose: str) -> Writer:
        await self._caller.ask()
        if name in self._topic.known_writers:
            raise Unavailable("a producer of this name is connected")
        return _Writer(self._topic, name, events, self._caller.way(self._topic.opens("writer", self._name)))

    async def reader(
        self, topic: str, start: Position | None, events: ConsumerEvents, compacted: bool, purpose: str
    ) -> Reader:
        await self._caller.ask()
        return self._topic.reader_as(self._name, start, events, self._caller)

    async def partitions(self, topic: str) -> int:
        await self._caller.ask()
        if not self._topic.is_there:
            raise TopicMissing(topic)
        return 1

    async def created_at(self, topic: str) -> str:
        await self._caller.ask()
        if not self._topic.is_there:
            raise Unavailable("500")  # as brokers of all versions do
        return "once"

    async def log_stats(self, topic: str) -> LogStats:
        await self._caller.ask()
        found = self._topic.stats_now()
        await self._caller.hear()
        return found

    async def compaction_stats(self, topic: str) -> CompactionStats:
        await self._caller.ask()
        ledger = self._topic.compactions or -1
        found = CompactionStats(self._topic.stats_now(), self._topic.compacted_to, ledger, ledger, 0, 0)
        await self._caller.hear()
        return found

    async def acknowledged(self, topic: str, name: str) -> Position | None:
        await self._caller.ask()
        return self._topic.compacted_to

    async def create_namespace(self, namespace: str) -> None: ...
    async def keep_for_ever(self, namespace: str) -> None: ...
    async def create_topic(self, topic: str, partitions: int) -> None:
        await self._caller.ask()
        self._topic.is_there = True
