"""Transactions in a partition, from the first batch to what consumers of read_committed get, over the model of
Pulsar.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kafka_sidecar.internal_topics.snapshot_places import Kept
from kafka_sidecar.partition.fold.fold import BEFORE_ALL, NOTHING_WRITTEN, IndexAlarm
from kafka_sidecar.partition.fold.transactions import AbortedTransaction, TransactionTable
from kafka_sidecar.partition.log.formats import KAFKA, PULSAR
from kafka_sidecar.partition.log.log_config import LogConfig
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.snapshots import fold_snapshots
from kafka_sidecar.pulsar.errors import CHECKSUM_ERROR
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.control_records import EndTransactionMarker, write_marker
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.fake_broker import until
from tests.support.fold_snapshots import folds
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import Outcome, append, open_partition, open_table, read_all
from tests.support.transactions import (
    ABORTED,
    COMMITTED,
    PRODUCER,
    Coordinator,
    begin,
    committed_values,
    end,
    end_while_a_batch_hangs,
    write,
)


@pytest.fixture
def log() -> MemoryLog:
    return MemoryLog()


async def test_nothing_of_a_transaction_is_stable_before_its_marker(log: MemoryLog) -> None:
    partition, coordinator = open_partition(log), Coordinator()
    assert (await append(partition, batch(b"before"))).base_offset == 0
    assert (await write(partition, coordinator, b"a", b"b", sequence=0)).base_offset == 1
    assert (await append(partition, batch(b"between"))).base_offset == 3
    assert (partition.last_stable_offset, partition.end_offset) == (1, 4)
    assert await committed_values(partition) == [b"before"]
    assert (await end(partition, COMMITTED)).base_offset == 4
    assert partition.last_stable_offset == 5
    assert await committed_values(partition) == [b"before", b"a", b"b", b"between"]
    assert coordinator.asked == 1
    partition.close()


async def test_what_was_aborted_is_named_to_who_reads_it(log: MemoryLog) -> None:
    partition, coordinator = open_partition(log), Coordinator()
    await write(partition, coordinator, b"gone", sequence=0)
    await append(partition, batch(b"kept"))
    await end(partition, ABORTED)
    coordinator.number = 101
    await write(partition, coordinator, b"committed", sequence=1)
    await end(partition, COMMITTED, 101)
    assert await committed_values(partition) == [b"kept", b"committed"]
    assert await committed_values(partition, 1) == [b"kept", b"committed"]
    assert [value for _, value in await read_all(partition) if value and len(value) > 2][:1] == [b"gone"], (
        "read_uncommitted sees all"
    )
    assert partition.transactions.aborted_between(0, 2) == [AbortedTransaction(PRODUCER, 0)]
    assert partition.transactions.aborted_between(3, 5) == []
    assert coordinator.asked == 2, "the marker ended what was known"
    partition.close()


async def test_every_sidecar_comes_to_the_same(log: MemoryLog) -> None:
    mine, other = open_partition(log), open_partition(log, "kafka-sidecar-other")
    coordinator = Coordinator()
    await write(mine, coordinator, b"a", sequence=0)
    assert (await write(other, coordinator, b"b", sequence=1)).base_offset == 1
    await other.confirmed_end()
    assert other.last_stable_offset == 0
    await end(other, COMMITTED)
    for partition in (mine, other):
        assert await committed_values(partition) == [b"a", b"b"]
        partition.close()


async def test_a_sidecar_that_comes_later_knows_of_a_transaction_that_began_long_before(log: MemoryLog) -> None:
    first, coordinator = open_partition(log), Coordinator()
    await append(first, batch(b"before"))
    await write(first, coordinator, b"a", sequence=0)
    for _ in range(300):
        log.write(batch(b"native"))
    await first.confirmed_end()
    first.close()
    assert log.transactions_behind == log.entries[0].position
    later = open_partition(log, "kafka-sidecar-later")
    assert await later.opened() is ErrorCode.NONE
    assert later.last_stable_offset == 1
    assert await committed_values(later) == [b"before"]
    await end(later, ABORTED)
    assert (await committed_values(later)).count(b"native") == 300
    assert b"a" not in await committed_values(later)
    later.close()


async def test_it_is_known_before_the_first_batch_is_sent_that_there_are_transactions(log: MemoryLog) -> None:
    partition = open_partition(log)
    log.hold_sends = True
    begin(partition, Coordinator(), b"a", sequence=0)
    async with asyncio.timeout(2):
        while not log.held:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    assert log.transactions_behind == NOTHING_WRITTEN
    partition.close()


async def late(log: MemoryLog, partition: Partition, coordinator: Coordinator, sequence: int) -> Outcome:
    """A batch that is sent and lands when it is let go."""
    log.hold_sends = True
    outcome = begin(partition, coordinator, b"late", sequence=sequence)
    async with asyncio.timeout(2):
        while not log.held:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    log.hold_sends = False
    return outcome


@pytest.mark.parametrize("committed", [ABORTED, COMMITTED])
async def test_what_lands_behind_its_marker_is_nobodys(log: MemoryLog, committed: bool) -> None:
    """KIP-890: a batch was under way in one sidecar when another wrote the marker."""
    mine, other = open_partition(log), open_partition(log, "kafka-sidecar-other")
    coordinator = Coordinator()
    await write(mine, coordinator, b"in time", sequence=0)
    outcome = await late(log, mine, coordinator, 1)
    await other.confirmed_end()
    await end(other, committed)
    log.let_go()
    assert (await asyncio.wait_for(outcome.result, 5)).error is ErrorCode.NOT_ENOUGH_REPLICAS, "its producer asks again"
    await append(other, batch(b"after"))
    expected = ([b"in time"] if committed else []) + [b"after"]
    third = open_partition(log, "kafka-sidecar-third", cache=1)
    for partition in (mine, other, third):
        assert await committed_values(partition) == expected
        assert partition.last_stable_offset == partition.end_offset, "no transaction hangs"
        assert b"late" not in [value for _, value in await read_all(partition)]
        partition.close()


async def test_a_producer_that_was_not_told_of_its_next_transaction_writes_on(log: MemoryLog) -> None:
    """Clients before KIP-890 keep their epoch; the marker was written elsewhere, and this sidecar has not read it
    yet.
    """
    mine, other = open_partition(log), open_partition(log, "kafka-sidecar-other")
    coordinator = Coordinator()
    await write(mine, coordinator, b"first", sequence=0)
    log.read_delay = 0.2
    await end(other, COMMITTED)
    coordinator.number = 101
    refused = await write(mine, coordinator, b"second", sequence=1)
    if refused.error is not ErrorCode.NONE:
        assert refused.error is ErrorCode.NOT_ENOUGH_REPLICAS
        log.read_delay = 0.0
        assert (await write(mine, coordinator, b"second", sequence=1)).error is ErrorCode.NONE
    log.read_delay = 0.0
    await end(mine, COMMITTED, 101)
    assert await committed_values(other) == [b"first", b"second"]
    for partition in (mine, other):
        partition.close()


async def test_a_marker_that_comes_twice_or_late_ends_nothing_else(log: MemoryLog) -> None:
    partition, coordinator = open_partition(log), Coordinator()
    await write(partition, coordinator, b"a", sequence=0)
    await end(partition, COMMITTED)
    coordinator.number = 101
    await write(partition, coordinator, b"b", sequence=1)
    assert (await end(partition, ABORTED)).error is ErrorCode.INVALID_TXN_STATE, "of the transaction before"
    assert partition.last_stable_offset == 2
    await write(partition, coordinator, b"c", sequence=2)
    await end(partition, ABORTED, 101)
    other = open_partition(log, "kafka-sidecar-other", cache=1)
    for one in (partition, other):
        assert await committed_values(one) == [b"a"]
        one.close()


async def test_a_zombie_is_fenced_by_the_marker_of_its_successor(log: MemoryLog) -> None:
    partition, coordinator = open_partition(log), Coordinator()
    await write(partition, coordinator, b"a", sequence=0)
    await end(partition, ABORTED, epoch=1)
    coordinator.number = 101
    assert (await write(partition, coordinator, b"zombie", sequence=1)).error is ErrorCode.INVALID_PRODUCER_EPOCH
    assert (await write(partition, coordinator, b"new", sequence=0, epoch=1)).error is ErrorCode.NONE
    await end(partition, COMMITTED, 101, epoch=1)
    assert await committed_values(partition) == [b"new"]
    partition.close()


async def test_a_marker_fences_also_who_is_not_known(log: MemoryLog) -> None:
    partition, coordinator = open_partition(log), Coordinator(101)
    await end(partition, ABORTED, epoch=3)
    assert (
        await write(partition, coordinator, b"zombie", sequence=5, epoch=2)
    ).error is ErrorCode.INVALID_PRODUCER_EPOCH
    assert (await write(partition, coordinator, b"goes on", sequence=5, epoch=3)).error is ErrorCode.NONE
    partition.close()


async def test_batches_wait_in_their_order_for_the_coordinator(log: MemoryLog) -> None:
    partition, coordinator = open_partition(log), Coordinator()
    coordinator.delay = 0.05
    outcomes = [begin(partition, coordinator, b"%d" % number, sequence=number) for number in range(5)]
    assert (await append(partition, batch(b"of another"))).base_offset == 0, "others do not wait"
    assert [(await outcome.result).base_offset for outcome in outcomes] == [1, 2, 3, 4, 5]
    assert coordinator.asked == 1
    partition.close()


async def test_what_the_coordinator_refuses_is_not_written(log: MemoryLog) -> None:
    partition, coordinator = open_partition(log), Coordinator(ErrorCode.INVALID_TXN_STATE)
    outcomes = [begin(partition, coordinator, b"v", sequence=number) for number in range(3)]
    assert [(await outcome.result).error for outcome in outcomes] == [ErrorCode.INVALID_TXN_STATE] * 3
    assert not log.entries
    coordinator.fails, coordinator.number = 1, 100
    assert (await write(partition, coordinator, b"v", sequence=0)).error is ErrorCode.NOT_ENOUGH_REPLICAS
    assert (await write(partition, coordinator, b"v", sequence=0)).base_offset == 0
    partition.close()


async def test_a_partition_that_ends_refuses_what_waits(log: MemoryLog) -> None:
    partition, coordinator = open_partition(log), Coordinator()
    coordinator.delay = 5
    outcome = begin(partition, coordinator, b"v", sequence=0)
    await asyncio.sleep(0.01)
    partition.close()
    assert (await outcome.result).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (await write(partition, coordinator, b"v", sequence=0)).error is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_retry_gets_the_offset_of_the_first_try(log: MemoryLog) -> None:
    partition, coordinator = open_partition(log), Coordinator()
    assert (await write(partition, coordinator, b"v", sequence=0)).base_offset == 0
    assert (await write(partition, coordinator, b"v", sequence=0)).base_offset == 0
    await end(partition, COMMITTED)
    assert await committed_values(partition) == [b"v"]
    partition.close()


async def test_in_format_pulsar_it_is_the_same(log: MemoryLog) -> None:
    log.log_config = LogConfig(entry_format=PULSAR)
    partition, coordinator = open_partition(log), Coordinator()
    await write(partition, coordinator, b"gone", sequence=0)
    await end(partition, ABORTED)
    coordinator.number = 101
    await write(partition, coordinator, b"kept", sequence=1)
    await end(partition, COMMITTED, 101)
    other = open_partition(log, "kafka-sidecar-other", cache=1)
    for one in (partition, other):
        assert await committed_values(one) == [b"kept"]
        one.close()


async def test_a_partition_with_transactions_goes_on_from_what_was_kept(
    log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold_snapshots, "STORED_AGAIN_AFTER", 1)
    states = MemoryStates()
    first, coordinator = open_partition(log, states=states), Coordinator()
    await write(first, coordinator, b"gone", sequence=0)
    await end(first, ABORTED)
    coordinator.number = 101
    await write(first, coordinator, b"open", sequence=1)
    for _ in range(200):
        await append(first, batch(b"plain", producer_id=8, epoch=0, sequence=_))
    first.tick(asyncio.get_running_loop().time())
    await asyncio.sleep(0.01)
    assert folds(states)
    first.close()
    for number in range(200, 210):
        later = batch(b"plain", producer_id=8, epoch=0, sequence=number)
        log.write(later)
    log.opened_at.clear()
    second = open_partition(log, "kafka-sidecar-second", states=states)
    assert await second.opened() is ErrorCode.NONE
    assert second.last_stable_offset == 2
    assert second.transactions.aborted_between(0, 5) == [AbortedTransaction(PRODUCER, 0)]
    assert min(start for start in log.opened_at if start is not None).entry > 200, "the log is not read from its start"
    assert (await append(second, batch(b"plain", producer_id=8, epoch=0, sequence=0))).error is not ErrorCode.NONE
    await end(second, COMMITTED, 101)
    assert (await committed_values(second))[:1] == [b"open"]
    second.close()
    states.values = dict.fromkeys(states.values, b"\xff\xff")
    third = open_partition(log, "kafka-sidecar-third", states=states)
    assert (await committed_values(third))[:1] == [b"open"]
    third.close()


def by_others(log: MemoryLog, *, committed: bool | None = None) -> None:
    """As Kafka-on-Pulsar, or a sidecar of another cluster, writes it: nobody has announced it. A batch, or a marker."""
    metadata = MessageMetadata(producer_name=b"kop-1", sequence_id=0, publish_time=1)
    metadata.MergeFromString(KAFKA.fields)
    marker = b"" if committed is None else write_marker(PRODUCER, 0, EndTransactionMarker(committed, 0), 1_000)
    log.append(metadata, 1, marker or batch(b"gone", producer_id=PRODUCER, epoch=0, sequence=0, transactional=True))


@pytest.mark.parametrize("found_by", ["who opens it", "who reads old data", "who follows its end"])
async def test_transactions_that_others_wrote_are_found_wherever_they_are(log: MemoryLog, found_by: str) -> None:
    states = MemoryStates()
    log.write(batch(b"first"))
    if found_by != "who follows its end":
        by_others(log)
        by_others(log, committed=False)
    if found_by != "who opens it":
        for number in range(100):
            log.write(batch(b"%d" % number))
    partition = open_partition(log, states=states)
    if found_by == "who follows its end":
        assert await partition.opened() is ErrorCode.NONE
        partition.read(partition.end_offset, 1_000, at_least_one=True, since=0)
        by_others(log)
        by_others(log, committed=False)
    elif found_by == "who reads old data":
        assert await partition.opened() is ErrorCode.NONE
        assert partition.read_committed(0, 10_000, at_least_one=True, since=0) is None
    async with asyncio.timeout(5):
        while partition.ended is None and log.transactions_behind is None:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    assert log.transactions_behind == BEFORE_ALL
    assert partition.ended is (None if found_by == "who opens it" else ErrorCode.NOT_LEADER_OR_FOLLOWER)
    again = open_partition(log, "kafka-sidecar-again", states=states)
    found = await committed_values(again)
    assert b"gone" not in found
    assert len(found) == (1 if found_by == "who opens it" else 101)
    again.close()
    partition.close()


async def test_what_is_known_is_kept_before_the_sidecar_ends(log: MemoryLog) -> None:
    states = MemoryStates()
    table = open_table(lambda _, name: log.named(name), states=states)
    partition, coordinator = table.get("t-partition-0"), Coordinator()
    await write(partition, coordinator, b"gone", sequence=0)
    await end(partition, ABORTED)
    assert not folds(states)
    await table.close()
    assert set(states.kept) == {b"fold:t-partition-0", b"producer-states:t-partition-0"}


async def test_what_does_not_agree_with_the_log_is_not_kept_again(
    log: MemoryLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However late what was on its way comes."""
    monkeypatch.setattr(fold_snapshots, "STORED_AGAIN_AFTER", 1)
    states = MemoryStates()
    first, coordinator = open_partition(log, states=states), Coordinator()
    await write(first, coordinator, b"gone", sequence=0)
    await end(first, ABORTED)
    first.close()
    await asyncio.sleep(0.05)
    assert all(states.values.values())
    second = open_partition(log, "kafka-sidecar-second", states=states)
    assert await second.opened() is ErrorCode.NONE
    await append(second, batch(b"plain"))
    second.tick(asyncio.get_running_loop().time() + 100)  # begins to keep it
    second.alarm(IndexAlarm("the broker counts otherwise"))
    await asyncio.sleep(0.05)
    assert not folds(states)


