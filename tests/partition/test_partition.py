"""A partition over the in-memory log: appends, faults, restarts, reading."""

from __future__ import annotations

import asyncio
import logging

import pytest

from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.partition import partition as module
from kafka_sidecar.partition.log.basis import BASIS_PROPERTY
from kafka_sidecar.pulsar.entry import LogStats, Position
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.error_code import ErrorCode
from tests.model.connections import Reader
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import Told, append, begin_append, fetch, open_partition, open_table, read_all


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
    assert (first.base_offset, again.base_offset, again.error) == (1, 1, ErrorCode.NONE)
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
    assert await ours.opened() is ErrorCode.NONE
    assert await theirs.opened() is ErrorCode.NONE
    log.read_delay = 0.05  # neither has read the other's when it writes
    data = batch(b"a", producer_id=7, epoch=0, sequence=0)
    verdicts = await asyncio.gather(append(ours, data), append(theirs, data))
    assert [verdict.base_offset for verdict in verdicts] == [0, 0]
    assert [verdict.error for verdict in verdicts] == [ErrorCode.NONE, ErrorCode.NONE]
    assert len(log.entries) == 2
    for partition in (ours, theirs):
        assert await read_all(partition) == [(0, b"a")]
        partition.close()


async def test_sequences_out_of_order_are_refused() -> None:
    partition = open_partition(MemoryLog())
    await append(partition, batch(b"a", producer_id=7, epoch=0, sequence=0))
    refused = await append(partition, batch(b"c", producer_id=7, epoch=0, sequence=2))
    assert refused.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    old = await append(partition, batch(b"a", producer_id=7, epoch=1, sequence=0))
    assert old.error is ErrorCode.NONE
    fenced = await append(partition, batch(b"b", producer_id=7, epoch=0, sequence=1))
    assert fenced.error is ErrorCode.INVALID_PRODUCER_EPOCH
    partition.close()


@pytest.mark.parametrize("known", [False, True])
async def test_a_batch_that_overtook_the_one_before_it_is_refused_and_nobody_sees_it(known: bool) -> None:
    """Also of a producer of which nothing is known yet, whose first batch the broker refused. Both clients of Kafka
    send it again.
    """

    def numbered(sequence: int) -> bytes:
        return batch(b"%d" % sequence, producer_id=7, epoch=0, sequence=sequence)

    log = MemoryLog()
    partition, other = open_partition(log), open_partition(log, "kafka-sidecar-other")
    await append(partition, numbered(0) if known else batch(b"opens the writer"))
    log.refuse_sends = 1
    first = 1 if known else 0
    refused, behind = begin_append(partition, numbered(first)), begin_append(partition, numbered(first + 1))
    assert (await behind).error is ErrorCode.NOT_LEADER_OR_FOLLOWER, "the one before it is sent again"
    assert (await refused).error is ErrorCode.NONE
    assert (await append(partition, numbered(first + 1))).error is ErrorCode.NONE
    later = open_partition(log, "kafka-sidecar-later")
    for one in (partition, other, later):
        assert [value for _, value in await read_all(one)][1:] == [b"%d" % first, b"%d" % (first + 1)]
        one.close()


@pytest.mark.parametrize("turns", [0, 1])
async def test_what_waits_behind_a_batch_that_the_broker_refused_alone_is_to_be_sent_again_too(turns: int) -> None:
    def numbered(sequence: int) -> bytes:
        return batch(b"%d" % sequence, producer_id=7, epoch=0, sequence=sequence)

    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"opens the writer"))
    log.refuse_sends = 1
    sent = [begin_append(partition, numbered(sequence)) for sequence in (0, 1)]
    for _ in range(turns):
        await asyncio.sleep(0)
    sent.append(begin_append(partition, numbered(2)))
    assert [(await one).error for one in sent] == [ErrorCode.NONE, *[ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2]
    for sequence in (1, 2):
        assert (await append(partition, numbered(sequence))).error is ErrorCode.NONE
    assert [value for _, value in await read_all(partition)][1:] == [b"0", b"1", b"2"]
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
    assert (verdict.error, verdict.base_offset) == (ErrorCode.NONE, 1)
    # ... and the very same entry lands once more.
    from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata

    log.append(MessageMetadata.FromString(late.metadata), 1, bytes(late.payload))
    assert (await append(partition, batch(b"third"))).base_offset == 3
    assert await read_all(partition) == [(0, b"first"), (1, b"second"), (3, b"third")]
    partition.close()


async def test_an_append_overtaken_by_a_later_one_is_not_taken_for_a_second_copy() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"first"))
    log.refuse_sends = 1
    refused, accepted = await asyncio.gather(
        append(partition, batch(b"refused"), 10), append(partition, batch(b"accepted"), 10)
    )
    assert refused.error is ErrorCode.NONE
    assert accepted.error is ErrorCode.NONE
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
    now = asyncio.get_running_loop().time()
    result = begin_append(partition, batch(b"second"), 0.1)
    await asyncio.sleep(0.15)
    partition.tick(now + 0.2)
    assert (await result).error is ErrorCode.REQUEST_TIMED_OUT
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
    await partition._log_start.refresh()
    assert partition.log_start == trimmed * 2
    assert await partition.confirmed_end() == 6
    run = partition.read(0, 1000, at_least_one=True, since=0)
    assert run is not None
    assert run.error is ErrorCode.OFFSET_OUT_OF_RANGE
    partition.close()


