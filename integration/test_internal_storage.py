"""Internal topics give back what is compacted, and whoever reads them finds all that counts."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Consumer, TopicPartition

from integration.kafka_clients import QUIET, create
from integration.launcher.pulsar import Standalone
from integration.launcher.sidecar import SidecarProcess
from integration.patience import wait_for
from integration.support import admin
from kafka_sidecar.pulsar.admin import AlreadyExists, PulsarAdmin
from kafka_sidecar.pulsar.entry import CompactionStats

pytestmark = pytest.mark.soak

OFFSETS: Final = "public/__kafka/__consumer_offsets"
SHARDS: Final = 8
PARTITIONS: Final = 10
GROUPS: Final = [f"group-{number}" for number in range(10)]
COMMITS: Final = 100_000
MOST_BYTES: Final = 4 * 1024 * 1024
TEN_MINUTES: Final = 600.0
INTERLEAVINGS: Final = 20
# In production ledgers are closed after 50,000 entries or four hours. A broker looks for what it may take each two
# minutes.
SETTINGS: Final = {
    "managedLedgerMaxEntriesPerLedger": "1000",
    "managedLedgerMinLedgerRolloverTimeMinutes": "0",
    "managedLedgerMaxLedgerRolloverTimeMinutes": "1",
    "retentionCheckIntervalInSeconds": "2",
}


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    server = Standalone(tmp_path_factory.mktemp("pulsar"), settings=SETTINGS)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def sidecar(broker: Standalone, tmp_path: Path) -> Iterator[SidecarProcess]:
    one = SidecarProcess(tmp_path, broker.url, broker.admin_url, groups__internal_retention_minutes="0")
    one.start()
    yield one
    one.kill()
    assert not one.complaints()


class Groups:
    """Each commits an offset for each partition of a topic, again and again."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._committed = dict.fromkeys(GROUPS, 0)

    def commit(self, sidecar: SidecarProcess, times: int) -> None:
        for group in GROUPS:
            consumer = Consumer({"bootstrap.servers": sidecar.address, "group.id": group, **QUIET})
            for _ in range(times):
                self._committed[group] += 1
                consumer.commit(offsets=self._offsets(self._committed[group]), asynchronous=False)
            consumer.close()

    def check(self, sidecar: SidecarProcess) -> None:
        for group in GROUPS:
            consumer = Consumer({"bootstrap.servers": sidecar.address, "group.id": group, **QUIET})
            found = consumer.committed(self._offsets(0), timeout=60)
            consumer.close()
            assert [one.offset for one in found] == [self._committed[group]] * PARTITIONS, group

    def _offsets(self, offset: int) -> list[TopicPartition]:
        return [TopicPartition(self._topic, partition, offset) for partition in range(PARTITIONS)]


def shards(broker: Standalone) -> list[CompactionStats]:
    async def ask() -> list[CompactionStats]:
        of_admin = PulsarAdmin(broker.admin_url)
        try:
            return [
                await of_admin.topics.compaction_stats(f"persistent://{OFFSETS}-partition-{number}")
                for number in range(SHARDS)
            ]
        finally:
            await of_admin.close()

    return asyncio.run(ask())


def stored(broker: Standalone) -> int:
    return sum(sum(ledger.size for ledger in one.log.ledgers) + one.compacted_bytes for one in shards(broker))


def compact(broker: Standalone, shard: int) -> None:
    async def begin() -> None:
        of_admin = PulsarAdmin(broker.admin_url)
        try:
            await of_admin.topics.compact(f"persistent://{OFFSETS}-partition-{shard}")
        except AlreadyExists:
            pass
        finally:
            await of_admin.close()

    asyncio.run(begin())


def test_a_hundred_thousand_commits_leave_what_counts(broker: Standalone, sidecar: SidecarProcess) -> None:
    create(sidecar.address, "orders", PARTITIONS)
    groups = Groups("orders")
    groups.commit(sidecar, COMMITS // len(GROUPS) // PARTITIONS)
    written = stored(broker)
    assert written > 2 * MOST_BYTES
    wait_for(lambda: stored(broker) <= MOST_BYTES, TEN_MINUTES)
    groups.check(sidecar)
    for restart in (sidecar, broker):
        restart.kill()
        restart.start()
        groups.check(sidecar)
    # Each time something else is under way: a compaction, a shard that moves, a sidecar that dies.
    draw = random.Random(1)
    for _ in range(INTERLEAVINGS):
        groups.commit(sidecar, 3)
        for shard in range(SHARDS):
            if draw.random() < 0.5:
                compact(broker, shard)
            if draw.random() < 0.2:
                admin("PUT", f"{broker.admin_url}/admin/v2/persistent/{OFFSETS}-partition-{shard}/unload")
        if draw.random() < 0.5:
            sidecar.kill()
            sidecar.start()
        groups.check(sidecar)
    assert all(one.is_held for one in shards(broker))
