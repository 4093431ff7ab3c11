"""What waiting costs: consumers at the end of partitions to which nobody writes."""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass
from typing import Final

from bench.batches import Asker, cpu_ns, create_topic
from kafka_sidecar.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic

CONSUMERS: Final = 10
PARTITIONS: Final = 200
SECONDS: Final = 10.0
MAX_WAIT_MS: Final = 500
FETCH_VERSION: Final = 13


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingCost:
    sessions: bool  # KIP-227: only what has changed is told; librdkafka has none
    of_a_core: float
    us_a_partition: float

    @property
    def how(self) -> str:
        return "with sessions" if self.sessions else "without sessions"


async def _wait(address: str, topic_id: uuid.UUID, sessions: bool, until: float) -> int:
    asker = await Asker.open(address)
    partitions = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=2**20) for index in range(PARTITIONS)
    ]
    session_id, epoch = 0, 0 if sessions else -1
    done = 0
    while time.perf_counter() < until:
        whole = epoch <= 0
        request = FetchRequest(
            max_wait_ms=MAX_WAIT_MS,
            min_bytes=1,
            max_bytes=2**24,
            session_id=session_id,
            session_epoch=epoch,
            topics=[FetchTopic(topic_id=topic_id, partitions=partitions)] if whole else [],
        )
        answer = await asker.ask(request, FETCH_VERSION, FetchResponse)
        session_id = answer.session_id
        epoch = epoch + 1 if sessions else -1
        done += 1
    asker.close()
    return done


async def _measure(address: str, pid: int, sessions: bool) -> WaitingCost:
    asker = await Asker.open(address)
    topic_id = await create_topic(asker, f"waiting-{uuid.uuid4().hex[:8]}", PARTITIONS)
    asker.close()
    await _wait(address, topic_id, sessions, time.perf_counter() + 2)  # opens them
    begun, cpu = time.perf_counter(), cpu_ns(pid)
    counts = await asyncio.gather(*(_wait(address, topic_id, sessions, begun + SECONDS) for _ in range(CONSUMERS)))
    used = (cpu_ns(pid) - cpu) / 1e9
    return WaitingCost(
        sessions=sessions,
        of_a_core=used / (time.perf_counter() - begun),
        us_a_partition=used * 1e6 / (sum(counts) * PARTITIONS),
    )


def waiting_costs(address: str, pid: int) -> list[WaitingCost]:
    return [asyncio.run(_measure(address, pid, sessions)) for sessions in (False, True)]
