"""A producer that did nothing wrong is never OUT_OF_ORDER, and nothing passes what was refused before it."""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.partition import partition as module
from kafka_sidecar.partition.write import appender, sender
from kafka_sidecar.pulsar.entry import LogStats
from kafka_sidecar.pulsar.errors import NOT_ALLOWED, TopicMissing, Unavailable
from kafka_sidecar.wire.control_records import EndTransactionMarker, write_marker
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog, _Named
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, begin_append, open_partition, read_all
from tests.support.services import NAMESPACE, Sidecar
from tests.support.transactions import Coordinator, write
from tests.support.transactions import begin as begin_in_transaction


def numbered(sequence: int, epoch: int = 0) -> bytes:
    return batch(b"b%d" % sequence, producer_id=7, epoch=epoch, sequence=sequence)


@pytest.mark.parametrize(
    ("elsewhere", "then"),
    [([numbered(1), numbered(2), numbered(3)], numbered(4)), ([numbered(0, 1), numbered(1, 1)], numbered(2, 1))],
    ids=["sequence", "epoch"],
)
async def test_a_client_that_comes_back_goes_on_where_it_was_elsewhere(elsewhere: list[bytes], then: bytes) -> None:
    """b1 is stuck on its way from the first sidecar. Its client went to the second one with it, or began a new epoch
    there.
    """
    log = MemoryLog()
    first, second = (open_partition(log, f"kafka-sidecar-{number}") for number in (1, 2))
    await append(first, numbered(0))
    await append(second, batch(b"x"))
    log.hold_sends = True
    begin_append(first, numbered(1), 60)
    while not log.held:  # noqa: ASYNC110
        await asyncio.sleep(0)
    log.held, log.hold_sends = [], False
    for data in elsewhere:
        assert (await append(second, data)).error is ErrorCode.NONE
    await first.confirmed_end()
    told = await append(first, then)
    first.close()
    second.close()
    assert told.error is ErrorCode.NONE


class StuckLog(MemoryLog):
    async def stats(self) -> LogStats:
        if self.is_stuck:
            await asyncio.sleep(3_600)
        return await super().stats()

    is_stuck = True


async def test_what_is_pipelined_behind_a_partition_that_ends_does_not_overtake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "OPEN_SECONDS", 0.05)
    log = StuckLog()
    sidecar = Sidecar(logs={NAMESPACE + "t-partition-0": log})
    sidecar.admin.make("t", 1)
    waiting = [begin_produce(sidecar, sequence) for sequence in (0, 1)]
    assert [told(await one) for one in waiting] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
    log.is_stuck = False
    assert told(await begin_produce(sidecar, 2)) is ErrorCode.NOT_LEADER_OR_FOLLOWER, (
        "it was sent before its client had the two answers"
    )
    assert [told(await begin_produce(sidecar, sequence)) for sequence in range(3)] == [ErrorCode.NONE] * 3
    found = [value for _, value in await read_all(sidecar.table.get(NAMESPACE + "t-partition-0"))]
    await sidecar.close()
    assert found == [b"b0", b"b1", b"b2"]


def begin_produce(sidecar: Sidecar, sequence: int) -> asyncio.Future[ProduceResponse]:
    data = [TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=numbered(sequence))])]
    return sidecar.begin(ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=data), 12)


def told(answer: ProduceResponse) -> ErrorCode:
    return answer.responses[0].partition_responses[0].error_code


