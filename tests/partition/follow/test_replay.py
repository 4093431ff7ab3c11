"""What a partition reads back of its past: nothing for those who read, and all that tells a retry for those who
write.
"""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.partition.fold.fold import Fold
from kafka_sidecar.partition.follow.replay import Replay
from kafka_sidecar.partition.opening import ENTRIES_BEFORE_END
from kafka_sidecar.pulsar.entry import LogStats, Position, RawEntry
from kafka_sidecar.pulsar.errors import NotPermitted, Unavailable
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, begin_append, open_partition, read_all

ENTRIES = 200


def numbered(sequence: int) -> bytes:
    return batch(b"%d" % sequence, producer_id=7, epoch=0, sequence=sequence)


def a_log() -> MemoryLog:
    """Entry 0 is another producer's, so it is known by a replay alone; the others are of producer 7 in its order."""
    log = MemoryLog()
    log.write(batch(b"early", producer_id=8, epoch=0, sequence=0))
    for sequence in range(1, ENTRIES):
        log.write(numbered(sequence))
    return log


async def test_a_partition_that_is_only_read_reads_back_few_entries() -> None:
    log = a_log()
    partition = open_partition(log)
    assert await partition.opened() is ErrorCode.NONE
    assert await partition.confirmed_end() == ENTRIES
    assert partition._fold.first_offset == ENTRIES - ENTRIES_BEFORE_END
    assert partition.log_start == 0
    assert (await append(partition, batch(b"of no producer"))).base_offset == ENTRIES
    assert partition._fold.first_offset == ENTRIES - ENTRIES_BEFORE_END
    partition.close()


@pytest.mark.parametrize("opened_by", ["a reader", "the append"])
async def test_a_retry_of_what_another_sidecar_wrote_is_recognised_whoever_opened_the_partition(opened_by: str) -> None:
    log = a_log()
    partition = open_partition(log)
    if opened_by == "a reader":
        await partition.opened()
    early = batch(b"early", producer_id=8, epoch=0, sequence=0)
    following, retry, hole = (
        begin_append(partition, data) for data in (numbered(ENTRIES), early, numbered(ENTRIES + 5))
    )
    assert (await retry).base_offset == 0
    assert (await following).base_offset == ENTRIES
    assert (await hole).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition._fold.first_offset == 0
    assert len(await read_all(partition)) == ENTRIES + 1
    partition.close()


async def test_the_replay_goes_back_no_further_than_its_bound() -> None:
    log = a_log()
    partition = open_partition(log, replay_entries=100)
    await partition.opened()
    assert (await append(partition, numbered(ENTRIES - 2))).base_offset == ENTRIES - 2
    assert partition._fold.first_offset == ENTRIES - 100
    partition.close()


async def test_a_fold_that_began_further_back_than_the_replay_would_knows_more() -> None:
    log = a_log()
    partition = open_partition(log, replay_entries=100)
    await partition.opened()
    log.write(batch(b"of 9", producer_id=9, epoch=0, sequence=0, timestamp=999_999))
    for number in range(110):
        log.write(batch(b"%d" % number, timestamp=10))
    await partition.confirmed_end()
    assert (await append(partition, batch(b"of 9", producer_id=9, epoch=0, sequence=0))).base_offset == ENTRIES
    assert partition._fold.first_offset == ENTRIES - ENTRIES_BEFORE_END
    partition.close()


async def test_appends_keep_their_order_while_the_past_is_read() -> None:
    log = a_log()
    partition = open_partition(log)
    await append(partition, batch(b"of no producer"))
    assert partition.is_next(100, -1, -1, -1, asyncio.get_running_loop().time())
    log.read_delay = 0.02
    with_producer = begin_append(partition, numbered(ENTRIES))
    await asyncio.sleep(0.001)
    assert not partition.is_next(100, -1, -1, -1, asyncio.get_running_loop().time())
    behind = begin_append(partition, batch(b"of no producer"))
    assert [(await one).base_offset for one in (with_producer, behind)] == [ENTRIES + 1, ENTRIES + 2]
    assert partition.is_next(100, 7, 0, ENTRIES + 1, asyncio.get_running_loop().time())
    partition.close()


async def test_the_replay_ends_while_others_write_and_own_appends_are_under_way() -> None:
    log = a_log()
    partition = open_partition(log, "kafka-sidecar-mine")
    await append(partition, batch(b"of no producer"))
    log.read_delay = 0.002
    log.hold_sends = True
    under_way = begin_append(partition, batch(b"under way"))
    retry = begin_append(partition, numbered(ENTRIES - 1))
    written = 0
    while written < 10 or (written < 2_000 and not retry.done()):
        log.write(batch(b"foreign %d" % written))
        written += 1
        if written == 5:
            log.hold_sends = False
            log.let_go()
        await asyncio.sleep(0.001)
    assert (await retry).base_offset == ENTRIES - 1
    assert (await under_way).error is ErrorCode.NONE
    values = [value for _, value in await read_all(partition)]
    assert values.count(b"under way") == 1
    assert len(values) == len(log.entries)
    partition.close()


async def test_a_broken_connection_only_delays_the_replay() -> None:
    log = a_log()
    partition = open_partition(log)
    await partition.opened()
    log.read_delay = 0.02
    retry = begin_append(partition, numbered(ENTRIES - 1))
    await asyncio.sleep(0.01)
    log.disconnect()
    assert (await retry).base_offset == ENTRIES - 1
    partition.close()