async def test_a_marker_is_written_when_it_has_landed_however_much_others_have_written_before_it(
    log: MemoryLog,
) -> None:
    mine, other = open_partition(log), open_partition(log, "kafka-sidecar-other")
    coordinator = Coordinator()
    await write(mine, coordinator, b"a", sequence=0)
    await append(other, batch(b"so that it has a producer"))
    for _ in range(50):
        await append(mine, batch(b"of others"))
    log.read_delay = 1
    reading = asyncio.create_task(asyncio.sleep(log.read_delay))
    assert (await end(other, COMMITTED)).error is ErrorCode.NONE
    assert not reading.done(), "nobody consumes there, and nothing is read for it"
    await reading
    log.read_delay = 0
    assert (await committed_values(mine))[:1] == [b"a"]
    for partition in (mine, other):
        partition.close()


async def test_one_that_another_program_has_opened_is_ended_too(log: MemoryLog) -> None:
    """Kafka-on-Pulsar's entries have no numbers."""
    data = batch(b"of another program", producer_id=PRODUCER, epoch=0, sequence=0, transactional=True)
    metadata = MessageMetadata(producer_name=b"kop", sequence_id=0, publish_time=1)
    metadata.properties.add(key=b"entry.format", value=b"kafka")
    log.append(metadata, 1, data)
    partition = open_partition(log)
    assert await partition.opened() is ErrorCode.NONE
    assert partition.last_stable_offset == 0
    transaction = partition.transactions.open.get(PRODUCER)
    assert transaction is not None
    marker = write_marker(PRODUCER, 0, EndTransactionMarker(ABORTED, 0), 1_000)
    assert (
        await partition.end_transaction(marker, transaction.number, asyncio.get_running_loop().time() + 5)
        is ErrorCode.NONE
    )
    await partition.confirmed_end()
    assert partition.last_stable_offset == 2
    assert await committed_values(partition) == []
    partition.close()


