"""A partition over the in-memory log: appends, faults, restarts, reading."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from handler.partition.fold import Fold
from handler.partition.partition import PartitionLimits
from handler.partition.producers import Verdict
from handler.partition.store import BASIS_PROPERTY
from handler.partition.table import PartitionTable
from handler.pulsar.entry import LogStats, Position
from handler.wire.records import read_produced
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog, MemoryReader, MemoryWriter
from tests.support.partitions import append, fetch, open_partition, read_all


async def test_appends_get_the_offsets_of_the_log() -> None:
    partition = open_partition(MemoryLog())
    assert (await append(partition, batch(b"a", b"b", b"c"))).base_offset == 0
    assert (await append(partition, batch(b"d"))).base_offset == 3
    assert await read_all(partition) == [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"d")]
    partition.close()


async def test_a_foreign_entry_between_two_of_ours_is_read_before_the_second_is_answered() -> None:
    log = MemoryLog()
    ours = open_partition(log)
    theirs = open_partition(log, "kafka-sidecar-other")
    await append(ours, batch(b"1"))
    await append(theirs, batch(b"2", b"3"))
    assert (await append(ours, batch(b"4"))).base_offset == 3
    assert [value for _, value in await read_all(theirs)] == [b"1", b"2", b"3", b"4"]
    ours.close()
    theirs.close()


async def test_a_retry_is_answered_with_the_original_offset() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"x"))
    data = batch(b"a", b"b", producer_id=7, epoch=0, sequence=0)
    first = await append(partition, data)
    again = await append(partition, data)
    assert (first.base_offset, again.base_offset, again.error) == (1, 1, ErrorCode.none)
    assert len(log.entries) == 2
    partition.close()


async def test_a_retry_after_a_restart_is_still_recognised() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    data = batch(b"a", b"b", producer_id=7, epoch=0, sequence=0)
    await append(partition, data)
    partition.close()
    restarted = open_partition(log, "kafka-sidecar-second-life")
    assert (await append(restarted, data)).base_offset == 0
    assert len(log.entries) == 1
    restarted.close()


async def test_a_copy_that_raced_through_another_sidecar_is_not_served() -> None:
    log = MemoryLog()
    ours, theirs = open_partition(log), open_partition(log, "kafka-sidecar-other")
    assert await ours.opened() is ErrorCode.none
    assert await theirs.opened() is ErrorCode.none
    log.read_delay = 0.05  # neither has read the other's when it writes
    data = batch(b"a", producer_id=7, epoch=0, sequence=0)
    verdicts = await asyncio.gather(append(ours, data), append(theirs, data))
    assert [verdict.base_offset for verdict in verdicts] == [0, 0]
    assert [verdict.error for verdict in verdicts] == [ErrorCode.none, ErrorCode.none]
    assert len(log.entries) == 2
    for partition in (ours, theirs):
        assert await read_all(partition) == [(0, b"a")]
        partition.close()


async def test_sequences_out_of_order_are_refused() -> None:
    partition = open_partition(MemoryLog())
    await append(partition, batch(b"a", producer_id=7, epoch=0, sequence=0))
    refused = await append(partition, batch(b"c", producer_id=7, epoch=0, sequence=2))
    assert refused.error is ErrorCode.out_of_order_sequence_number
    old = await append(partition, batch(b"a", producer_id=7, epoch=1, sequence=0))
    assert old.error is ErrorCode.none
    fenced = await append(partition, batch(b"b", producer_id=7, epoch=0, sequence=1))
    assert fenced.error is ErrorCode.invalid_producer_epoch
    partition.close()


async def test_what_landed_without_a_receipt_is_found_and_not_sent_again() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"first"))
    log.swallow_receipts = True
    verdict = asyncio.create_task(append(partition, batch(b"second"), 10))
    await asyncio.sleep(0.05)
    log.swallow_receipts = False
    log.disconnect()
    assert (await verdict).base_offset == 1
    assert len(log.entries) == 2
    partition.close()


async def test_a_write_that_was_still_under_way_makes_a_second_copy_that_nobody_sees() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"first"))
    log.refuse_sends = 1  # the broker says it failed ...
    verdict = await append(partition, batch(b"second"), 10)
    late = log.entries[-1]
    assert (verdict.error, verdict.base_offset) == (ErrorCode.none, 1)
    # ... and the very same entry lands once more.
    from handler.pulsar.pulsar_api_pb2 import MessageMetadata

    log.append(MessageMetadata.FromString(late.metadata), 1, bytes(late.payload))
    assert (await append(partition, batch(b"third"))).base_offset == 3
    assert await read_all(partition) == [(0, b"first"), (1, b"second"), (3, b"third")]
    partition.close()


async def test_an_append_overtaken_by_a_later_one_is_not_taken_for_a_second_copy() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"first"))
    log.refuse_sends = 1
    refused, accepted = await asyncio.gather(append(partition, batch(b"refused"), 10), append(partition, batch(b"accepted"), 10))
    assert refused.error is ErrorCode.none
    assert accepted.error is ErrorCode.none
    values = dict(await read_all(partition))
    assert values[refused.base_offset] == b"refused"
    assert values[accepted.base_offset] == b"accepted"
    partition.close()


async def test_an_append_that_can_not_be_sent_times_out() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"first"))
    log.swallow_receipts = True
    log.read_delay = 60
    result: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
    data = batch(b"second")
    now = asyncio.get_running_loop().time()
    partition.append(read_produced(data), data, now + 0.1, result.set_result)
    await asyncio.sleep(0.15)
    partition.tick(now + 0.2)
    assert (await result).error is ErrorCode.request_timed_out
    partition.close()


async def test_old_data_is_read_back_after_a_restart_across_ledgers() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    for number in range(300):
        if number % 50 == 0:
            log.roll()
        await append(partition, batch(b"%d" % number))
    partition.close()
    cold = open_partition(log, "kafka-sidecar-cold", cache=1_000_000, replay_entries=5)
    assert await read_all(cold) == [(number, b"%d" % number) for number in range(300)]
    assert await read_all(cold, 123) == [(number, b"%d" % number) for number in range(123, 300)]
    cold.close()


async def test_a_consumer_is_not_lost_when_the_cache_is_smaller_than_its_read_ahead() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    for number in range(200):
        await append(partition, batch(b"%d" % number * 50))
    partition.close()
    cold = open_partition(log, "kafka-sidecar-cold", cache=5_000, replay_entries=5)
    assert len(await read_all(cold, seconds=20)) == 200
    cold.close()


@pytest.mark.parametrize("trimmed", [1, 3])
async def test_trimming_moves_the_start_and_reads_below_it_are_out_of_range(trimmed: int) -> None:
    log = MemoryLog()
    partition = open_partition(log)
    for _ in range(3):
        await append(partition, batch(b"a", b"b"))
        log.roll()
    assert await partition.confirmed_start() == 0
    log.trim(trimmed)
    await partition._start.refresh()
    assert partition.log_start == trimmed * 2
    assert await partition.confirmed_end() == 6
    run = partition.read(0, 1000, at_least_one=True, since=0)
    assert run is not None
    assert run.error is ErrorCode.offset_out_of_range
    partition.close()


async def test_an_emptied_log_answers_its_end_for_both_after_a_restart() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"a", b"b", b"c"))
    partition.close()
    log.trim(1)
    restarted = open_partition(log)
    assert await restarted.opened() is ErrorCode.none
    assert (await restarted.confirmed_start(), await restarted.confirmed_end()) == (3, 3)
    assert (await append(restarted, batch(b"d"))).base_offset == 3
    restarted.close()


async def test_an_index_that_comes_back_ends_the_partition() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"a", b"b"))
    log.index = -1
    log.roll()
    verdict = await append(partition, batch(b"c"))
    assert verdict.error is ErrorCode.kafka_storage_error
    assert partition.ended is ErrorCode.kafka_storage_error


async def test_offsets_missing_in_the_log_are_stepped_over() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"a"))
    log.index += 5
    log.roll()
    assert (await append(partition, batch(b"b"))).base_offset == 6
    assert await read_all(partition) == [(0, b"a"), (6, b"b")]
    cold = open_partition(log, "kafka-sidecar-cold", cache=1_000_000, replay_entries=1)
    assert await read_all(cold) == [(0, b"a"), (6, b"b")]
    partition.close()
    cold.close()


async def test_a_partition_that_is_opened_again_in_the_same_process_writes_on() -> None:
    log = MemoryLog()
    table = PartitionTable(lambda _, name: log.named(name), "kafka-sidecar-process", 1_000_000, PartitionLimits())
    for number in range(3):
        await append(table.get("t"), batch(b"%d" % number))
    table.forget("t")
    assert (await append(table.get("t"), batch(b"3"))).base_offset == 3
    assert await read_all(table.get("t")) == [(number, b"%d" % number) for number in range(4)]
    await table.close()


async def test_an_offset_that_another_sidecar_has_told_is_not_out_of_range() -> None:
    log = MemoryLog()
    ours, theirs = open_partition(log), open_partition(log, "kafka-sidecar-other")
    assert await theirs.opened() is ErrorCode.none
    log.read_delay = 0.05
    for number in range(5):
        await append(ours, batch(b"%d" % number))
    changed = asyncio.Event()
    came = asyncio.get_running_loop().time()
    assert theirs.end_offset < 4
    assert theirs.read(4, 1000, at_least_one=True, since=came) is None
    while (run := theirs.read(4, 1000, at_least_one=True, since=came)) is None:
        theirs.watch(changed.set)
        await asyncio.wait_for(changed.wait(), 5)
        changed.clear()
    assert run.error is ErrorCode.none
    assert run.size > 0
    while (beyond := theirs.read(99, 1000, at_least_one=True, since=came)) is None:
        theirs.watch(changed.set)
        await asyncio.wait_for(changed.wait(), 5)
        changed.clear()
    assert beyond.error is ErrorCode.offset_out_of_range
    ours.close()
    theirs.close()


async def test_an_end_that_was_confirmed_before_a_request_came_refuses_it_nothing() -> None:
    log = MemoryLog()
    ours, theirs = open_partition(log), open_partition(log, "kafka-sidecar-other")
    await append(ours, batch(b"0"))
    log.read_delay = 0.05
    for number in range(1, 10):
        assert await theirs.confirmed_end() == number  # fresh, and old news with the next append
        told = (await append(ours, batch(b"%d" % number))).base_offset
        run = await fetch(theirs, told)
        assert (run.error, run.next_offset) == (ErrorCode.none, told + 1)
    assert (await fetch(theirs, 99)).error is ErrorCode.offset_out_of_range
    ours.close()
    theirs.close()


async def test_the_end_is_found_also_where_the_broker_does_not_name_the_last_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a reload some brokers name entry −1 of the ledger that is open."""

    async def nothing(_: MemoryReader) -> None:
        await asyncio.sleep(0)

    log = MemoryLog()
    ours, theirs = open_partition(log), open_partition(log, "kafka-sidecar-other")
    await append(ours, batch(b"0"))
    assert await theirs.confirmed_end() == 1
    theirs._tail.stop()
    for number in range(1, 6):
        await append(ours, batch(b"%d" % number))
    monkeypatch.setattr(MemoryReader, "last_position", nothing)
    assert await theirs.confirmed_end() == 6
    ours.close()
    theirs.close()


