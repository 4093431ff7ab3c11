"""Offsets are missing before an entry in another ledger: nothing behind them is folded before it is known what is
missing.
"""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.pulsar.entry import LogStats
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, begin_append, open_partition, read_all
from tests.support.virtual_time import in_virtual_time


def numbered(sequence: int) -> bytes:
    return batch(b"b%d" % sequence, producer_id=7, epoch=0, sequence=sequence)


def a_marker_in_a_ledger_of_its_own(log: MemoryLog) -> None:
    log.roll()
    log.mark()
    log.roll()


async def a_partition(log: MemoryLog) -> Partition:
    partition = open_partition(log, states=MemoryStates())
    for sequence in range(3):
        assert (await append(partition, numbered(sequence))).error is ErrorCode.NONE
    return partition


def test_behind_markers_of_pulsars_a_fold_goes_on_and_knows_what_it_knew() -> None:
    async def play() -> None:
        log = MemoryLog()
        partition = await a_partition(log)
        began, producers = partition._fold.replayed_from, partition._fold.producers
        a_marker_in_a_ledger_of_its_own(log)
        log.write(batch(b"native"))
        assert await partition.confirmed_end() == 5
        assert (partition._fold.replayed_from, partition._fold.producers) == (began, producers)
        log.trim(3)
        assert (await append(partition, numbered(2))).base_offset == 2
        assert (await append(partition, numbered(3))).base_offset == 5
        partition.close()

    in_virtual_time(play())


def test_a_marker_that_is_left_first_tells_that_nothing_was_taken_unread() -> None:
    async def play() -> None:
        log = MemoryLog()
        partition = await a_partition(log)
        log.roll()
        log.mark()
        log.roll()
        log.write(batch(b"native"))
        log.trim(3)
        assert await partition.confirmed_end() == 5
        assert (await append(partition, numbered(2))).base_offset == 2
        partition.close()

    in_virtual_time(play())


@pytest.mark.parametrize("is_waiting", [False, True], ids=["nothing is on its way", "batches are on their way"])
def test_a_partition_that_has_lost_entries_unread_ends(is_waiting: bool) -> None:
    async def play() -> None:
        log = MemoryLog()
        partition = await a_partition(log)
        partition._tail.stop()
        log.roll()
        log.write(batch(b"unread"))
        log.roll()
        log.write(batch(b"native"))
        log.trim(4)
        if is_waiting:
            told = await begin_append(partition, numbered(4))  # not the next, so the log is read to its end
            assert told.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
        else:
            with pytest.raises(Unavailable, match="lost entries behind 1:2 before they were read"):
                await partition.confirmed_end()
        assert partition.ended is ErrorCode.NOT_LEADER_OR_FOLLOWER
        again = open_partition(log)
        assert [value for _, value in await read_all(again, 4)] == [b"native"]
        again.close()

    in_virtual_time(play())


def test_nothing_is_folded_while_nobody_tells_what_is_missing() -> None:
    async def play() -> None:
        log = MemoryLog()
        partition = await a_partition(log)
        asked, is_away = log.stats, True

        async def stats() -> LogStats:
            if is_away:
                raise Unavailable("no broker")
            return await asked()

        log.stats = stats  # type: ignore[method-assign]
        a_marker_in_a_ledger_of_its_own(log)
        sent = [begin_append(partition, numbered(sequence), 20) for sequence in (3, 4)]
        await asyncio.sleep(3.0)
        assert partition.end_offset == 3
        assert not any(one.done() for one in sent)
        is_away = False
        assert [(await one).base_offset for one in sent] == [4, 5]
        partition.close()

    in_virtual_time(play())


def test_an_entry_that_comes_in_place_of_the_one_that_was_held_is_asked_about_as_well() -> None:
    """While it was asked retention took that one unread."""

    async def play() -> None:
        log = MemoryLog()
        partition = await a_partition(log)
        a_marker_in_a_ledger_of_its_own(log)
        asked, is_first = log.stats, True

        async def stats() -> LogStats:
            nonlocal is_first
            found = await asked()
            if is_first and partition._tail_gap._held is not None:
                is_first = False
                log.roll()
                log.write(batch(b"later"))
                log.trim(5)
            return found

        log.stats = stats  # type: ignore[method-assign]
        log.write(batch(b"held"))
        with pytest.raises(Unavailable):
            await partition.confirmed_end()
        assert not is_first
        assert partition.ended is ErrorCode.NOT_LEADER_OR_FOLLOWER
        partition.close()

    in_virtual_time(play())


@pytest.mark.parametrize("records", [1, 3])
def test_an_entry_that_can_not_be_read_is_behind_no_gap_where_its_records_have_all_offsets(records: int) -> None:
    async def play() -> None:
        log = MemoryLog()
        partition = await a_partition(log)
        partition._tail.stop()
        log.roll()
        metadata = MessageMetadata(
            producer_name=b"native", sequence_id=0, publish_time=1, compression=1, uncompressed_size=50
        )
        metadata.num_messages_in_batch = records
        log.append(metadata, records, b"\xff" * 40)
        log.write(batch(b"native"))
        log.trim(3)
        assert await partition.confirmed_end() == 3 + records + 1
        assert (await append(partition, numbered(2))).base_offset == 2
        partition.close()

    in_virtual_time(play())
