"""Reading a partition of `__consumer_offsets`: up to the marker, whatever anybody has written there."""

from __future__ import annotations

import asyncio
import struct
from typing import Any, cast

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from kafka_sidecar.coordination.home import Home
from kafka_sidecar.coordination.term_log import HOME_KEY, MARKER_KEY, PERMITS, _Reading
from kafka_sidecar.groups.records import OffsetCommitKey, OffsetCommitValue, Record, write_key, write_value
from kafka_sidecar.groups.records.codec import GroupRecords
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.pulsar.messages import read_messages, write_batch
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.topics.names import TopicNames
from kafka_sidecar.wire.crc import crc32c

RECORD = Record(OffsetCommitKey("g", "t", 0), OffsetCommitValue(7, -1, "", 1, -1))
KEY, VALUE = write_key(RECORD.key), write_value(RECORD.value)  # type: ignore[arg-type]


def entry(number: int, *messages: tuple[bytes, bytes | None]) -> RawEntry:
    metadata = MessageMetadata(
        producer_name=b"p", sequence_id=number, publish_time=1, num_messages_in_batch=len(messages)
    )
    return RawEntry(Position(1, number), number, 1, metadata.SerializeToString(), memoryview(write_batch(messages, 1)))


def batch(key: bytes, value: bytes) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=10**6,
    )
    builder.append(0, 1, key, value, [])
    return bytes(builder.build())


async def nobody_asks(_: object) -> str:
    raise AssertionError


class Log:
    def __init__(self) -> None:
        self.marker: asyncio.Future[Position] = asyncio.get_running_loop().create_future()
        self.records: list[tuple[Record, bool]] = []
        self.keys: set[bytes] = set()
        self.home = Home(TopicNames("public/default", "public/__kafka"), nobody_asks)
        self.reading = _Reading(
            "t",
            GroupRecords(),
            self.home,
            lambda record, adopted: self.records.append((record, adopted)),
            self.marker,
            self.keys,
        )
        self.granted = 0
        self.task = asyncio.create_task(self.reading.to_marker(cast(Any, self)))

    def _on_record(self, record: Record, adopted: bool) -> None:
        self.records.append((record, adopted))

    def grant(self, permits: int) -> None:
        self.granted += permits

    async def read(self, *entries: RawEntry) -> None:
        """Let these arrive, and be looked at."""
        for one in entries:
            self.reading.on_entry(one)
        for _ in range(5):
            await asyncio.sleep(0)


async def test_records_are_read_up_to_the_marker() -> None:
    log = Log()
    await log.read(entry(0, (KEY, VALUE), (KEY, None)))
    log.marker.set_result(Position(1, 1))
    await log.read()
    assert not log.task.done()
    await log.read(entry(0, (KEY, VALUE)))  # the dispatcher begins again
    await log.read(entry(1, (MARKER_KEY, b"me")))
    assert log.task.done()
    assert log.records == [(RECORD, False), (RECORD._replace(value=None), False)]


async def test_a_producer_that_is_lost_ends_the_reading() -> None:
    log = Log()
    await log.read()
    log.marker.set_exception(Unavailable("lost"))
    with pytest.raises(Unavailable, match="lost"):
        await asyncio.wait_for(log.task, 1)


async def test_a_reader_that_is_lost_ends_the_reading() -> None:
    log = Log()
    await log.read(entry(0, (KEY, VALUE)))
    log.reading.on_end(Unavailable("the broker is away"))
    with pytest.raises(Unavailable, match="away"):
        await asyncio.wait_for(log.task, 1)
    assert log.records == [(RECORD, False)], "what came before is told"


async def test_silence_ends_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_sidecar.coordination.term_log.SILENCE_SECONDS", 0.02)
    with pytest.raises(Unavailable, match="nothing came"):
        await asyncio.wait_for(Log().task, 1)


async def test_others_run_while_a_large_log_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    turns = 0

    async def others() -> None:
        nonlocal turns
        while not log.task.done():
            turns += 1
            await asyncio.sleep(0)

    for number in range(20):
        log.reading.on_entry(entry(number, *[(KEY, VALUE)] * 1_000))
    log.marker.set_result(Position(1, 19))
    await others()
    await log.task
    assert len(log.records) == 20_000
    assert turns > 20
    assert log.granted >= 20_000