async def test_the_tail_stays_open_for_who_waits_for_the_end() -> None:
    log = MemoryLog()
    ours, theirs = open_partition(log), open_partition(log, "kafka-sidecar-other")
    await append(ours, batch(b"0"))
    assert await theirs.opened() is ErrorCode.none
    log.read_delay = 0.1
    await append(ours, batch(b"1"))
    asked = asyncio.create_task(theirs.confirmed_end())
    for _ in range(10):
        await asyncio.sleep(0.02)
        theirs.tick(asyncio.get_running_loop().time() + 60)
    assert await asyncio.wait_for(asked, 1) == 2
    await asyncio.sleep(0)
    theirs.tick(asyncio.get_running_loop().time() + 60)
    assert not theirs._tail.running
    ours.close()
    theirs.close()


async def test_an_entry_that_is_known_by_its_receipt_is_not_waited_for() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"0"))
    log.read_delay = 60
    log.swallow_receipts = True
    appending = asyncio.create_task(append(partition, batch(b"1"), 10))
    await asyncio.sleep(0.01)
    asked = asyncio.create_task(partition.confirmed_end())
    await asyncio.sleep(0.01)
    assert not asked.done()
    last = log.entries[-1].position
    log.writers[-1]._events.on_receipt(1, last.ledger, last.entry)
    assert await asyncio.wait_for(asked, 0.5) == 2
    assert (await appending).base_offset == 1
    partition.close()


