"""Many producers of small batches, each with one request in flight, on one partition or on several."""

from __future__ import annotations

import asyncio
import time
import uuid
from dataclasses import dataclass
from typing import Final

from bench.batches import Asker, Case, Loop, cpu_ns, create_topic, made_batch, numbered, request_of
from kafka_sidecar.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

SHAPES: Final = ((100, 1), (100, 16), (10, 1))  # producers, partitions
BATCHES: Final = 8_000
SLICES: Final = 5
_RECORD: Final = Case(name="a record of 100 B", records=1, record_bytes=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class CrowdCost:
    system: str
    producers: int
    partitions: int
    batches_per_s: float  # of the middle slice
    us_a_batch: float  # CPU of the server
    broker_us_a_batch: float | None  # of the broker behind the sidecar


async def _producer_id(asker: Asker) -> int:
    request = InitProducerIdRequest(transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1)
    return (await asker.ask(request, 4, InitProducerIdResponse)).producer_id


async def _measure(
    system: str, address: str, pid: int, broker_pid: int | None, producers: int, partitions: int
) -> CrowdCost:
    asker = await Asker.open(address)
    topic = await create_topic(asker, f"crowd-{uuid.uuid4().hex[:8]}", partitions)
    host, _, port = address.partition(":")
    loop = asyncio.get_running_loop()
    clients = []
    for _ in range(producers):
        producer_id = await _producer_id(asker)
        _, client = await loop.create_connection(lambda: Loop(1), host, int(port))
        clients.append((producer_id, client))
    batch = made_batch(_RECORD)
    each = BATCHES // producers
    slices: list[tuple[float, float, float]] = []
    for number in range(SLICES + 1):
        requests = [
            [
                request_of(sequence, topic, [numbered(batch, producer_id, sequence)], place % partitions)
                for sequence in range(number * each, (number + 1) * each)
            ]
            for place, (producer_id, _) in enumerate(clients)
        ]
        await asyncio.sleep(0.2)
        begun, cpu, broker_cpu = time.perf_counter(), cpu_ns(pid), 0 if broker_pid is None else cpu_ns(broker_pid)
        await asyncio.gather(*(client.run(own) for (_, client), own in zip(clients, requests, strict=True)))
        total = each * producers
        rate = total / (time.perf_counter() - begun)
        broker = 0.0 if broker_pid is None else (cpu_ns(broker_pid) - broker_cpu) / 1_000 / total
        if number:  # the first opens the partitions
            slices.append((rate, (cpu_ns(pid) - cpu) / 1_000 / total, broker))
    asker.close()
    rate, cost, broker = sorted(slices)[len(slices) // 2]
    return CrowdCost(
        system=system,
        producers=producers,
        partitions=partitions,
        batches_per_s=rate,
        us_a_batch=cost,
        broker_us_a_batch=None if broker_pid is None else broker,
    )


def crowd_costs(system: str, address: str, pid: int, broker_pid: int | None) -> list[CrowdCost]:
    return [asyncio.run(_measure(system, address, pid, broker_pid, *shape)) for shape in SHAPES]
