"""The tail reader reads what receipts do not tell, and nothing twice for long."""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.partition.follow import tail_reader
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.pulsar.entry import RawEntry
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, open_partition, read_all


@pytest.fixture
def delivered(monkeypatch: pytest.MonkeyPatch) -> list[RawEntry]:
    """The entries that the broker has handed to the tail reader."""
    entries: list[RawEntry] = []
    on_entry = tail_reader.TailReader.on_entry

    def counted(self: tail_reader.TailReader, entry: RawEntry) -> None:
        entries.append(entry)
        on_entry(self, entry)

    monkeypatch.setattr(tail_reader.TailReader, "on_entry", counted)
    monkeypatch.setattr(tail_reader, "PERMITS", 20)
    monkeypatch.setattr(tail_reader, "QUIET_PERMITS", 4)
    return entries


def consumed(partition: Partition) -> None:
    """Somebody reads at the end."""
    partition.read(partition.end_offset, 1_000, at_least_one=True, since=0)


async def following(log: MemoryLog, delivered: list[RawEntry]) -> Partition:
    """A consumed partition to which this sidecar writes for a while."""
    partition = open_partition(log)
    assert await partition.opened() is ErrorCode.NONE
    for number in range(100):
        await append(partition, batch(b"%d" % number))
        consumed(partition)
    assert len(delivered) < 40, "the permits from before the first receipt"
    delivered.clear()
    return partition


async def test_what_receipts_have_told_is_not_read_again(delivered: list[RawEntry]) -> None:
    partition = await following(MemoryLog(), delivered)
    for number in range(200):
        await append(partition, batch(b"%d" % number))
    assert len(delivered) <= 8
    assert len(await read_all(partition)) == 300
    partition.close()


async def test_an_entry_of_another_is_read_when_the_receipts_pause_and_then_all_are(delivered: list[RawEntry]) -> None:
    log = MemoryLog()
    partition = await following(log, delivered)
    log.write(batch(b"foreign"))
    async with asyncio.timeout(1):
        while partition.end_offset < 101:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    assert delivered[0].position.entry >= 98, "from the last that was folded on, and not from where it had stopped"
    before = len(delivered)
    for number in range(50):
        await append(partition, batch(b"%d" % number))
    await asyncio.sleep(0.05)
    assert len(delivered) - before >= 50, "who has written will mostly write again"
    assert [value for _, value in await read_all(partition)][100] == b"foreign"
    partition.close()


async def test_a_receipt_that_does_not_follow_is_read_for_at_once(delivered: list[RawEntry]) -> None:
    log = MemoryLog()
    partition = await following(log, delivered)
    log.write(batch(b"foreign"))
    assert (await append(partition, batch(b"ours"))).base_offset == 101
    log.roll()
    assert (await append(partition, batch(b"ours"))).base_offset == 102
    partition.close()


async def test_an_end_that_is_asked_for_is_read_up_to(delivered: list[RawEntry]) -> None:
    log = MemoryLog()
    partition = await following(log, delivered)
    for number in range(30):
        log.write(batch(b"foreign %d" % number))
    assert await partition.confirmed_end() == 130
    partition.close()


@pytest.mark.parametrize("reconnects", [False, True])
async def test_what_was_folded_by_receipts_is_compared_before_the_next_ledger_is_believed(
    delivered: list[RawEntry], reconnects: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail_reader, "QUIET_SECONDS", 1.0)  # else a slow machine has compared it before it is wrong
    log = MemoryLog()
    partition = await following(log, delivered)
    wrong = log.entries[-1]
    assert wrong.last_index is not None
    wrong.last_index += 1  # the broker has counted otherwise
    log.index += 1
    log.roll()
    if reconnects:
        log.disconnect()
    refused = await append(partition, batch(b"next"))
    assert refused.error is ErrorCode.KAFKA_STORAGE_ERROR
    assert partition.ended is ErrorCode.KAFKA_STORAGE_ERROR


async def test_others_entries_among_our_own_do_not_add_up_to_more_and_more_permits(delivered: list[RawEntry]) -> None:
    log = MemoryLog()
    partition = await following(log, delivered)
    for _ in range(5):
        log.write(batch(b"foreign"))
        log.write(batch(b"foreign"))
        await append(partition, batch(b"ours"))
        partition._tail_fold.foreign_at = -10.0  # it is long ago by now
    (reader,) = log.readers
    assert reader.permits <= tail_reader.PERMITS
    partition.close()