@pytest.mark.parametrize("is_named", [False, True])
async def test_what_others_wrote_and_was_trimmed_before_it_was_read_here_counts_for_the_end(
    monkeypatch: pytest.MonkeyPatch, is_named: bool
) -> None:
    """Some brokers name an entry that is not there any more as the last."""
    log = MemoryLog()
    here, elsewhere = open_partition(log, "kafka-sidecar-a"), open_partition(log, "kafka-sidecar-b")
    await append(here, batch(b"a", b"b"))
    here._tail.stop()  # as when nobody reads for a while
    await append(elsewhere, batch(b"c", b"d", b"e"))
    last = log.entries[-1].position
    log.roll()
    log.trim(2)
    if is_named:

        async def last_position(_: Reader) -> Position:
            return last

        monkeypatch.setattr(Reader, "last_position", last_position)
    with pytest.raises(Unavailable):
        await here.confirmed_end()
    assert here.ended is ErrorCode.NOT_LEADER_OR_FOLLOWER
    if not is_named:
        again = open_partition(log, "kafka-sidecar-a")
        assert await again.confirmed_end() == await elsewhere.confirmed_end() == 5
        again.close()
    elsewhere.close()


async def test_an_emptied_log_answers_its_end_for_both_after_a_restart() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"a", b"b", b"c"))
    partition.close()
    log.trim(1)
    restarted = open_partition(log)
    assert await restarted.opened() is ErrorCode.NONE
    assert (await restarted.confirmed_start(), await restarted.confirmed_end()) == (3, 3)
    assert (await append(restarted, batch(b"d"))).base_offset == 3
    restarted.close()


@pytest.mark.parametrize("anew", [False, True])
async def test_an_index_that_comes_back_ends_the_partition_and_is_an_alarm_unless_the_topic_was_made_anew(
    anew: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"a", b"b"))
    log.index = -1
    log.roll()
    log.generation += anew
    verdict = await append(partition, batch(b"c"))
    assert verdict.error is ErrorCode.KAFKA_STORAGE_ERROR
    assert partition.ended is ErrorCode.KAFKA_STORAGE_ERROR
    await asyncio.sleep(0.01)
    assert ("ALARM" in caplog.text, "was deleted and made again" in caplog.text) == (not anew, anew)


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
    table = open_table(lambda _, name: log.named(name), "kafka-sidecar-process")
    for number in range(3):
        await append(table.get("t"), batch(b"%d" % number))
    table.forget("t")
    assert (await append(table.get("t"), batch(b"3"))).base_offset == 3
    assert await read_all(table.get("t")) == [(number, b"%d" % number) for number in range(4)]
    await table.close()


async def test_an_entry_that_can_not_be_read_is_an_error_at_its_offset_and_nothing_else() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"good"))
    log.append(
        MessageMetadata(producer_name=b"native", sequence_id=0, publish_time=1, num_messages_in_batch=3, compression=9),
        3,
        b"?",
    )
    odd = MessageMetadata(producer_name=b"kafka-sidecar-forged", sequence_id=0, publish_time=1)
    odd.properties.add(key=BASIS_PROPERTY, value=b"nonsense")
    log.append(odd, 1, b"x")
    assert (await append(partition, batch(b"after"))).base_offset == 5
    for offset, error in (
        (0, ErrorCode.NONE),
        (1, ErrorCode.CORRUPT_MESSAGE),
        (4, ErrorCode.CORRUPT_MESSAGE),
        (5, ErrorCode.NONE),
    ):
        run = partition.read(offset, 100, at_least_one=True, since=0)
        assert run is not None
        assert run.error is error, offset
    partition.close()


async def test_a_consumer_at_the_end_is_told_of_an_entry_that_can_not_be_read() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"good"))
    told = asyncio.Event()
    assert partition.read(1, 100, at_least_one=True, since=0) is not None  # it is tailed from now on
    partition.watch(Told(told))
    log.append(
        MessageMetadata(producer_name=b"native", sequence_id=0, publish_time=1, num_messages_in_batch=1, compression=9),
        1,
        b"?",
    )
    await asyncio.wait_for(told.wait(), 5)
    assert (await fetch(partition, 1)).error is ErrorCode.CORRUPT_MESSAGE
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
    while (run := await fetch(cold, offset)).error is ErrorCode.NONE:
        assert run.next_offset <= 150, "what retention took was passed over in silence"
        offset = run.next_offset
    assert run.error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert cold.log_start == 150
    cold.close()