class SlowLog(MemoryLog):
    """What is asked waits until `may_tell` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.may_tell = asyncio.Event()
        self.may_tell.set()

    async def stats(self) -> LogStats:
        await self.may_tell.wait()
        return await super().stats()


async def test_what_waits_until_the_past_is_known_does_not_pass_what_is_refused_in_front_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """b0, a new producer's first batch, waits for the log's end. Another sidecar has kept more than is known, and b1
    waits for that.
    """
    log, states = SlowLog(), MemoryStates()
    for producer_id in range(100, 400):
        log.write(batch(b"old", producer_id=producer_id, epoch=0, sequence=0))
    partition = open_partition(log, states=states, replay_entries=100)
    await append(partition, batch(b"x", producer_id=9_999, epoch=0, sequence=0))
    monkeypatch.setattr(appender, "STALE_FOLD_SECONDS", 0.0)
    confirm = asyncio.Event()

    async def no_end() -> None:
        await confirm.wait()
        raise Unavailable("the owner is moving")

    with monkeypatch.context() as patch:
        patch.setattr(partition._log_end, "confirmed", no_end)
        first = begin_append(partition, numbered(0))
        await asyncio.sleep(0)
        log.may_tell.clear()
        partition.learn_again()
        second = begin_append(partition, numbered(1))
        confirm.set()
        told = [(await first).error, (await second).error]
    log.may_tell.set()
    again = [(await append(partition, numbered(sequence))).error for sequence in (0, 1)]
    partition.close()
    assert (told, again) == ([ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2, [ErrorCode.NONE] * 2)


@pytest.mark.parametrize("is_known", [True, False])
async def test_a_part_of_a_batch_that_was_too_large_is_judged_when_what_was_behind_it_is(is_known: bool) -> None:
    """Java's producer splits a batch that the broker has refused alone, while b2 and b3 are stored behind it. They are
    hidden.
    """
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"x"))
    next_one = 0
    if is_known:
        await append(partition, numbered(0))
        next_one = 1
    log.refuse_sends, log.refuse_with, log.refuse_saying = 1, NOT_ALLOWED, "Exceed maximum message size"
    large = begin_append(partition, batch(b"1a", b"1b", producer_id=7, epoch=0, sequence=next_one))
    log.hold_sends = True
    behind = [begin_append(partition, numbered(next_one + number)) for number in (2, 3)]
    assert (await large).error is ErrorCode.MESSAGE_TOO_LARGE
    parts = [begin_append(partition, numbered(next_one + number)) for number in (0, 1)]
    for _ in range(1_000):
        await asyncio.sleep(0)
    assert not any(part.done() for part in parts)
    log.hold_sends = False
    log.let_go()
    assert [(await one).error for one in behind] == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER] * 2
    assert [(await one).error for one in parts] == [ErrorCode.NONE] * 2
    assert [(await append(partition, numbered(next_one + number))).error for number in (2, 3)] == [ErrorCode.NONE] * 2
    partition.close()


async def test_a_batch_that_can_not_follow_what_is_in_flight_is_told_so_when_that_is_stored() -> None:
    """Its client has left one out."""
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, numbered(0))
    log.hold_sends = True
    first, third = begin_append(partition, numbered(1)), begin_append(partition, numbered(3))
    for _ in range(1_000):
        await asyncio.sleep(0)
    assert not third.done()
    log.hold_sends = False
    log.let_go()
    assert [(await first).error, (await third).error] == [ErrorCode.NONE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
    partition.close()


@pytest.mark.parametrize("in_one_entry", [True, False])
async def test_what_lands_behind_the_end_of_its_transaction_is_told_the_same_in_one_entry(
    in_one_entry: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "MAX_WAIT_SECONDS", 60.0)
    log, coordinator = MemoryLog(), Coordinator(100)
    partition, other = open_partition(log, "kafka-sidecar-a"), open_partition(log, "kafka-sidecar-b")
    assert (await write(partition, coordinator, b"b0", sequence=0)).error is ErrorCode.NONE
    if in_one_entry:
        monkeypatch.setattr(sender, "MAX_ENTRIES_IN_FLIGHT", 1)
    log.hold_sends = True
    begin_append(partition, batch(b"filler"))
    told = [begin_in_transaction(partition, coordinator, b"b%d" % sequence, sequence=sequence) for sequence in (1, 2)]
    for _ in range(1_000):
        await asyncio.sleep(0)
    held, log.held, log.hold_sends = log.held, [], False
    assert len(held) == (1 if in_one_entry else 3)
    await other.opened()
    marker = write_marker(7, 0, EndTransactionMarker(False, 1), 1_000)
    assert await other.end_transaction(marker, 100, asyncio.get_running_loop().time() + 5) is ErrorCode.NONE
    for land in held:
        land()
    assert [(await one.result).error for one in told] == [ErrorCode.NOT_ENOUGH_REPLICAS] * 2
    partition.close()
    other.close()


async def test_what_waits_until_the_past_is_known_does_not_pass_what_no_producer_could_be_had_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The topic is deleted while b0 waits for a producer of Pulsar's, and is there again when b1 may go on."""
    log, states = SlowLog(), MemoryStates()
    for producer_id in range(100, 400):
        log.write(batch(b"old", producer_id=producer_id, epoch=0, sequence=0))
    partition = open_partition(log, states=states, replay_entries=100)
    await append(partition, batch(b"x", producer_id=9_999, epoch=0, sequence=0))
    asked, may_fail = asyncio.Event(), asyncio.Event()

    async def no_writer(_: object) -> None:
        asked.set()
        await may_fail.wait()
        raise TopicMissing("t")

    partition._appender.close()  # as one that was not used for long
    with monkeypatch.context() as patch:
        patch.setattr(_Named, "writer", lambda _, events: no_writer(events))
        first = begin_append(partition, numbered(0))
        await asked.wait()
        log.may_tell.clear()
        partition.learn_again()
        second = begin_append(partition, numbered(1))
        may_fail.set()
        told = [(await first).error]
    log.may_tell.set()
    told.append((await second).error)
    again = [(await append(partition, numbered(sequence))).error for sequence in (0, 1)]
    partition.close()
    assert (told, again) == ([ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2, [ErrorCode.NONE] * 2)


async def test_what_waits_for_its_coordinator_does_not_pass_what_is_refused_in_front_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """b0 waits for the log's end. b1 is asked about once more: who has no epoch for each transaction may have begun the
    next one.
    """
    log, coordinator = MemoryLog(), Coordinator(100)
    partition = open_partition(log)
    await append(partition, batch(b"x", producer_id=9_999, epoch=0, sequence=0))
    confirm = asyncio.Event()

    async def no_end() -> None:
        await confirm.wait()
        raise Unavailable("the owner is moving")

    with monkeypatch.context() as patch:
        patch.setattr(appender, "STALE_FOLD_SECONDS", 0.0)
        patch.setattr(partition._log_end, "confirmed", no_end)
        first = begin_in_transaction(partition, coordinator, b"b0", sequence=0)
        while not partition._appender._held.appends:  # noqa: ASYNC110
            await asyncio.sleep(0)
        patch.setattr(partition._appender, "is_in_flight", lambda _: False)
        coordinator.delay = 0.2
        second = begin_in_transaction(partition, coordinator, b"b1", sequence=1)
        confirm.set()
        told = [(await first.result).error]
    told.append((await second.result).error)
    coordinator.delay = 0.0
    again = [(await write(partition, coordinator, b"b%d" % sequence, sequence=sequence)).error for sequence in (0, 1)]
    partition.close()
    assert (told, again) == ([ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2, [ErrorCode.NONE] * 2)
