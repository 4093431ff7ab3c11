"""A producer that did nothing wrong is never OUT_OF_ORDER, and nothing passes what was refused before it."""

from __future__ import annotations

import asyncio

import pytest

from handler.partition import partition as module
from handler.pulsar.entry import LogStats
from handler.wire.error_code import ErrorCode
from handler.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, begin_append, open_partition, read_all
from tests.support.services import NAMESPACE, Sidecar


def numbered(sequence: int, epoch: int = 0) -> bytes:
    return batch(b"b%d" % sequence, producer_id=7, epoch=epoch, sequence=sequence)


@pytest.mark.parametrize(
    ("elsewhere", "then"),
    [([numbered(1), numbered(2), numbered(3)], numbered(4)), ([numbered(0, 1), numbered(1, 1)], numbered(2, 1))],
    ids=["sequence", "epoch"],
)
async def test_a_client_that_comes_back_goes_on_where_it_was_elsewhere(elsewhere: list[bytes], then: bytes) -> None:
    """b1 is stuck on its way from the first sidecar. Its client went to the second one with it, or began a new epoch there."""
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


async def test_what_is_pipelined_behind_a_partition_that_ends_does_not_overtake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OPEN_SECONDS", 0.05)
    log = StuckLog()
    sidecar = Sidecar(logs={NAMESPACE + "t-partition-0": log})
    sidecar.admin.make("t", 1)
    waiting = [begin_produce(sidecar, sequence) for sequence in (0, 1)]
    assert [told(await one) for one in waiting] == [ErrorCode.NOT_LEADER_OR_FOLLOWER] * 2
    log.is_stuck = False
    assert told(await begin_produce(sidecar, 2)) is ErrorCode.NOT_LEADER_OR_FOLLOWER, "it was sent before its client had the two answers"
    assert [told(await begin_produce(sidecar, sequence)) for sequence in range(3)] == [ErrorCode.NONE] * 3
    found = [value for _, value in await read_all(sidecar.table.get(NAMESPACE + "t-partition-0"))]
    await sidecar.close()
    assert found == [b"b0", b"b1", b"b2"]


def begin_produce(sidecar: Sidecar, sequence: int) -> asyncio.Future[ProduceResponse]:
    data = [TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=numbered(sequence))])]
    return sidecar.begin(ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=data), 12)


def told(answer: ProduceResponse) -> ErrorCode:
    return answer.responses[0].partition_responses[0].error_code