async def test_a_partition_that_has_ended_reads_nothing(log: MemoryLog) -> None:
    partition = open_partition(log)
    await append(partition, batch(b"v"))
    partition.close()
    for read in (partition.read, partition.read_committed):
        run = read(0, 1_000, at_least_one=True, since=0.0)
        assert run is not None
        assert run.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_what_a_fold_knew_when_it_failed_is_not_kept(log: MemoryLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold_snapshots, "STORED_AGAIN_AFTER", 1)
    states = MemoryStates()
    writer, coordinator = open_partition(log, "kafka-sidecar-writer"), Coordinator()
    await write(writer, coordinator, b"open", sequence=0)
    before = TransactionTable.append
    failures = iter([RuntimeError("nobody thought of this")])

    def failing(table: TransactionTable, *arguments: Any) -> Any:
        for failure in failures:
            raise failure
        return before(table, *arguments)

    monkeypatch.setattr(TransactionTable, "append", failing)
    first = open_partition(log, states=states)
    assert await first.opened() is not ErrorCode.NONE
    second = open_partition(log, "kafka-sidecar-second", states=states)
    assert await second.confirmed_end() == 1
    assert second.last_stable_offset == 0, "the transaction is open"
    for partition in (writer, second):
        partition.close()


@pytest.mark.parametrize("is_stuck", [False, True], ids=["nothing else", "a batch of the epoch before"])
async def test_what_was_sent_behind_a_first_batch_that_did_not_land_does_not_count_though_a_marker_stands_before(
    is_stuck: bool,
) -> None:
    """The transaction before was aborted without a batch here. b0 is refused by the broker alone, b1 was on its way
    behind it.
    """
    log = MemoryLog()
    log.write(batch(b"other"))
    partition, other, coordinator = open_partition(log), open_partition(log, "kafka-sidecar-other"), Coordinator(101)
    for one in (partition, other):
        await append(one, batch(b"other"))
    if is_stuck:
        log.hold_sends = True
        begin(partition, Coordinator(99), b"stuck", sequence=5)
        while not log.held:  # noqa: ASYNC110
            await asyncio.sleep(0)
        log.held, log.hold_sends = [], False
    assert (await end(other, ABORTED, epoch=1)).error is ErrorCode.NONE
    await partition.confirmed_end()
    log.refuse_sends, log.refuse_with, log.refuse_saying = 1, 22, "Exceed maximum message size"
    told = await asyncio.gather(
        *(begin(partition, coordinator, b"t%d" % number, sequence=number, epoch=1).result for number in (0, 1))
    )
    assert ErrorCode.NONE not in [one.error for one in told]
    again = [await write(partition, coordinator, b"t%d" % number, sequence=number, epoch=1) for number in (0, 1)]
    assert [one.error for one in again] == [ErrorCode.NONE] * 2
    assert (await end(partition, COMMITTED, 101, epoch=1)).error is ErrorCode.NONE
    assert await committed_values(partition) == [*[b"other"] * 3, b"t0", b"t1"]
    partition.close()
    other.close()


