"""A sidecar relearns producers where retention has taken what stood behind the values that are kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from kafka_sidecar.partition.fold.fold import Fold
from kafka_sidecar.partition.log.formats import KAFKA
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, begin_append, open_partition

PRODUCER: Final = 7


def numbered(sequence: int) -> bytes:
    return batch(b"b%d" % sequence, producer_id=PRODUCER, epoch=0, sequence=sequence)


def another(producer: int) -> bytes:
    return batch(b"x", producer_id=producer, epoch=0, sequence=0)


def other() -> bytes:
    return batch(b"other")


async def closed(partition: Partition) -> None:
    for keeping in partition.close():
        await keeping


async def ticking(partition: Partition) -> None:
    while True:
        await asyncio.sleep(1.0)
        partition.tick(asyncio.get_running_loop().time())


async def first_append(partition: Partition, data: bytes) -> None:
    """A partition that was opened and written at the same moment would not know that it was written."""
    await partition.opened()
    await asyncio.sleep(0.001)
    await append(partition, data)


async def five_behind_what_is_gone(log: MemoryLog, states: MemoryStates, natives: int) -> int:
    """A sidecar keeps a value, writes b0 to b4 two ledgers on, and is killed. Retention takes what stands between. The
    offset of b4.
    """
    before = open_partition(log, "kafka-sidecar-first", states=states)
    await first_append(before, another(8))
    log.roll()
    for _ in range(5):
        log.write(other())
    log.roll()
    gone = len(log.entries)
    for number in range(5):
        written = await append(before, numbered(number))
    for _ in range(natives):
        log.write(other())
    log.trim(gone)
    return written.base_offset


async def check_retry(partition: Partition, offset: int) -> None:
    """The first idempotent append has the past learnt; then b4 comes again."""
    ticks = asyncio.create_task(ticking(partition))
    assert (await begin_append(partition, another(9), 20)).error is ErrorCode.NONE
    assert (await begin_append(partition, numbered(4), 20)).base_offset == offset
    ticks.cancel()
    await closed(partition)


def when_all_that_is_left_is_read(partition: Partition, do: Callable[[], Awaitable[None]]) -> None:
    replay = partition._replay
    fold_up_to, is_done = replay._fold_up_to, False

    async def up_to(earlier: Fold, *rest: Any) -> int:
        nonlocal is_done
        size = await fold_up_to(earlier, *rest)
        if earlier is replay._left and not is_done:
            is_done = True
            await do()
        return size

    replay._fold_up_to = up_to  # type: ignore[method-assign,assignment]


class StoresLate(MemoryStates):
    """What is being stored hangs, and lands when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_land = asyncio.Event()
        self.may_land.set()
        self.look_is_away = False

    async def names(self, prefix: bytes) -> list[bytes]:
        if self.look_is_away:
            raise Unavailable("no broker")
        return await super().names(prefix)

    async def store(self, key: bytes, value: bytes) -> None:
        await self.may_land.wait()
        await super().store(key, value)


async def five_whose_value_lands_later(
    log: MemoryLog, states: StoresLate, between: int, markers: int, natives: int
) -> tuple[int, Any]:
    """The old sidecar has written b0 to b4 and closes; its last value hangs. Retention takes all that it has written.
    The offset of b4.
    """
    before = open_partition(log, "kafka-sidecar-first", states=states)
    await first_append(before, another(8))
    log.roll()
    for _ in range(between):
        log.write(other())
    for number in range(5):
        written = await append(before, numbered(number))
    await before.confirmed_end()
    log.roll()
    gone = len(log.entries)
    states.may_land.clear()
    closing = asyncio.gather(*before.close())
    await asyncio.sleep(0.01)
    for _ in range(markers):
        log.mark()
    for _ in range(natives):
        log.write(other())
    log.trim(gone)
    return written.base_offset, closing


def go_on_behind_a_marker(log: MemoryLog) -> None:
    """The offsets have a gap there, and no entry is gone."""
    log.mark()
    log.roll()
    for _ in range(5):
        log.write(other())


async def consuming(partition: Partition) -> None:
    while True:
        await asyncio.sleep(0.2)
        if partition.ended is None:
            partition.tick(asyncio.get_running_loop().time())
            partition.read(partition.end_offset, 1_000, at_least_one=True, since=asyncio.get_running_loop().time())


async def five_in_what_is_left(log: MemoryLog, states: MemoryStates, natives: int) -> dict[int, int]:
    """What is kept is of no use, and the sidecar that wrote b0 to b4 was killed. Their offsets."""
    before = open_partition(log, "kafka-sidecar-first", states=states)
    await first_append(before, another(8))
    log.roll()
    for _ in range(3):
        log.write(other())
    log.roll()
    gone = len(log.entries)
    offsets = {number: (await append(before, numbered(number))).base_offset for number in range(5)}
    for _ in range(natives):
        log.write(other())
    log.trim(gone)
    return offsets


def when_a_fold_begins(
    partition: Partition, log: MemoryLog, do: Callable[[], None], seconds: float, *, left: bool
) -> None:
    """Of all that is left, or of what was kept: from then on reading is slow for a while, and `do` comes in the
    middle.
    """
    replay = partition._replay
    fold_up_to, is_begun = replay._fold_up_to, False

    def quick() -> None:
        log.read_delay, log.at_once = 0.0, 10**9

    async def up_to(earlier: Fold, *rest: Any) -> int:
        nonlocal is_begun
        if not is_begun and (earlier is replay._left) is left:
            is_begun = True
            loop = asyncio.get_running_loop()
            log.read_delay, log.at_once = seconds, 20
            loop.call_later(8 * seconds, do)
            loop.call_later(40 * seconds, quick)
        return await fold_up_to(earlier, *rest)

    replay._fold_up_to = up_to  # type: ignore[method-assign,assignment]


def unreadable(log: MemoryLog) -> None:
    metadata = MessageMetadata(producer_name=b"z", sequence_id=1, publish_time=1)
    metadata.MergeFromString(KAFKA.fields)
    log.append(metadata, 1, b"garbage")
