"""`inspect` shows what is stored, and writes nothing."""

from __future__ import annotations

import pytest

from kafka_sidecar.commands.inspect.inspect import GroupReading, InspectOptions, entry_lines, fold_lines
from kafka_sidecar.errors import CommandFailed
from kafka_sidecar.groups.records import OffsetCommitKey, OffsetCommitValue, Record, write_key, write_value
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.messages import Message, write_batch
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog


async def entry(log: MemoryLog, **which: object) -> str:
    wanted = InspectOptions(what="entry", name="t", **which)  # type: ignore[arg-type]
    return "\n".join([line async for line in entry_lines(log, wanted)])


async def folded(log: MemoryLog, entries: int = 100) -> str:
    return "\n".join([line async for line in fold_lines(log, entries)])


async def test_an_entry_by_offset_and_by_position() -> None:
    log = MemoryLog()
    log.write(batch(b"a", b"b"))
    position = log.write(batch(b"c", b"d", b"e", producer_id=7, epoch=1, sequence=4))
    shown = await entry(log, offset=3)
    assert "offsets           2 to 4" in shown
    assert "producer id 7 epoch 1 sequences 4 to 6" in shown
    assert "written by        a sidecar" in shown
    assert await entry(log, position=position) == shown
    with pytest.raises(CommandFailed, match="beyond the end"):
        await entry(log, offset=5)


async def test_an_entry_that_can_not_be_read_says_why() -> None:
    log = MemoryLog()
    log.write(batch(b"a"))
    log.entries[0].payload = memoryview(b"garbage")
    assert "unreadable" in await entry(log, position=Position(1, 0))


async def test_a_time_that_no_calendar_has_is_shown_in_milliseconds() -> None:
    log = MemoryLog()
    log.write(batch(b"a", timestamp=2**62))
    assert f"{2**62} ms" in await entry(log, offset=0)


async def test_a_partitions_fold_names_its_producers_and_the_entries_that_are_hidden() -> None:
    log = MemoryLog()
    log.write(batch(b"a", producer_id=7, epoch=0, sequence=0))
    log.write(batch(b"b", producer_id=7, epoch=0, sequence=1))
    log.write(batch(b"b", producer_id=7, epoch=0, sequence=1))
    shown = await folded(log)
    assert "hidden            entry 1:2, offsets 2 to 2: a duplicate" in shown
    assert "folded            offsets 0 to 2, from entry 1:0; 1 batches hidden" in shown
    assert "7: epoch 0, last sequence 1, at entry 1:1" in shown
    assert "folded            offsets 2 to 2" in await folded(log, entries=1)


async def test_an_empty_partition_has_an_end() -> None:
    assert "the next offset is 0" in await folded(MemoryLog())


async def test_a_log_that_ends_with_markers_is_folded_up_to_them() -> None:
    log = MemoryLog()
    log.write(batch(b"a"))
    log.mark()
    assert "folded            offsets 0 to 0" in await folded(log)


def test_the_records_of_one_group_are_picked_out() -> None:
    ours, other = OffsetCommitKey("g", "t", 0), OffsetCommitKey("other", "t", 0)
    value = OffsetCommitValue(5, -1, "", 1, -1, None)
    messages = [Message(0, 1, write_key(key), write_value(value), []) for key in (other, ours)]
    messages += [
        Message(2, 1, write_key(ours), None, []),
        Message(3, 1, b"\0\x63", b"", []),
        Message(4, 1, None, b"", []),
    ]
    reading = GroupReading("g")
    assert [record for message in messages for record in reading.of_message(message)] == [
        Record(ours, value),
        Record(ours, None),
    ]
    assert not reading.of_message(Message(5, 1, write_key(ours)[:5], b"", []))
    assert reading.passed_over == 1


async def test_an_entry_that_is_not_there_is_not_another_one() -> None:
    log = MemoryLog()
    log.write(batch(b"a"))
    log.roll()
    log.write(batch(b"b"))
    for position in (Position(1, 7), Position(9, 0)):
        with pytest.raises(CommandFailed, match="there is no entry"):
            await entry(log, position=position)


async def test_a_batch_of_which_its_writer_has_told_the_broker_too_little_is_unreadable() -> None:
    log = MemoryLog()
    for _ in range(5):
        log.write(batch(b"before"))
    messages = write_batch([(b"", b"m%d" % number) for number in range(3)], 0)
    metadata = MessageMetadata(producer_name=b"native", sequence_id=0, publish_time=1, num_messages_in_batch=3)
    position = log.append(metadata, 1, messages)
    assert "unreadable        entry 1:5 takes 3 offsets, and the broker has counted fewer" in await entry(
        log, position=position
    )
    for entries in (1, 2, 100):
        assert f"folded            offsets {max(0, 6 - entries)} to 5" in await folded(log, entries)
