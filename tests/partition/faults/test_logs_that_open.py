"""Every log that a broker can hold opens, and goes on."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from kafka_sidecar.partition.follow.read_to_end import end_without_records
from kafka_sidecar.partition.log.formats import KAFKA
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.pulsar.messages import write_batch
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, begin_append, fetch, open_partition, open_table, read_all


def replicated(log: MemoryLog, *values: bytes) -> None:
    """As Pulsar's replicator copies an entry: ProducerImpl takes the number of messages from a field that the sidecar
    does not write.
    """
    metadata = MessageMetadata(
        producer_name=b"kafka-sidecar-elsewhere-1", sequence_id=0, publish_time=1, replicated_from=b"east"
    )
    metadata.MergeFromString(KAFKA.fields)
    log.append(metadata, 1, batch(*values))


@pytest.mark.parametrize("names_markers", [True, False])
async def test_a_log_that_has_held_nothing_but_markers_of_pulsars_opens(names_markers: bool) -> None:
    log = MemoryLog(names_markers=names_markers)
    log.mark()
    log.mark()
    partition = open_partition(log)
    opened = await partition.opened()
    partition.close()
    assert opened is ErrorCode.NONE


@pytest.mark.parametrize("names_markers", [True, False])
async def test_a_log_of_which_markers_are_what_is_left_opens_at_its_end(names_markers: bool) -> None:
    log = MemoryLog(names_markers=names_markers)
    before = open_partition(log)
    await append(before, batch(b"x"))
    before.close()
    log.roll()
    log.mark()
    log.trim(1)
    partition = open_partition(log, "kafka-sidecar-2")
    opened = await partition.opened()
    told = await append(partition, batch(b"y"))
    partition.close()
    assert (opened, told.error, told.base_offset) == (ErrorCode.NONE, ErrorCode.NONE, 2)


@pytest.mark.parametrize("names_markers", [True, False])
async def test_whoever_has_it_open_comes_to_the_end_that_one_tells_who_opens_it_now(
    names_markers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it has seen markers behind the last record before that was gone."""
    monkeypatch.setattr("kafka_sidecar.partition.follow.read_to_end.ARRIVAL_SECONDS", 0.05)
    log = MemoryLog(names_markers=names_markers)
    table = open_table(lambda _, name: log.named(name), "kafka-sidecar-1")
    await append(table.get("t-partition-0"), batch(b"x"))
    log.mark()
    log.roll()
    log.mark()
    assert await table.get("t-partition-0").confirmed_end() == 1
    log.mark()
    log.trim(2)
    later = open_partition(log, "kafka-sidecar-2")
    assert await later.opened() is ErrorCode.NONE
    expected = await later.confirmed_end()
    with suppress(Unavailable):
        await table.get("t-partition-0").confirmed_end()
    assert (await table.get("t-partition-0").opened(), await table.get("t-partition-0").confirmed_end()) == (
        ErrorCode.NONE,
        expected,
    )
    later.close()
    await table.close()


async def test_a_log_of_markers_has_a_start_also_when_retention_takes_some_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kafka_sidecar.pulsar.raw_entries.ENTRY_SECONDS", 0.05)
    monkeypatch.setattr("kafka_sidecar.partition.follow.read_to_end.ARRIVAL_SECONDS", 0.05)
    monkeypatch.setattr("kafka_sidecar.partition.read.log_start.FRESH_SECONDS", 0.0)
    log = MemoryLog()
    log.mark()
    log.roll()
    log.mark()
    table = open_table(lambda _, name: log.named(name))
    assert await table.get("t-partition-0").opened() is ErrorCode.NONE
    log.trim(1)
    with suppress(Unavailable):
        await table.get("t-partition-0").confirmed_start()
    assert await table.get("t-partition-0").opened() is ErrorCode.NONE
    assert await table.get("t-partition-0").confirmed_start() == 1
    await table.close()


async def test_a_record_that_comes_while_an_empty_log_is_looked_at_does_not_end_the_partition() -> None:
    log = MemoryLog()
    first = open_partition(log, "kafka-sidecar-1")
    await append(first, batch(b"x"))
    log.roll()
    log.trim(1)
    partition = open_partition(log, "kafka-sidecar-2")
    assert await partition.opened() is ErrorCode.NONE
    told = log.index_property

    async def index_property() -> int | None:
        log.write(batch(b"y"))
        return await told()

    log.index_property = index_property  # type: ignore[method-assign]
    with suppress(Unavailable):
        await partition.confirmed_end()
    assert partition.ended is None
    assert await partition.confirmed_end() == 2
    first.close()
    partition.close()


