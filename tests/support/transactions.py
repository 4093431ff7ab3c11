"""A producer of transactions, the coordinator that it would have, and a consumer of read_committed."""

from __future__ import annotations

import asyncio

from kafka_sidecar.partition.fold.producers import Verdict
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.write.append import Append
from kafka_sidecar.partition.write.verified_appends import Verification
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.wire.control_records import EndTransactionMarker, write_marker
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import read_produced
from tests.support.batches import batch
from tests.support.fake_broker import until
from tests.support.memory_log import MemoryLog
from tests.support.partitions import Outcome
from tests.support.records import committed_in

ABORTED, COMMITTED = False, True
PRODUCER = 7


class Coordinator:
    """Says which transaction is ongoing; `asked` counts how often."""

    def __init__(self, number: int | ErrorCode = 100) -> None:
        self.number = number
        self.asked = 0
        self.delay = 0.0
        self.fails = 0

    async def __call__(self) -> int | ErrorCode:
        self.asked += 1
        number = self.number
        await asyncio.sleep(self.delay)
        if self.fails:
            self.fails -= 1
            raise Unavailable("no coordinator")
        return number


def begin(
    partition: Partition,
    coordinator: Coordinator,
    *values: bytes,
    sequence: int,
    epoch: int = 0,
    producer: int = PRODUCER,
) -> Outcome:
    data = batch(*values, producer_id=producer, epoch=epoch, sequence=sequence, transactional=True)
    outcome = Outcome()
    batch_append = Append.of(read_produced(data), data, asyncio.get_running_loop().time() + 5, outcome, 0)
    partition.append_to_transaction(batch_append, Verification(coordinator, once_an_epoch=False))
    return outcome


async def write(
    partition: Partition,
    coordinator: Coordinator,
    *values: bytes,
    sequence: int,
    epoch: int = 0,
    producer: int = PRODUCER,
) -> Verdict:
    outcome = begin(partition, coordinator, *values, sequence=sequence, epoch=epoch, producer=producer)
    return await asyncio.wait_for(outcome.result, 5)


async def end(
    partition: Partition, committed: bool, number: int = 100, epoch: int = 0, producer: int = PRODUCER
) -> Verdict:
    data = write_marker(producer, epoch, EndTransactionMarker(committed, 0), 1_000)
    outcome = Outcome()
    partition.append(Append.of_marker(data, number, asyncio.get_running_loop().time() + 5, outcome, 0))
    return await asyncio.wait_for(outcome.result, 5)


async def end_while_a_batch_hangs(log: MemoryLog, hanging: Partition, ending: Partition, *, committed: bool) -> Outcome:
    """One sidecar writes to a transaction, and another ends it. A second batch of the first hangs, and lands with
    `log.let_go`.
    """
    coordinator = Coordinator()
    assert (await write(hanging, coordinator, b"first", sequence=0)).error is ErrorCode.NONE
    log.hold_sends = True
    late = begin(hanging, coordinator, b"late", sequence=1)
    await until(lambda: log.held)
    log.hold_sends = False
    assert (await end(ending, committed)).error is ErrorCode.NONE
    return late


async def committed_values(partition: Partition, offset: int = 0) -> list[bytes | None]:
    """What Kafka's clients show to an application with read_committed: they leave out what they are told was
    aborted.
    """
    assert await partition.opened() is ErrorCode.NONE
    await partition.confirmed_end()
    shown: list[bytes | None] = []
    while offset < partition.last_stable_offset:
        run = partition.read_committed(offset, 100_000, at_least_one=True, since=asyncio.get_running_loop().time())
        if run is None or not run.parts:
            await asyncio.sleep(0.002)
            continue
        assert run.error is ErrorCode.NONE
        aborted = partition.transactions.aborted_between(offset, run.next_offset)
        shown += [value for at, value in committed_in(run.parts, aborted) if at >= offset]
        offset = run.next_offset
    return shown