async def test_an_offset_before_the_start_is_refused_only_of_the_topic_that_is_there_now() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    for _ in range(5):
        await append(partition, batch(b"old"))
    await partition.ask_log_start()  # it was opened when nothing was there
    partition.on_start_moved(MovedStart(log.entries[3].position, 3))
    assert (await fetch(partition, 0)).error is ErrorCode.OFFSET_OUT_OF_RANGE
    log.make_anew()
    for _ in range(5):
        log.write(batch(b"new"))
    assert partition.log_start == 3, "nobody has told it yet"
    assert (await fetch(partition, 0)).error in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER), (
        "clients ask again"
    )
    partition = open_partition(log, "kafka-sidecar-again")
    assert await read_all(partition) == [(offset, b"new") for offset in range(5)]
    partition.close()


async def test_the_start_that_is_told_is_that_of_the_topic_that_is_there_now() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    for _ in range(5):
        await append(partition, batch(b"old"))
    await partition.ask_log_start()
    partition.on_start_moved(MovedStart(log.entries[3].position, 3))
    assert await partition.confirmed_start() == 3
    log.make_anew()
    with pytest.raises(Unavailable):
        await partition.confirmed_start()
    assert partition.ended is not None
    partition = open_partition(log, "kafka-sidecar-again")
    assert await partition.confirmed_start() == 0
    partition.close()


@pytest.mark.parametrize("is_silent", [False, True])
async def test_the_start_is_told_though_the_end_lies_in_storage_that_is_away(
    monkeypatch: pytest.MonkeyPatch, is_silent: bool
) -> None:
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.1)
    log = MemoryLog()
    partition = open_partition(log)
    for _ in range(5):
        await append(partition, batch(b"x"))
    await partition.ask_log_start()
    partition.on_start_moved(MovedStart(log.entries[3].position, 3))

    async def away() -> None:
        if is_silent:
            await asyncio.sleep(60)
        raise Unavailable("no bookie has it")

    partition.read_to_end = away  # type: ignore[method-assign]
    assert await partition.confirmed_start() == 3
    log.make_anew()
    with pytest.raises(Unavailable):
        await partition.confirmed_start()
    partition.close()


async def test_a_topic_that_is_forgotten_is_not_served_from_what_is_known_of_it() -> None:
    logs = {name: MemoryLog() for name in ("t-partition-0", "t-partition-1", "t", "tt-partition-0")}
    table = open_table(lambda name, _: logs[name])
    before = {name: table.get(name) for name in logs}
    for partition in before.values():
        await append(partition, batch(b"old"))
    await table.forget_topics({"t", "u"})
    assert [name for name, partition in before.items() if table.get(name) is partition] == ["tt-partition-0"]
    await table.close()


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
    assert (await fetch(mine, 10)).error is ErrorCode.NOT_LEADER_OR_FOLLOWER, "it is opened again, from what is left"
    mine = open_partition(log, "kafka-sidecar-mine")
    assert (await fetch(mine, 10)).error is ErrorCode.OFFSET_OUT_OF_RANGE
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
    assert await partition._log_start.refresh() == 0
    assert await read_all(partition) == [(0, b"first")]
    partition.close()


async def test_a_record_that_comes_while_the_end_of_an_emptied_log_is_asked_for_is_behind_it() -> None:
    log = MemoryLog()
    log.write(batch(b"gone"))
    log.trim(1)
    ask = log.index_property

    async def a_record_then_the_property() -> int | None:
        log.write(batch(b"new"))
        return await ask()

    log.index_property = a_record_then_the_property  # type: ignore[method-assign]
    partition = open_partition(log)
    assert await read_all(partition, 1) == [(1, b"new")]
    assert partition.log_start == 1
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
    assert (retry.error, retry.base_offset) == (ErrorCode.NONE, 5)
    assert (following.error, following.base_offset) == (ErrorCode.NONE, 6)
    hole = await append(mine, numbered(9))
    assert hole.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [value for _, value in await read_all(other)] == [b"%d" % sequence for sequence in range(7)]
    mine.close()
    other.close()


async def test_what_ends_while_it_is_opened_reads_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog()
    for _ in range(5):
        log.write(batch(b"a"))

    async def unanswered(reader: Reader) -> Position:
        raise Unavailable("it does not say")

    monkeypatch.setattr(Reader, "last_position", unanswered)
    partition = open_partition(log)
    await asyncio.sleep(0.02)  # it asks again in a moment
    partition.fail_at(log.entries[1].position)
    await asyncio.sleep(0.1)
    assert not log.readers
    assert await partition.opened() is ErrorCode.NOT_LEADER_OR_FOLLOWER