async def test_who_gives_up_waiting_for_an_entry_leaves_no_waiter() -> None:
    log = MemoryLog()
    ours, theirs = open_partition(log), open_partition(log, "kafka-sidecar-other")
    await append(ours, batch(b"0"))
    assert await theirs.opened() is ErrorCode.none
    log.read_delay = 60
    await append(ours, batch(b"1"))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(theirs._to_end.run(), 0.05)
    assert not theirs._to_end._waiting
    ours.close()
    theirs.close()


async def test_an_entry_that_can_not_be_read_is_an_error_at_its_offset_and_nothing_else() -> None:
    from handler.pulsar.pulsar_api_pb2 import MessageMetadata

    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"good"))
    encrypted = MessageMetadata(producer_name=b"native", sequence_id=0, publish_time=1, num_messages_in_batch=3)
    encrypted.encryption_keys.add(key=b"k", value=b"v")
    log.append(encrypted, 3, b"secret")
    odd = MessageMetadata(producer_name=b"kafka-sidecar-forged", sequence_id=0, publish_time=1)
    odd.properties.add(key=BASIS_PROPERTY, value=b"nonsense")
    log.append(odd, 1, b"x")
    assert (await append(partition, batch(b"after"))).base_offset == 5
    for offset, error in ((0, ErrorCode.none), (1, ErrorCode.corrupt_message), (4, ErrorCode.corrupt_message), (5, ErrorCode.none)):
        run = partition.read(offset, 100, at_least_one=True, since=0)
        assert run is not None
        assert run.error is error, offset
    partition.close()


