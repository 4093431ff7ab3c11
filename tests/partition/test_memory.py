"""A backfill over many partitions stays within one budget, and every consumer gets everything all the same."""

from __future__ import annotations

import asyncio

from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import Told, open_table

PARTITIONS = 30
BATCHES = 80
SIZE = 2_000
BUDGET = 50_000  # less than two batches for each


async def consume(partition: Partition, seen: list[int], pause: float) -> None:
    assert await partition.opened() is ErrorCode.NONE
    offset = 0
    while offset < BATCHES:
        run = partition.read(offset, 3 * SIZE, at_least_one=True, since=asyncio.get_running_loop().time())
        if run is None:
            changed = asyncio.Event()
            partition.watch(Told(changed))
            await changed.wait()
            continue
        assert run.error is ErrorCode.NONE
        seen.append(run.next_offset - offset)
        offset = run.next_offset
        await asyncio.sleep(pause)


async def test_many_readers_of_old_data_share_one_budget() -> None:
    logs = {f"t-{index}": MemoryLog() for index in range(PARTITIONS)}
    for log in logs.values():
        for number in range(BATCHES):
            log.write(batch(b"%04d" % number * (SIZE // 4)))
    table = open_table(lambda topic, name: logs[topic].named(name), cache=BUDGET, replay_entries=1, read_ahead=25_000)
    most = 0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, table.cache.used + table.cache.ahead)
            await asyncio.sleep(0)

    seen: dict[str, list[int]] = {topic: [] for topic in logs}
    watching = asyncio.create_task(watch())
    async with asyncio.timeout(60):
        # Some are slow: what was read ahead for them is in the way of the others.
        await asyncio.gather(
            *(consume(table.get(topic), seen[topic], 0.02 * (number % 3)) for number, topic in enumerate(logs))
        )
    watching.cancel()
    assert all(sum(found) == BATCHES for found in seen.values())
    assert most <= BUDGET + 2 * (SIZE + 1_000)
    assert most > BUDGET // 2, "it was tried"
    await table.close()
    assert (table.cache.ahead, len(table.cache.readers)) == (0, 0)