async def test_a_marker_from_before_indexes_does_not_make_the_end_a_guess() -> None:
    """The ledgers' metadata counts what is being added, too."""
    log = MemoryLog()
    log.mark()
    log.entries[-1].last_index = None
    log.index = 7  # as the metadata says
    log.roll()
    log.index = -1
    log.mark()
    assert await end_without_records(log, await log.stats()) == 0


def miscounted(log: MemoryLog) -> None:
    """A native batch of three messages, of which its producer has told the broker one."""
    messages = write_batch([(b"", b"m%d" % number) for number in range(3)], 0)
    log.append(
        MessageMetadata(producer_name=b"native", sequence_id=0, publish_time=1, num_messages_in_batch=3), 1, messages
    )


def numbered(sequence: int) -> bytes:
    return batch(b"%d" % sequence, producer_id=7, epoch=0, sequence=sequence)


FOREIGN = pytest.mark.parametrize(
    "foreign", [lambda log: replicated(log, b"a", b"b", b"c"), miscounted], ids=["replicated", "native"]
)


@FOREIGN
async def test_a_log_that_begins_with_more_records_than_the_broker_counted_opens(
    foreign: Callable[[MemoryLog], None],
) -> None:
    log = MemoryLog()
    foreign(log)
    partition = open_partition(log)
    assert await partition.opened() is ErrorCode.NONE
    assert (await fetch(partition, 0)).error is ErrorCode.CORRUPT_MESSAGE
    assert (await append(partition, batch(b"x", producer_id=7, epoch=0, sequence=0))).base_offset == 1
    partition.close()


@FOREIGN
async def test_more_records_than_the_broker_counted_are_unreadable_and_the_log_goes_on(
    foreign: Callable[[MemoryLog], None],
) -> None:
    log = MemoryLog()
    partition = open_partition(log)
    assert (await append(partition, batch(b"before"))).base_offset == 0
    foreign(log)
    assert (await append(partition, batch(b"behind"))).base_offset == 2
    for _ in range(100):
        log.write(batch(b"more"))
    again = open_partition(log, "kafka-sidecar-2", cache=1)
    for one in (partition, again):
        assert await one.opened() is ErrorCode.NONE
        assert (await fetch(one, 1)).error is ErrorCode.CORRUPT_MESSAGE
        assert (await read_all(one, 2))[0] == (2, b"behind")
    told = await append(again, batch(b"x", producer_id=7, epoch=0, sequence=0))
    assert (told.error, told.base_offset) == (ErrorCode.NONE, 103)
    partition.close()
    again.close()


async def test_an_entry_of_a_sidecar_that_takes_more_offsets_than_the_broker_counted_is_an_alarm() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"before"))
    metadata = MessageMetadata(producer_name=b"kafka-sidecar-other", sequence_id=0, publish_time=1)
    metadata.MergeFromString(KAFKA.fields)
    log.append(metadata, 1, batch(b"a", b"b", b"c"))
    with suppress(Unavailable):
        await partition.confirmed_end()
    assert partition.ended is ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_replicated_batch_that_says_how_many_records_it_has_is_served() -> None:
    log = MemoryLog()
    metadata = MessageMetadata(
        producer_name=b"east", sequence_id=0, publish_time=1, replicated_from=b"east", num_messages_in_batch=3
    )
    metadata.MergeFromString(KAFKA.fields)
    log.append(metadata, 3, batch(b"a", b"b", b"c"))
    partition = open_partition(log)
    assert await read_all(partition) == [(0, b"a"), (1, b"b"), (2, b"c")]
    partition.close()


@pytest.mark.parametrize("seen_empty", [False, True])
async def test_the_first_record_behind_markers_is_one_that_was_refused_alone(seen_empty: bool) -> None:
    log = MemoryLog()
    partition = open_partition(log, batches_per_entry=1)
    if seen_empty:
        assert await partition.opened() is ErrorCode.NONE
    for _ in range(3):
        log.mark()
    log.refuse_sends = 1
    sent = [begin_append(partition, numbered(sequence)) for sequence in (0, 1)]
    told = [(await one).error for one in sent]
    assert ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER not in told
    for sequence in (0, 1):
        assert (await append(partition, numbered(sequence))).error is ErrorCode.NONE
    fresh = open_partition(log, "kafka-sidecar-2", cache=1)
    for one in (partition, fresh):
        values = [value for _, value in await read_all(one, 3)]
        assert [value for value in values if value] == [b"0", b"1"]
        one.close()