async def test_retention_under_a_reader_of_old_data_is_out_of_range_and_no_gap() -> None:
    log = MemoryLog()
    writer = open_partition(log)
    for number in range(200):
        if number % 50 == 0:
            log.roll()
        await append(writer, batch(b"%d" % number))
    writer.close()
    cold = open_partition(log, "kafka-sidecar-cold", replay_entries=5, read_ahead=800)
    await cold.opened()
    await cold.confirmed_start()
    offset = (await fetch(cold, 0)).next_offset
    assert offset < 100
    log.trim(150)
    while (run := await fetch(cold, offset)).error is ErrorCode.none:
        assert run.next_offset <= 150, "what retention took was passed over in silence"
        offset = run.next_offset
    assert run.error is ErrorCode.offset_out_of_range
    assert cold.log_start == 150
    cold.close()


async def test_retention_behind_a_tail_that_was_closed_is_out_of_range_and_no_gap() -> None:
    log = MemoryLog()
    mine, other = open_partition(log, "kafka-sidecar-mine"), open_partition(log, "kafka-sidecar-other")
    for _ in range(10):
        await append(mine, batch(b"x"))
    await mine.confirmed_start()
    mine._tail.stop()
    for number in range(100):
        if number % 50 == 0:
            log.roll()
        await append(other, batch(b"y"))
    log.trim(60)
    assert (await fetch(mine, 10)).error is ErrorCode.offset_out_of_range
    assert (await fetch(mine, 60)).next_offset > 60
    mine.close()
    other.close()


async def test_a_record_that_comes_while_an_empty_log_is_looked_at_is_its_first() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await partition.opened()
    ask = log.stats
    looked = 0

    async def stats_then_a_record() -> LogStats:
        nonlocal looked
        looked += 1
        found = await ask()
        if looked == 1:
            assert (await append(partition, batch(b"first"))).base_offset == 0
        return found

    log.stats = stats_then_a_record  # type: ignore[method-assign]
    assert await partition._start.refresh() == 0
    assert await read_all(partition) == [(0, b"first")]
    partition.close()


