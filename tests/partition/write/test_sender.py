"""What is sent again when a broker comes back, and what is not: for whom nobody waits, and what the broker can't
take.
"""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.partition.fold.producers import Verdict
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.wire.error_code import ErrorCode
from tests.model.connections import Writer
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, begin_append, open_partition

MIB = 1024 * 1024


async def test_batches_that_their_producer_has_given_up_are_not_stored_when_the_broker_is_back() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    assert (await append(partition, batch(b"first", producer_id=1, epoch=0, sequence=0))).accepted
    log.hold_sends = True
    loop = asyncio.get_running_loop()
    for epoch in range(1, 6):  # it bumps its epoch and tries again, as clients do
        given_up = begin_append(partition, batch(b"x", producer_id=1, epoch=epoch, sequence=0), 0.01)
        await asyncio.sleep(0.02)
        partition.tick(loop.time())
        assert given_up.result().error is ErrorCode.REQUEST_TIMED_OUT
    log.held.clear()  # the broker has never had them
    log.hold_sends = False
    log.disconnect()
    assert await append(partition, batch(b"last", producer_id=1, epoch=6, sequence=0)) == Verdict(ErrorCode.NONE, 1)
    assert len(log.entries) == 2
    assert not partition._appender.pending
    partition.close()


async def test_a_batch_that_another_follows_is_sent_again_though_nobody_waits_for_it() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    assert (await append(partition, batch(b"first", producer_id=1, epoch=0, sequence=0))).accepted
    log.hold_sends = True
    given_up = begin_append(partition, batch(b"second", producer_id=1, epoch=0, sequence=1), 0.01)
    await asyncio.sleep(0.02)
    partition.tick(asyncio.get_running_loop().time())
    assert given_up.result().error is ErrorCode.REQUEST_TIMED_OUT
    follows = begin_append(partition, batch(b"third", producer_id=1, epoch=0, sequence=2), 5)
    log.held.clear()
    log.hold_sends = False
    log.disconnect()
    assert await asyncio.wait_for(follows, 5) == Verdict(ErrorCode.NONE, 2)
    partition.close()


async def test_what_was_sent_behind_a_batch_that_timed_out_has_timed_out_too() -> None:
    """Its producer is not told what became of the first: nor of one behind it, else it would go on."""
    log = MemoryLog()
    partition = open_partition(log)
    assert (await append(partition, batch(b"first", producer_id=1, epoch=0, sequence=0))).accepted
    log.hold_sends = True
    sent = [
        begin_append(partition, batch(b"x", producer_id=producer, epoch=0, sequence=sequence), seconds)
        for producer, sequence, seconds in ((1, 1, 0.01), (1, 2, 5), (2, 0, 5))
    ]
    await asyncio.sleep(0.02)
    partition.tick(asyncio.get_running_loop().time())
    log.hold_sends = False
    log.let_go()
    assert [(await one).error for one in sent] == [
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NONE,
    ]
    assert await append(partition, batch(b"x", producer_id=1, epoch=0, sequence=1)) == Verdict(ErrorCode.NONE, 1)
    partition.close()


@pytest.mark.parametrize("producer_id", [-1, 7])
async def test_an_entry_that_the_broker_can_never_store_does_not_keep_the_partition_busy(producer_id: int) -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await partition.opened()
    log.refuse_sends = 1_000
    sequence = 0 if producer_id >= 0 else -1
    refused = begin_append(partition, batch(b"x", producer_id=producer_id, epoch=sequence, sequence=sequence), 1)
    for _ in range(30):
        await asyncio.sleep(0.1)
        partition.tick(asyncio.get_running_loop().time())
    assert refused.result().error is ErrorCode.REQUEST_TIMED_OUT
    assert log.refuse_sends > 1_000 - 8, "there are pauses, which grow"
    assert not partition._appender.pending
    log.refuse_sends = 0
    assert (await append(partition, batch(b"y"))).accepted
    partition.close()


async def test_how_large_a_batch_may_be_is_what_the_broker_says() -> None:
    log = MemoryLog(max_message_size=20 * MIB)
    partition = open_partition(log)
    assert (await append(partition, batch(b"x" * 6 * MIB))).accepted
    assert (await append(partition, batch(b"x" * 21 * MIB))).error is ErrorCode.MESSAGE_TOO_LARGE
    partition.close()


async def test_a_batch_that_is_too_large_is_refused_before_the_broker_cuts_the_connection_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = MemoryLog(max_message_size=MIB)
    real = Writer.send

    def send(
        self: Writer, sequence: int, count: int, fields: bytes, payload: bytes, basis: tuple[bytes, bytes] | None
    ) -> None:
        if len(payload) > MIB:
            self.lose(Unavailable("the broker closed the connection"))
        else:
            real(self, sequence, count, fields, payload, basis)

    monkeypatch.setattr(Writer, "send", send)
    partition = open_partition(log)
    large = begin_append(partition, batch(b"x" * 3 * MIB, producer_id=7, epoch=0, sequence=0))
    behind = begin_append(partition, batch(b"y", producer_id=7, epoch=0, sequence=1))
    other = begin_append(partition, batch(b"z", producer_id=8, epoch=0, sequence=0))
    assert (await asyncio.wait_for(other, 5)).accepted
    assert large.result().error is ErrorCode.MESSAGE_TOO_LARGE
    assert behind.result().error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "the log has no hole"
    assert len(log.entries) == 1
    partition.close()