@pytest.mark.parametrize("taken", [1, 2], ids=["with the marker", "with what was kept"])
@pytest.mark.parametrize("committed", [ABORTED, COMMITTED])
async def test_a_batch_behind_its_marker_stays_hidden_when_retention_has_taken_the_marker(
    taken: int, committed: bool
) -> None:
    """Its connection hung while the topic moved: the marker stands in one ledger, and the batch lands in a later
    one.
    """
    log, states = MemoryLog(), MemoryStates()
    hanging = open_partition(log, "kafka-sidecar-hanging", states=states)
    ending = open_partition(log, "kafka-sidecar-ending", states=states)
    await ending.opened()
    late = await end_while_a_batch_hangs(log, hanging, ending, committed=committed)
    for _ in range(taken):
        log.roll()
        assert (await append(ending, batch(b"plain"))).error is ErrorCode.NONE
        if not folds(states):
            ending.tick(asyncio.get_running_loop().time())
            await until(lambda: bool(folds(states)))
    log.let_go()
    assert (await asyncio.wait_for(late.result, 5)).error is not ErrorCode.NONE
    assert (await append(ending, batch(b"plain"))).error is ErrorCode.NONE
    await ending.confirmed_end()
    log.trim(sum(1 for entry in log.entries if entry.position.ledger <= taken))
    fresh = open_partition(log, "kafka-sidecar-fresh", states=states)
    assert await fresh.opened() is ErrorCode.NONE
    assert fresh.last_stable_offset == await fresh.confirmed_end()
    assert b"late" not in await committed_values(fresh, fresh.log_start)
    for one in (hanging, ending, fresh):
        one.close()


