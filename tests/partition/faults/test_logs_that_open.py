"""Every log that a broker can hold opens, and goes on."""

from __future__ import annotations

import pytest

from handler.partition.log.formats import KAFKA
from handler.pulsar.pulsar_api_pb2 import MessageMetadata
from handler.wire.error_code import ErrorCode
from tests.partition.faults import not_mended_yet
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, open_partition, read_all

FOREIGN_COUNT = not_mended_yet("an entry with more records than the broker counted ends its partition")


def replicated(log: MemoryLog, *values: bytes) -> None:
    """As Pulsar's replicator copies an entry: ProducerImpl takes the number of messages from a field that the sidecar does not write."""
    metadata = MessageMetadata(producer_name=b"kafka-sidecar-elsewhere-1", sequence_id=0, publish_time=1, replicated_from=b"east")
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


@FOREIGN_COUNT
async def test_a_log_that_begins_with_a_batch_that_the_broker_counted_as_one_message_opens() -> None:
    log = MemoryLog()
    replicated(log, b"a", b"b", b"c")
    partition = open_partition(log)
    opened = await partition.opened()
    partition.close()
    assert opened is ErrorCode.NONE


@FOREIGN_COUNT
async def test_a_batch_that_the_broker_counted_as_one_message_takes_one_offset_and_the_log_goes_on() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    assert (await append(partition, batch(b"before"))).base_offset == 0
    replicated(log, b"a", b"b", b"c")
    told = await append(partition, batch(b"behind"))
    again = open_partition(log, "kafka-sidecar-2")
    opened = await again.opened()
    found = await read_all(again, 2) if opened is ErrorCode.NONE else []
    partition.close()
    again.close()
    assert (told.error, told.base_offset, opened, found) == (ErrorCode.NONE, 2, ErrorCode.NONE, [(2, b"behind")])
