"""Moved log starts: every sidecar hears of them, before it serves anything, and of two moves the greater counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
import pytest_asyncio

from handler.partition import log_starts
from handler.partition.log.moved_start import MovedStart
from handler.partition.log_starts import LogStarts
from handler.pulsar.entry import Position, RawEntry
from handler.pulsar.errors import PulsarError, Unavailable
from handler.pulsar.events import ConsumerEvents, ProducerEvents
from handler.pulsar.messages import read_messages, write_batch
from handler.pulsar.pulsar_api_pb2 import MessageMetadata

PARTITION = "persistent://public/default/t-partition-0"
EARLY, LATE = MovedStart(Position(5, 1), 10), MovedStart(Position(5, 9), 90)


@dataclass
class Topic:
    """An internal topic, with its client and its admin API."""

    there: bool = False
    entries: list[RawEntry] = field(default_factory=list)
    readers: list[Reader] = field(default_factory=list)
    writers: list[Writer] = field(default_factory=list)
    compactions: int = 0
    refuse: int = 0

    @property
    def topics(self) -> Topic:
        return self

    async def is_partitioned(self, topic: str) -> bool:
        return self.there

    async def partitions(self, topic: str) -> int:
        self.there = True  # made by whoever asks first
        return 1

    async def is_compacted(self, topic: str) -> bool:
        return self.compactions > 0

    async def compact(self, topic: str) -> None:
        self.compactions += 1
        if self.compactions == 2:
            raise Unavailable("not now")

    async def producer(self, topic: str, name: str, events: ProducerEvents, purpose: str) -> Writer:
        if self.refuse:
            self.refuse -= 1
            raise Unavailable("no broker")
        self.writers.append(Writer(self, events))
        return self.writers[-1]

    async def reader(self, topic: str, start: None, events: ConsumerEvents, compacted: bool, purpose: str) -> Reader:
        assert compacted
        self.readers.append(Reader(self, events))
        return self.readers[-1]

    def lose(self) -> None:
        for writer in self.writers:
            writer.events.on_end(Unavailable("connection lost"))

    def stored(self) -> list[tuple[bytes | None, bytes | None]]:
        messages = [message for entry in self.entries for message in read_messages(entry.message_metadata, entry.payload)[0]]
        return [(one.key, one.value) for one in messages if one.key != log_starts.MARKER_KEY]


@dataclass
class Writer:
    topic: Topic
    events: ProducerEvents

    def send_batch(self, sequence: int, count: int, payload: bytes) -> None:
        metadata = MessageMetadata(producer_name=b"w", sequence_id=sequence, publish_time=1, num_messages_in_batch=count)
        position = Position(1, len(self.topic.entries))
        self.topic.entries.append(RawEntry(position, None, None, metadata.SerializeToString(), memoryview(payload)))
        asyncio.get_running_loop().call_soon(self.events.on_receipt, sequence, *position)
        for reader in self.topic.readers:
            reader.deliver()

    def close(self) -> None:
        if self in self.topic.writers:
            self.topic.writers.remove(self)


@dataclass
class Reader:
    topic: Topic
    events: ConsumerEvents
    given: int = 0
    permits: int = 0

    def grant(self, permits: int) -> None:
        self.permits += permits
        self.deliver()

    def deliver(self) -> None:
        while self.permits and self.given < len(self.topic.entries):
            self.given += 1
            self.permits -= 1
            self.events.on_entry(self.topic.entries[self.given - 1])

    def close(self) -> None:
        if self in self.topic.readers:
            self.topic.readers.remove(self)


Open = Callable[[], LogStarts]


@pytest.fixture
def topic() -> Topic:
    return Topic()


@pytest_asyncio.fixture
async def opened(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Open]:
    monkeypatch.setattr(log_starts, "LOOK_SECONDS", 0.02)
    there: list[LogStarts] = []

    def begin() -> LogStarts:
        there.append(LogStarts(cast(Any, topic), cast(Any, topic), "public/__kafka", lambda *moved: heard.append(moved)))
        there[-1].start()
        return there[-1]

    heard: list[tuple[str, MovedStart]] = []
    yield begin
    for one in there:
        await one.close()


async def known(starts: LogStarts, wanted: MovedStart | None) -> None:
    async with asyncio.timeout(2):
        while await starts.of(PARTITION) != wanted:  # noqa: ASYNC110 - the partition is told, and there is none
            await asyncio.sleep(0.005)


async def test_a_move_is_stored_and_others_hear_of_it(topic: Topic, opened: Open) -> None:
    mine, other = opened(), opened()
    assert await mine.of(PARTITION) is None
    await mine.move(PARTITION, EARLY)
    assert topic.stored() == [(PARTITION.encode(), EARLY.encode())]
    await known(other, EARLY)
    await other.move(PARTITION, LATE)
    await known(mine, LATE)
    assert await opened().of(PARTITION) == LATE, "a sidecar that starts later reads it before it answers"


async def test_of_two_moves_the_greater_counts_and_is_written_behind_the_lesser(topic: Topic, opened: Open) -> None:
    mine, other = opened(), opened()
    await asyncio.gather(mine.move(PARTITION, LATE), other.move(PARTITION, EARLY))
    for one in (mine, other):
        await known(one, LATE)
    await asyncio.sleep(0.02)
    assert topic.stored()[-1] == (PARTITION.encode(), LATE.encode()), "compaction keeps the last"


async def test_what_is_lost_is_opened_again_and_an_unstored_move_is_an_error(topic: Topic, opened: Open) -> None:
    mine = opened()
    await mine.move(PARTITION, EARLY)
    topic.refuse = 1
    topic.lose()
    await mine.move(PARTITION, LATE)
    assert await opened().of(PARTITION) == LATE
    topic.writers[0].send_batch = lambda *_: None  # type: ignore[method-assign]
    under_way = asyncio.create_task(mine.move(PARTITION, MovedStart(Position(6, 0), 100)))
    await asyncio.sleep(0.01)
    topic.lose()
    with pytest.raises(PulsarError):
        await under_way


async def test_with_its_topic_a_start_is_forgotten(topic: Topic, opened: Open) -> None:
    mine, other = opened(), opened()
    await mine.move(PARTITION, EARLY)
    await known(other, EARLY)
    mine.forget([PARTITION, "persistent://public/default/t-partition-1"])
    await known(other, None)
    assert await opened().of(PARTITION) is None


async def test_what_nobody_understands_is_passed_over(topic: Topic, opened: Open) -> None:
    mine = opened()
    await mine.move(PARTITION, EARLY)
    topic.entries.append(RawEntry(Position(1, 99), None, None, b"\xff", memoryview(b"nonsense")))
    Writer(topic, topic.writers[0].events).send_batch(99, 1, b"nonsense")
    await mine.move(PARTITION, LATE)
    assert await opened().of(PARTITION) == LATE


async def test_the_topic_is_compacted_now_and_then(topic: Topic, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_starts, "WRITES_BETWEEN_COMPACTIONS", 10)
    mine = opened()
    for offset in range(30):
        await mine.move(PARTITION, MovedStart(Position(1, offset), offset))
    assert topic.compactions == 4, "once when it was made, so that retention leaves it alone; a failure is none of a move"


async def test_a_lesser_move_that_is_read_while_loading_is_mended_too(topic: Topic, opened: Open) -> None:
    writer = Writer(topic, cast(Any, Silent()))
    for number, moved in enumerate((LATE, EARLY)):
        writer.send_batch(number, 1, write_batch([(PARTITION.encode(), moved.encode())], 1))
    topic.there = True
    assert await opened().of(PARTITION) == LATE
    assert topic.stored()[-1] == (PARTITION.encode(), LATE.encode())


class Silent:
    def on_receipt(self, sequence: int, ledger: int, entry: int) -> None: ...
