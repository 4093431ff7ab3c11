"""What it costs to open partitions, to ask for their ends, and to list topics."""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass
from typing import Final

from bench.batches import Asker, Case, cpu_ns, create_topic, first_to_each
from kafka_sidecar.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafka_sidecar.wire.messages.metadata import MetadataRequest, MetadataResponse

PARTITIONS: Final = 100
EARLIEST: Final = -2


@dataclass(frozen=True, slots=True, kw_only=True)
class OpeningCost:
    what: str
    cpu_ms: float  # of each partition, or topic
    seconds: float  # for all


async def _measure(address: str, pid: int) -> list[OpeningCost]:
    asker = await Asker.open(address)
    name = f"opening-{uuid.uuid4().hex[:8]}"
    topic_id = await create_topic(asker, name, PARTITIONS)
    await asyncio.sleep(1)
    costs = []
    cpu, begun = cpu_ns(pid), time.perf_counter()
    await first_to_each(address, topic_id, Case(name="", records=1, record_bytes=100, partitions=PARTITIONS))
    costs.append(_cost(pid, f"first append to {PARTITIONS} partitions", cpu, begun, PARTITIONS))
    ends = [ListOffsetsPartition(partition_index=index, timestamp=EARLIEST) for index in range(PARTITIONS)]
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=name, partitions=ends)])
    cpu, begun = cpu_ns(pid), time.perf_counter()
    await asker.ask(request, 7, ListOffsetsResponse)
    costs.append(_cost(pid, f"the start of {PARTITIONS} partitions", cpu, begun, PARTITIONS))
    for which in ("all topics, the first time", "all topics, again"):
        cpu, begun = cpu_ns(pid), time.perf_counter()
        listed = await asker.ask(MetadataRequest(topics=None), 12, MetadataResponse)
        costs.append(_cost(pid, which, cpu, begun, len(listed.topics)))
    asker.close()
    return costs


def _cost(pid: int, what: str, cpu: int, begun: float, count: int) -> OpeningCost:
    return OpeningCost(what=what, cpu_ms=(cpu_ns(pid) - cpu) / 1e6 / max(1, count), seconds=time.perf_counter() - begun)


def opening_costs(address: str, pid: int) -> list[OpeningCost]:
    return asyncio.run(_measure(address, pid))
