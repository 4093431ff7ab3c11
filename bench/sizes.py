"""How the sidecar starts and how it grows: time and memory of many connections and many partitions."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.batches import Asker, Case, create_topic, first_to_each
from bench.process import ProcessCost
from integration.launcher.jars import ROOT
from integration.launcher.pulsar import Standalone
from integration.launcher.sidecar import SidecarProcess
from kafka_sidecar.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka_sidecar.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse

CONNECTIONS: Final = 5_000
OPENED: Final = 1_000
KNOWN_TOPICS, KNOWN_PARTITIONS = 100, 100
IDLE_SECONDS: Final = 20.0
_RECORD: Final = Case(name="a record of 100 B", records=1, record_bytes=100)
_FILES_BESIDE: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeCost:
    what: str
    seconds: float
    mib: float | None = None  # more than before
    idle_percent: float | None = None  # of a core, when nothing is asked


def _import_seconds() -> float:
    """Of a warm interpreter, the least of three."""
    took = []
    for _ in range(3):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", "import kafka_sidecar.process.run"], cwd=ROOT, check=True)
        bare = time.perf_counter()
        subprocess.run([sys.executable, "-c", ""], cwd=ROOT, check=True)
        took.append(bare - begun - (time.perf_counter() - bare))
    return min(took)


async def _idle_percent(pid: int) -> float:
    await asyncio.sleep(5)
    cost = ProcessCost(pid)
    await asyncio.sleep(IDLE_SECONDS)
    return 100 * cost.cpu_seconds() / IDLE_SECONDS


async def _first_answer(address: str) -> None:
    while True:
        try:
            asker = await Asker.open(address)
        except OSError:
            await asyncio.sleep(0.005)
            continue
        await asker.ask(ApiVersionsRequest(), 2, ApiVersionsResponse)
        asker.close()
        return


async def _idle_connections(address: str, pid: int) -> SizeCost:
    cost = ProcessCost(pid)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    count = min(CONNECTIONS, hard - _FILES_BESIDE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    before, begun = cost.resident_mib(), time.perf_counter()
    askers = [await Asker.open(address) for _ in range(count)]
    for asker in askers:
        await asker.ask(ApiVersionsRequest(), 2, ApiVersionsResponse)
    took = time.perf_counter() - begun
    mib = cost.resident_mib() - before
    idle = await _idle_percent(pid)
    for asker in askers:
        asker.close()
    return SizeCost(
        what=f"{count:,} connections that ask once and are idle then", seconds=took, mib=mib, idle_percent=idle
    )


async def _first_record(address: str) -> SizeCost:
    begun = time.perf_counter()
    asker = await Asker.open(address)
    topic_id = await create_topic(asker, f"first-{uuid.uuid4().hex[:8]}", 1)
    asker.close()
    await first_to_each(address, topic_id, _RECORD)
    return SizeCost(what="a new topic, and its first record", seconds=time.perf_counter() - begun)


async def _known(address: str, pid: int) -> SizeCost:
    """Metadata of all, as a client that subscribes by a pattern asks for it."""
    cost = ProcessCost(pid)
    asker = await Asker.open(address)
    before = cost.resident_mib()
    for number in range(KNOWN_TOPICS):
        await create_topic(asker, f"known-{number}-{uuid.uuid4().hex[:8]}", KNOWN_PARTITIONS)
    begun = time.perf_counter()
    answer = await asker.ask(MetadataRequest(topics=None), 12, MetadataResponse)
    took = time.perf_counter() - begun
    mib = cost.resident_mib() - before
    count = sum(len(topic.partitions) for topic in answer.topics)
    asker.close()
    return SizeCost(
        what=f"Metadata of {count:,} partitions", seconds=took, mib=mib, idle_percent=await _idle_percent(pid)
    )


async def _opened(address: str, pid: int) -> SizeCost:
    cost = ProcessCost(pid)
    asker = await Asker.open(address)
    name = f"opened-{uuid.uuid4().hex[:8]}"
    topic_id = await create_topic(asker, name, OPENED)
    await asker.ask(MetadataRequest(topics=[MetadataRequestTopic(name=name)]), 12, MetadataResponse)
    asker.close()
    before, begun = cost.resident_mib(), time.perf_counter()
    await first_to_each(address, topic_id, Case(name="", records=1, record_bytes=100, partitions=OPENED))
    took, mib = time.perf_counter() - begun, cost.resident_mib() - before
    idle = await _idle_percent(pid)
    return SizeCost(what=f"the first record to each of {OPENED:,} partitions", seconds=took, mib=mib, idle_percent=idle)


def size_costs(pulsar: Standalone, directory: Path) -> list[SizeCost]:
    found = [SizeCost(what="import", seconds=_import_seconds())]
    sidecar = SidecarProcess(directory / "sizes", pulsar.url, pulsar.admin_url)
    begun = time.perf_counter()
    sidecar.begin()
    try:
        asyncio.run(_first_answer(sidecar.address))
        found.append(
            SizeCost(what="from the start of the process to the first answer", seconds=time.perf_counter() - begun)
        )
        sidecar.wait(30)
        found.append(asyncio.run(_first_record(sidecar.address)))
        found.append(asyncio.run(_idle_connections(sidecar.address, sidecar.pid)))
        found.append(asyncio.run(_opened(sidecar.address, sidecar.pid)))
        found.append(asyncio.run(_known(sidecar.address, sidecar.pid)))
    finally:
        sidecar.stop()
    return found