async def test_a_retry_through_a_sidecar_that_has_not_looked_lately_is_recognised() -> None:
    log = MemoryLog()
    mine, other = open_partition(log, "kafka-sidecar-mine"), open_partition(log, "kafka-sidecar-other")

    def numbered(sequence: int) -> bytes:
        return batch(b"%d" % sequence, producer_id=1, epoch=0, sequence=sequence)

    for sequence in range(3):
        await append(mine, numbered(sequence))
    mine._tail.stop()
    for sequence in range(3, 6):
        await append(other, numbered(sequence))
    retry, following = await asyncio.gather(append(mine, numbered(5)), append(mine, numbered(6)))
    assert (retry.error, retry.base_offset) == (ErrorCode.none, 5)
    assert (following.error, following.base_offset) == (ErrorCode.none, 6)
    hole = await append(mine, numbered(9))
    assert hole.error is ErrorCode.out_of_order_sequence_number
    assert [value for _, value in await read_all(other)] == [b"%d" % sequence for sequence in range(7)]
    mine.close()
    other.close()


@pytest.mark.parametrize("roll", [False, True])
async def test_markers_at_the_end_of_the_log_keep_nobody_waiting(roll: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers before 3.3 say that the last entry is one that no reader is given."""
    monkeypatch.setattr("handler.partition.read_to_end.MARKER_SECONDS", 0.05)
    log = MemoryLog()
    log.write(batch(b"0"))
    for _ in range(3):
        if roll:
            log.roll()
        log.mark()
    partition = open_partition(log)
    assert await partition.opened() is ErrorCode.none
    assert await partition.confirmed_end() == 1
    assert (await append(partition, batch(b"1"))).base_offset == 1
    log.mark()
    assert await read_all(partition) == [(0, b"0"), (1, b"1")]
    partition.close()


# --- errors of the sidecar itself


@pytest.fixture
def broken_fold(monkeypatch: pytest.MonkeyPatch) -> list[Position]:
    """Positions at which the fold fails, in a way that nobody thought of."""
    broken: list[Position] = []
    judge = Fold._judge

    def judged(self: Fold, position: Position, *rest: Any) -> Verdict:
        if position in broken:
            raise ZeroDivisionError(position)
        return judge(self, position, *rest)

    monkeypatch.setattr(Fold, "_judge", judged)
    return broken


async def test_an_entry_at_which_the_sidecar_fails_ends_the_partition_twice_and_is_then_unreadable(broken_fold: list[Position]) -> None:
    log = MemoryLog()
    for number in range(4):
        log.write(batch(b"%d" % number))
    table = PartitionTable(lambda _, name: log.named(name), "kafka-sidecar-process", 1_000_000, PartitionLimits(replay_entries=4))
    broken_fold.append(log.entries[2].position)
    opened = set()
    for _ in range(3):
        partition = table.get("t")
        opened.add(partition)
        code = await partition.opened()
    assert len(opened) == 3
    assert code is ErrorCode.none
    found = [await fetch(partition, offset) for offset in (0, 1, 2, 3)]
    assert [run.error for run in found] == [ErrorCode.none, ErrorCode.none, ErrorCode.corrupt_message, ErrorCode.none]
    assert (await append(partition, batch(b"4"))).base_offset == 4
    await table.close()


async def test_old_data_at_which_the_sidecar_fails_is_unreadable_too(broken_fold: list[Position]) -> None:
    log = MemoryLog()
    for number in range(200):
        log.write(batch(b"%d" % number))
    table = PartitionTable(lambda _, name: log.named(name), "kafka-sidecar-process", 1_000_000, PartitionLimits(replay_entries=4))
    broken_fold.append(log.entries[100].position)
    errors = []
    for _ in range(3):
        partition = table.get("t")
        assert await partition.opened() is ErrorCode.none
        run = None
        while run is None and partition.ended is None:
            run = partition.read(100, 1, at_least_one=True, since=0)
            await asyncio.sleep(0.005)
        errors.append(partition.ended or (run.error if run is not None else None))
    assert errors == [ErrorCode.not_leader_or_follower, ErrorCode.not_leader_or_follower, ErrorCode.corrupt_message]
    assert [(await fetch(partition, offset)).error for offset in (99, 101)] == [ErrorCode.none] * 2
    await table.close()


async def test_an_append_at_which_the_sidecar_fails_is_refused_and_can_be_sent_again(broken_fold: list[Position]) -> None:
    log = MemoryLog()
    table = PartitionTable(lambda _, name: log.named(name), "kafka-sidecar-process", 1_000_000, PartitionLimits())
    await append(table.get("t"), batch(b"0"))
    broken_fold.append(Position(1, 1))
    for _ in range(2):
        assert (await append(table.get("t"), batch(b"1"))).error is ErrorCode.not_leader_or_follower
    broken_fold.clear()
    assert (await append(table.get("t"), batch(b"2"))).error is ErrorCode.none
    await table.close()


@pytest.mark.parametrize("failing", ["reader", "writer", "find_index"])
async def test_readers_and_writers_go_on_after_errors_that_nobody_thought_of(failing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog()
    for number in range(100):
        log.write(batch(b"%d" % number))
    partition = open_partition(log, replay_entries=4)
    assert await partition.opened() is ErrorCode.none
    log.disconnect()
    failures = 2
    works = getattr(MemoryLog, failing if failing == "find_index" else f"{failing}_as")

    async def fails(*arguments: Any) -> Any:
        nonlocal failures
        if failures:
            failures -= 1
            raise KeyError("an odd answer")
        return await works(*arguments)

    monkeypatch.setattr(MemoryLog, works.__name__, fails)
    assert (await append(partition, batch(b"new"))).base_offset == 100
    assert len(await read_all(partition)) == 101
    assert failures == 0
    partition.close()


async def test_a_consumer_that_fails_to_be_told_takes_nobody_with_it() -> None:
    partition = open_partition(MemoryLog())
    told = asyncio.Event()

    def fails() -> None:
        raise ZeroDivisionError

    assert await partition.opened() is ErrorCode.none
    partition.watch(fails)
    partition.watch(told.set)
    assert (await append(partition, batch(b"a"))).base_offset == 0
    await asyncio.wait_for(told.wait(), 1)
    assert partition.ended is None
    partition.close()


async def test_appends_that_wait_for_the_end_of_the_log_have_a_deadline() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"0", producer_id=7, epoch=0, sequence=0))
    log.read_delay = 60
    log.write(batch(b"1", producer_id=7, epoch=0, sequence=1))
    held = asyncio.create_task(append(partition, batch(b"2", producer_id=7, epoch=0, sequence=2), 0.1))
    behind = asyncio.create_task(append(partition, batch(b"3", producer_id=7, epoch=0, sequence=3), 60))
    await asyncio.sleep(0.15)
    partition.tick(asyncio.get_running_loop().time())
    assert [verdict.error for verdict in await asyncio.gather(held, behind)] == [ErrorCode.request_timed_out] * 2
    partition.close()


async def test_a_send_that_fails_in_the_sidecar_is_sent_again_and_holds_up_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"0", producer_id=7, epoch=0, sequence=0))
    works = MemoryWriter.send
    failures = 1

    def send(self: MemoryWriter, *arguments: Any) -> None:
        nonlocal failures
        if failures:
            failures -= 1
            raise ZeroDivisionError
        works(self, *arguments)

    monkeypatch.setattr(MemoryWriter, "send", send)
    failed, other = await asyncio.gather(append(partition, batch(b"1", producer_id=7, epoch=0, sequence=1)), append(partition, batch(b"x")))
    assert (failed.error, other.error) == (ErrorCode.none, ErrorCode.none)
    assert [value for _, value in await read_all(partition)] == [b"0", b"1", b"x"]
    partition.close()


async def test_an_append_at_whose_check_the_sidecar_fails_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    partition = open_partition(MemoryLog())
    await append(partition, batch(b"0"))

    def fails(*_: Any) -> Any:
        raise ZeroDivisionError

    with monkeypatch.context() as broken:
        broken.setattr("handler.partition.append.Appender._precheck", fails)
        refused = await append(partition, batch(b"1", producer_id=7, epoch=0, sequence=0))
    assert refused.error is ErrorCode.not_leader_or_follower
    assert (await append(partition, batch(b"1", producer_id=7, epoch=0, sequence=0))).base_offset == 1
    partition.close()
