"""What a sidecar takes for what it knows of producers, as the system counts it: what docs/operations.md says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import Any, Final

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kio.schema.produce.v8.request import PartitionProduceData, TopicProduceData

from integration.launcher.sidecar import SidecarProcess
from integration.patience import LONG
from integration.raw import RawConnection, milliseconds
from integration.support import resident_mib
from tests.support.batches import batch

pytestmark = pytest.mark.soak

FIRST_PRODUCER: Final = 1_000_000
IN_FLIGHT: Final = 500  # requests


async def _written(connection: RawConnection, topic: str, batches: Sequence[tuple[int, bytes]]) -> None:
    """Each with its partition; sent again where it is told to come again."""
    until = time.monotonic() + 30 * LONG
    while batches:
        assert time.monotonic() < until, f"{len(batches)} batches are still refused"
        parts: list[PartitionProduceData] = []
        for partition, data in batches:
            one: dict[str, Any] = {"index": partition, "records": data}
            parts.append(PartitionProduceData(**one))
        asked: dict[str, Any] = {"name": topic, "partition_data": tuple(parts)}
        answer = await connection.ask(
            0, 8, transactional_id=None, acks=-1, timeout=milliseconds(30_000), topic_data=(TopicProduceData(**asked),)
        )
        answers = answer.responses[0].partition_responses
        refused = [sent for sent, told in zip(batches, answers, strict=True) if int(told.error_code)]
        assert all(told.error_code.retriable for told in answers if int(told.error_code))
        if refused:
            print(
                f"{len(refused)} of {len(batches)} are to come again: "
                f"{next(one for one in answers if int(one.error_code)).error_code!r}"
            )
            await asyncio.sleep(1)
        batches = refused


async def _write(address: str, topic: str, partitions: int, producers: int) -> None:
    """The first batch of each producer, to each partition."""
    connection = await RawConnection.open(address)
    free = asyncio.Semaphore(IN_FLIGHT if partitions == 1 else 1)

    async def written(producer: int) -> None:
        async with free:
            data = batch(b"v", producer_id=FIRST_PRODUCER + producer, epoch=0, sequence=0)
            await _written(connection, topic, [(partition, data) for partition in range(partitions)])

    try:
        async with asyncio.TaskGroup() as writing:
            for producer in range(producers):
                writing.create_task(written(producer))
    finally:
        connection.close()


@pytest.mark.parametrize(("partitions", "producers", "mib"), [(1_000, 500, 160), (1, 200_000, 50)])
def test_producers_take_no_more_than_their_account(
    own_sidecar: SidecarProcess, topic: str, partitions: int, producers: int, mib: int
) -> None:
    """Within a fifth of the 134 MiB that docs/operations.md says, or three fifths of 31 MiB. None of them is refused
    for good.
    """
    admin = AdminClient({"bootstrap.servers": own_sidecar.address})
    admin.create_topics([NewTopic(topic, partitions)])[topic].result(LONG)
    before, begun = resident_mib(own_sidecar.pid), time.monotonic()
    asyncio.run(_write(own_sidecar.address, topic, partitions, producers))
    took = resident_mib(own_sidecar.pid) - before
    print(
        f"{partitions * producers:,} producers of {partitions:,} partitions: {took:.0f} MiB, "
        f"{time.monotonic() - begun:.0f} s"
    )
    assert took < mib
    assert not own_sidecar.complaints()