async def test_a_batch_behind_a_refused_one_is_aborted_with_its_transaction_also_where_its_reason_is_gone() -> None:
    """b0 is refused by the broker alone, and b1 lands. Retention takes all that stands before b1: who begins to read
    there may show it.
    """
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator()
    partition = open_partition(log, states=states)
    await append(partition, batch(b"plain", producer_id=1, epoch=0, sequence=0))
    log.roll()
    log.refuse_sends, log.refuse_with, log.refuse_saying = 1, CHECKSUM_ERROR, "scripted"
    told = await asyncio.gather(
        *(begin(partition, coordinator, b"t%d" % number, sequence=number).result for number in (0, 1))
    )
    assert told[1].error is not ErrorCode.NONE
    again = [await write(partition, coordinator, b"t%d" % number, sequence=number) for number in (0, 1)]
    assert [one.error for one in again] == [ErrorCode.NONE] * 2
    assert (await end(partition, ABORTED)).error is ErrorCode.NONE
    await asyncio.gather(*partition.close())
    log.trim(1)
    fresh = open_partition(log, "kafka-sidecar-fresh", states=states)
    assert await committed_values(fresh, 1) == []
    assert (1, b"t1") in await read_all(fresh, 1), "else this shows nothing"
    fresh.close()


@pytest.mark.parametrize("is_known", [False, True], ids=["before the window is read", "behind it"])
async def test_a_marker_without_a_batch_does_not_have_the_log_read_back(is_known: bool) -> None:
    """The log is older than its first Kafka producer. A transaction was aborted before its first batch came here."""
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator()
    for number in range(500):
        log.append(MessageMetadata(producer_name=b"native", sequence_id=number, publish_time=1), 1, bytes(1_000))
    partition = open_partition(log, states=states, replay_entries=20)
    other = open_partition(log, "kafka-sidecar-other", states=states, replay_entries=20)
    assert (await append(other, batch(b"first", producer_id=1, epoch=0, sequence=0))).error is ErrorCode.NONE
    if is_known:
        assert (await append(partition, batch(b"first", producer_id=2, epoch=0, sequence=0))).error is ErrorCode.NONE
    assert (await end(other, ABORTED, epoch=1)).error is ErrorCode.NONE
    assert await partition.confirmed_end() > 500
    coordinator.number = 101
    assert (await write(partition, coordinator, b"next", sequence=0, epoch=1)).error is ErrorCode.NONE
    assert log.bytes_read < 200_000
    for one in (partition, other):
        one.close()