async def test_what_kafka_on_pulsar_wrote_is_marked_with_the_key_it_stands_under() -> None:
    log = Log()
    await log.read(entry(0, (b"dummy", batch(KEY, VALUE)), (KEY, batch(KEY, VALUE))))
    assert log.records == [(RECORD, True), (RECORD, True)]
    assert log.keys == {b"dummy", KEY}
    await log.read(entry(1, (KEY, VALUE)))  # ours takes the place of theirs
    assert log.keys == {b"dummy"}


def _recompressed(codec: int) -> bytes:
    """A batch that says it is compressed and is not, with a checksum that fits."""
    data = bytearray(batch(KEY, VALUE))
    data[21:23] = struct.pack(">h", codec)
    data[17:21] = crc32c(bytes(data[21:])).to_bytes(4, "big")
    return bytes(data)


@pytest.mark.parametrize(
    "value",
    [_recompressed(1), _recompressed(3), _recompressed(4), _recompressed(7), b"\0\x03short", b"", b"\xff" * 100],
)
async def test_whatever_else_is_there_is_passed_over(value: bytes) -> None:
    log = Log()
    broken = RawEntry(Position(1, 1), 1, 1, b"not metadata", memoryview(b"nor this"))
    await log.read(entry(0, (KEY, value)), broken, entry(2, (KEY, VALUE)))
    assert log.records[-1] == (RECORD, False)


async def test_an_entry_that_nobody_can_read_costs_what_the_broker_has_counted() -> None:
    log = Log()
    metadata = MessageMetadata(producer_name=b"p", sequence_id=0, publish_time=1, num_messages_in_batch=PERMITS)
    await log.read(RawEntry(Position(1, 0), 0, 1, metadata.SerializeToString(), memoryview(b"nonsense")))
    assert log.granted == 2 * PERMITS


def test_messages_are_read_as_they_were_written() -> None:
    metadata = MessageMetadata(producer_name=b"p", sequence_id=0, publish_time=5, num_messages_in_batch=2)
    messages = read_messages(metadata, memoryview(write_batch([(b"\xff", b"v"), (b"k", None)], 9)))
    assert [(message.key, message.value, message.timestamp) for message in messages] == [
        (b"\xff", b"v", 9),
        (b"k", None, 9),
    ]


async def test_a_log_that_says_what_short_names_mean_is_read_once_more() -> None:
    log = Log()
    await log.read(entry(0, (KEY, VALUE)), entry(1, (HOME_KEY, b"public/team")))
    log.marker.set_result(Position(1, 1))
    with pytest.raises(Unavailable, match="short names for the topics of public/team"):
        await asyncio.wait_for(log.task, 1)

    again = Log()
    again.reading._home = log.home
    await again.read(entry(0, (KEY, VALUE)), entry(1, (HOME_KEY, b"public/team")))
    again.marker.set_result(Position(1, 1))
    await again.read()
    assert again.task.done()
    assert again.reading.says_home
    assert [record.key for record, _ in again.records] == [OffsetCommitKey("g", "persistent://public/team/t", 0)]


async def test_a_log_that_says_what_was_taken_for_granted_is_read_once() -> None:
    log = Log()
    log.marker.set_result(Position(1, 1))
    await log.read(entry(0, (HOME_KEY, b"public/default")), entry(1, (KEY, VALUE)))
    assert log.task.done()
    assert log.records == [(RECORD, False)]


@pytest.mark.parametrize("value", [b"", b"nonsense", b"\xff/\xfe", b"a/b/c"])
async def test_what_is_no_namespace_says_nothing(value: bytes) -> None:
    log = Log()
    log.marker.set_result(Position(1, 1))
    await log.read(entry(0, (HOME_KEY, value)), entry(1, (KEY, VALUE)))
    assert log.task.done()
    assert not log.reading.says_home
    assert log.records == [(RECORD, False)]