async def test_what_waits_for_the_replay_has_an_answer_when_the_partition_ends() -> None:
    log = a_log()
    partition = open_partition(log)
    await partition.opened()
    log.read_delay = 1
    waiting = begin_append(partition, numbered(ENTRIES))
    await asyncio.sleep(0.01)
    partition.close()
    assert (await waiting).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    await asyncio.sleep(0.01)
    assert not log.readers


async def test_an_error_that_is_final_is_told_at_once() -> None:
    log = a_log()
    partition = open_partition(log)
    await partition.opened()

    async def not_permitted() -> LogStats:
        raise NotPermitted("read the stats of this topic")

    log.stats = not_permitted  # type: ignore[method-assign]
    assert (await append(partition, numbered(ENTRIES))).error is ErrorCode.TOPIC_AUTHORIZATION_FAILED


async def test_a_dispatcher_that_goes_back_tells_nothing_new(monkeypatch: pytest.MonkeyPatch) -> None:
    once = Replay._fold_one

    def twice(self: Replay, entry: RawEntry, earlier: Fold) -> None:
        once(self, entry, earlier)
        once(self, entry, earlier)

    monkeypatch.setattr(Replay, "_fold_one", twice)
    partition = open_partition(a_log())
    await partition.opened()
    assert (await append(partition, numbered(ENTRIES - 1))).base_offset == ENTRIES - 1
    partition.close()


async def test_a_past_of_more_entries_than_permits_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_sidecar.partition.follow.replay.PIECE_PERMITS", 3)
    partition = open_partition(a_log())
    await partition.opened()
    assert (await append(partition, numbered(ENTRIES - 1))).base_offset == ENTRIES - 1
    partition.close()


async def test_an_entry_of_the_past_at_which_the_sidecar_fails_ends_the_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    apply = Fold._apply

    def fails(self: Fold, position: Position, *rest: object) -> object:
        if position == Position(1, 20):
            raise ZeroDivisionError(position)
        return apply(self, position, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Fold, "_apply", fails)
    partition = open_partition(a_log())
    assert await partition.opened() is ErrorCode.NONE
    assert (await append(partition, numbered(ENTRIES))).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.ended is ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("opened_by", ["a reader", "the append"])
@pytest.mark.parametrize("names_markers", [False, True])
async def test_a_log_that_ends_in_more_markers_than_are_read_back_has_its_end_and_its_past(
    opened_by: str, names_markers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers before 3.3 say that the last entry is a marker, later ones name the one that readers are given last."""
    # An entry that is not named is waited for: here it must not be.
    monkeypatch.setattr("kafka_sidecar.partition.follow.read_to_end.ARRIVAL_SECONDS", 0.05 if names_markers else 3_600)
    log = MemoryLog(names_markers=names_markers)
    for number in range(3):
        log.write(batch(b"of %d" % number, producer_id=number, epoch=0, sequence=0))
    for _ in range(5):
        log.mark()
    partition = open_partition(log, replay_entries=3)
    async with asyncio.timeout(30):
        if opened_by == "a reader":
            assert await partition.opened() is ErrorCode.NONE
            assert await partition.confirmed_end() == 3
        for number in (2, 0, 1):
            retry = await append(partition, batch(b"of %d" % number, producer_id=number, epoch=0, sequence=0))
            assert retry.base_offset == number
        assert (await append(partition, batch(b"plain"))).base_offset == 8
    partition.close()


async def test_a_log_that_retention_emptied_meanwhile_has_no_past() -> None:
    log = a_log()
    partition = open_partition(log)
    await partition.opened()
    log.trim(ENTRIES)
    assert (await append(partition, numbered(ENTRIES))).base_offset == ENTRIES
    partition.close()


async def test_a_past_that_retention_took_while_others_wrote_on_is_none() -> None:
    log = a_log()
    partition = open_partition(log)
    await partition.opened()
    partition._tail.stop()
    for number in range(3):
        log.write(batch(b"foreign %d" % number))
    log.trim(ENTRIES + 1)
    assert (await append(partition, numbered(ENTRIES))).base_offset == ENTRIES + 3
    partition.close()


@pytest.mark.parametrize("markers", [3, 200])
async def test_a_log_of_which_markers_are_left_has_no_past(markers: int) -> None:
    log = MemoryLog()
    log.write(batch(b"gone"))
    for _ in range(markers):
        log.mark()
    log.trim(1)
    partition = open_partition(log)
    async with asyncio.timeout(30):
        if await partition.opened() is ErrorCode.NONE:  # else it is not of this test
            assert (await append(partition, numbered(7))).error is ErrorCode.NONE
    partition.close()


async def test_what_retention_took_before_it_was_read_is_learnt_anew() -> None:
    """The sidecar stood still meanwhile. Its client had written on through another."""
    log = a_log()
    partition = open_partition(log)
    assert (await append(partition, numbered(ENTRIES))).error is ErrorCode.NONE
    partition._tail.stop()
    for number in range(1, 4):
        log.write(numbered(ENTRIES + number))
    log.roll()
    for number in range(4, 6):
        log.write(numbered(ENTRIES + number))
    log.trim(len(log.entries) - 2)
    with pytest.raises(Unavailable):
        await partition.confirmed_end()
    partition = open_partition(log, "kafka-sidecar-opened-again")
    assert await partition.confirmed_end() == ENTRIES + 6
    assert [value for _, value in await read_all(partition, ENTRIES + 4)] == [
        b"%d" % (ENTRIES + number) for number in (4, 5)
    ]
    assert (await append(partition, numbered(ENTRIES + 5))).base_offset == ENTRIES + 5
    assert (await append(partition, numbered(ENTRIES + 6))).base_offset == ENTRIES + 6
    partition.close()