async def test_a_batch_behind_one_that_was_refused_alone_does_not_count_though_a_marker_came_in_between(
    log: MemoryLog,
) -> None:
    """The sidecar had not read the marker when it sent both."""
    states, coordinator = MemoryStates(), Coordinator(101)
    partition, other = (open_partition(log, f"kafka-sidecar-{name}", states=states) for name in ("a", "b"))
    for number, one in enumerate((partition, other)):
        await append(one, batch(b"other", producer_id=number, epoch=0, sequence=0))
    await partition.confirmed_end()
    await partition._verified._announce()
    log.hold_dispatch = []
    assert (await end(other, ABORTED, epoch=1)).error is ErrorCode.NONE
    log.refuse_sends, log.refuse_with, log.refuse_saying = 1, CHECKSUM_ERROR, "scripted"
    first, second = (begin(partition, coordinator, b"t%d" % number, sequence=number, epoch=1) for number in (0, 1))
    await asyncio.sleep(0.05)
    held, log.hold_dispatch = log.hold_dispatch, None
    for hand_out in held:
        hand_out()
    assert (await asyncio.wait_for(first.result, 5)).error is ErrorCode.NONE
    assert (await asyncio.wait_for(second.result, 5)).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (await write(partition, coordinator, b"t1", sequence=1, epoch=1)).error is ErrorCode.NONE
    for one in (partition, other):
        one.close()


