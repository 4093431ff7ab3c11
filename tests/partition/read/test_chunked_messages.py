"""Messages of native producers that are larger than an entry: the parts are found, however far they lie apart."""

from __future__ import annotations

import pytest
from aiokafka.record.default_records import DefaultRecordBatch

from kafka_sidecar.partition.read import chunked_messages
from kafka_sidecar.partition.search.timestamp_search import TimestampAndOffset, by_time
from kafka_sidecar.pulsar.codecs import compress
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, fetch, open_partition, read_all

LZ4 = 1


def parts_of(
    value: bytes, count: int, uuid: bytes = b"native-0", codec: int = 0, **fields: object
) -> list[tuple[MessageMetadata, bytes]]:
    stored = compress(codec, value)
    size = -(-len(stored) // count)
    parts = []
    for number in range(count):
        metadata = MessageMetadata(
            producer_name=b"native",
            sequence_id=0,
            publish_time=7,
            uuid=uuid,
            num_chunks_from_msg=count,
            chunk_id=number,
            total_chunk_msg_size=len(stored),
            compression=codec,
            uncompressed_size=len(value),
            **fields,  # type: ignore[arg-type]
        )
        parts.append((metadata, stored[number * size : (number + 1) * size]))
    return parts


def store(log: MemoryLog, *parts: tuple[MessageMetadata, bytes]) -> None:
    for metadata, payload in parts:
        log.append(metadata, 1, payload)


async def read_twice(log: MemoryLog) -> list[tuple[int, bytes | None]]:
    """Through a partition that follows the log's end, and through one that is opened later."""
    later = open_partition(log, "kafka-sidecar-later")
    read = await read_all(later)
    later.close()
    return read


async def test_a_message_stands_at_the_offset_of_its_last_part() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"before"))
    value = bytes(range(256)) * 40
    store(log, *parts_of(value, 3, codec=LZ4, partition_key=b"key", event_time=5))
    assert (await append(partition, batch(b"after"))).base_offset == 4
    expected = [(0, b"before"), (3, value), (4, b"after")]
    assert await read_all(partition) == expected
    assert await read_twice(log) == expected
    assert await read_all(partition, offset=2) == expected[1:]
    assert await read_all(partition, offset=3) == expected[1:]
    partition.close()


async def test_a_message_at_the_end_of_the_log_is_read() -> None:
    log = MemoryLog()
    store(log, *parts_of(b"0123456789", 4))
    assert await read_twice(log) == [(3, b"0123456789")]


async def test_it_has_key_time_and_headers_and_is_found_by_time() -> None:
    log = MemoryLog()
    parts = parts_of(b"abcdef", 2, partition_key=b"key", event_time=5)
    for metadata, _ in parts:
        metadata.properties.add(key=b"name", value=b"text")
    store(log, *parts)
    partition = open_partition(log)
    assert await by_time(partition, 3) == TimestampAndOffset(1, 5)
    await partition.confirmed_end()
    (part,) = (await fetch(partition, 1)).parts
    (record,) = DefaultRecordBatch(bytes(part))
    assert (record.key, record.value, record.timestamp, list(record.headers)) == (
        b"key",
        b"abcdef",
        5,
        [("name", b"text")],
    )
    partition.close()


@pytest.mark.parametrize(
    ("order", "read"),
    [
        pytest.param([0, 1, 1, 2], [3], id="a part that was sent twice"),
        pytest.param([0, 1, 0, 1, 2], [4], id="begun again"),
        pytest.param([0, 1, 2, 2], [2], id="the last part twice"),
        pytest.param([0, 2], [], id="a part that was never written"),
        pytest.param([1, 2], [], id="a first part that is gone"),
        pytest.param([0, 1], [], id="never finished"),
    ],
)
async def test_parts_count_as_for_native_consumers(order: list[int], read: list[int]) -> None:
    log = MemoryLog()
    parts = parts_of(b"abcdef", 3)
    store(log, *[parts[number] for number in order])
    log.write(batch(b"after"))
    expected = [(offset, b"abcdef") for offset in read]
    assert await read_twice(log) == [*expected, (len(order), b"after")]


async def test_messages_of_several_producers_whose_parts_alternate() -> None:
    log = MemoryLog()
    for one, other in zip(parts_of(b"abcdef", 3, b"one"), parts_of(b"ghijkl", 3, b"other"), strict=True):
        store(log, one, other)
    assert await read_twice(log) == [(4, b"abcdef"), (5, b"ghijkl")]


async def test_the_first_part_may_be_far_back_and_in_another_ledger() -> None:
    log = MemoryLog()
    first, last = parts_of(b"abcdef", 2)
    store(log, first)
    for number in range(400):
        log.write(batch(b"%d" % number))
        if number == 200:
            log.roll()
    store(log, last)
    assert (await read_twice(log))[-1] == (401, b"abcdef")


async def test_a_message_that_begins_too_far_back_or_is_too_large_is_never_passed_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chunked_messages, "MAX_ENTRIES_BACK", 100)
    log = MemoryLog()
    log.write(batch(b"before"))
    first, last = parts_of(b"abcdef", 2)
    store(log, first)
    for number in range(300):
        log.write(batch(b"%d" % number))
    store(log, last)
    partition = open_partition(log)
    assert (await fetch(partition, 302)).error is ErrorCode.CORRUPT_MESSAGE
    partition.close()
    monkeypatch.undo()
    monkeypatch.setattr(chunked_messages, "MAX_UNCOMPRESSED", 5)
    partition = open_partition(log)
    assert (await fetch(partition, 302)).error is ErrorCode.CORRUPT_MESSAGE
    partition.close()
    log.skips = frozenset({log.entries[302].position})
    log.write(batch(b"after"))
    partition = open_partition(log)
    assert await read_all(partition, 302) == [(303, b"after")], "an operator has it skipped"
    partition.close()
