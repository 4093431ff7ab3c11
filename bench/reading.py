"""What reading costs: all of a topic by a client that only counts, when the sidecar has none of it in memory and when
it has all.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass
from typing import Final

from bench.batches import Asker, Case, cpu_ns, create_topic, fill
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kafka_sidecar.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from kafka_sidecar.wire.records import split_batches

FETCH_VERSION: Final = 13
CASE: Final = Case(name="15.5 KB batches", records=15, record_bytes=1024)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingCost:
    state: str
    cpu_s_per_gib: float
    mib_s: float


async def _read(asker: Asker, topic_id: uuid.UUID, offset: int, end: int) -> int:
    """Read up to `end`, as a Java consumer asks for it; returns the bytes."""
    total = 0
    while offset < end:
        part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=2**20)
        request = FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=50 * 2**20,
            topics=[FetchTopic(topic_id=topic_id, partitions=[part])],
        )
        answer = await asker.ask(request, FETCH_VERSION, FetchResponse)
        partition = answer.responses[0].partitions[0]
        if partition.error_code is not ErrorCode.NONE:
            raise SystemExit(f"reading at offset {offset} failed: {partition.error_code.name}")
        records = b"".join(partition.records or ())
        total += len(records)
        for header, _ in split_batches(records):
            offset = header.base_offset + header.offset_count
    return total


async def _measure(address: str, pid: int, topic_id: uuid.UUID, end: int, state: str) -> ReadingCost:
    asker = await Asker.open(address)
    await asker.ask(MetadataRequest(topics=[MetadataRequestTopic(topic_id=topic_id, name=None)]), 12, MetadataResponse)
    cpu, begun = cpu_ns(pid), time.perf_counter()
    size = await _read(asker, topic_id, 0, end)
    took = time.perf_counter() - begun
    asker.close()
    return ReadingCost(state=state, cpu_s_per_gib=(cpu_ns(pid) - cpu) / 1e9 * 2**30 / size, mib_s=size / took / 2**20)


async def _fill(address: str, mib: int) -> tuple[uuid.UUID, int]:
    asker = await Asker.open(address)
    topic_id = await create_topic(asker, f"reading-{uuid.uuid4().hex[:8]}", 1)
    asker.close()
    batches = mib * 2**20 // 15_500
    await fill(address, topic_id, CASE, batches)
    return topic_id, batches * CASE.records


def write_for_reading(address: str, mib: int) -> tuple[uuid.UUID, int]:
    """A topic of so many MiB, and its end offset."""
    return asyncio.run(_fill(address, mib))


def reading_costs(address: str, pid: int, topic_id: uuid.UUID, end: int) -> list[ReadingCost]:
    """`address` is that of a sidecar that has not seen the topic yet."""
    return [asyncio.run(_measure(address, pid, topic_id, end, state)) for state in ("cold", "hot")]