async def test_a_producer_that_has_begun_anew_is_not_told_what_its_batch_of_before_is_told(log: MemoryLog) -> None:
    """Its request had timed out, and waited here for the coordinator, which knows only the new epoch."""
    partition = open_partition(log)
    fenced, present = Coordinator(ErrorCode.INVALID_PRODUCER_EPOCH), Coordinator(101)
    fenced.delay = 0.01
    before = [begin(partition, fenced, b"%d" % number, sequence=number) for number in range(2)]
    anew = [begin(partition, present, b"anew %d" % number, sequence=number, epoch=1) for number in range(2)]
    told = await asyncio.gather(*(one.result for one in (*before, *anew)))
    assert [one.error for one in told] == [ErrorCode.INVALID_PRODUCER_EPOCH] * 2 + [ErrorCode.NONE] * 2
    partition.close()


class _Slow(MemoryStates):
    """Something happens before it answers."""

    def __init__(self) -> None:
        super().__init__()
        self.before_answer: Callable[[], None] = lambda: None

    async def find(self, key: bytes) -> Kept | None:
        found = await super().find(key)
        self.before_answer()
        return found


async def test_what_has_ended_is_known_of_a_batch_that_comes_into_an_empty_log_meanwhile() -> None:
    log, states = MemoryLog(), _Slow()
    late_one = open_partition(log, "kafka-sidecar-late", states=states)
    other = open_partition(log, "kafka-sidecar-other", states=states)
    await other.opened()
    await end_while_a_batch_hangs(log, late_one, other, committed=ABORTED)
    await other.confirmed_end()
    other.close()
    await until(lambda: bool(folds(states)))
    log.roll()
    log.trim(len(log.entries))
    states.before_answer = log.let_go
    opened = open_partition(log, "kafka-sidecar-opened", states=states)
    assert await opened.opened() is ErrorCode.NONE
    assert await opened.confirmed_end() == 3
    assert (opened.last_stable_offset, dict(opened.transactions.open)) == (3, {})
    opened.close()
    late_one.close()


async def test_where_what_was_kept_counts_nothing_is_told_while_it_can_not_be_read() -> None:
    log, states = MemoryLog(), MemoryStates()
    hanging = open_partition(log, "kafka-sidecar-hanging", states=states)
    ending = open_partition(log, "kafka-sidecar-ending", states=states)
    await ending.opened()
    await end_while_a_batch_hangs(log, hanging, ending, committed=ABORTED)
    log.roll()
    assert (await append(ending, batch(b"plain"))).error is ErrorCode.NONE
    log.let_go()
    await ending.confirmed_end()
    ending.close()
    await until(lambda: bool(folds(states)))
    hanging.close()
    log.trim(2)  # the first ledger
    states.is_away = True
    refused = open_partition(log, "kafka-sidecar-refused", states=states)
    assert await refused.opened() is ErrorCode.NOT_LEADER_OR_FOLLOWER  # the client asks again
    refused.close()
    states.is_away = False
    opened = open_partition(log, "kafka-sidecar-opened", states=states)
    assert await opened.opened() is ErrorCode.NONE
    assert opened.last_stable_offset == await opened.confirmed_end()
    opened.close()


async def test_who_has_read_less_does_not_replace_what_was_kept_further_on() -> None:
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator()
    behind = open_partition(log, "kafka-sidecar-behind", states=states)
    ahead = open_partition(log, "kafka-sidecar-ahead", states=states)
    await ahead.opened()
    assert (await write(ahead, coordinator, b"first", sequence=0)).error is ErrorCode.NONE
    await behind.opened()
    await behind.confirmed_end()
    log.read_delay = 30.0  # it is given nothing more
    assert (await end(ahead, committed=False)).error is ErrorCode.NONE
    assert (await append(ahead, batch(b"plain"))).error is ErrorCode.NONE
    ahead.tick(asyncio.get_running_loop().time())
    await until(lambda: bool(folds(states)))
    first = folds(states)[0].position
    assert first == log.entries[-1].position
    await asyncio.gather(*behind.close())
    assert folds(states)[0].position == first
    ahead.close()
