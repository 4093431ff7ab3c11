"""Real brokers keep the contract that the model of the simulation keeps (tests/simulation/test_contract.py)."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import Iterator

import pytest

from handler.partition.log.port import EntryLog
from handler.partition.log.pulsar_log import PulsarLog
from handler.pulsar.admin import PulsarAdmin
from handler.pulsar.client import PulsarClient
from integration.launcher.pulsar import DEFAULT_VERSION, Standalone, version_tuple
from integration.markers import write_marker
from integration.support import admin
from integration.versions import OLDER_VERSIONS
from tests.contract.all_cases import CASES
from tests.contract.case import ENTRIES_OF_A_LEDGER, Case
from tests.support.stored_topics import PlainTopic

SETTINGS = {
    "managedLedgerMaxEntriesPerLedger": str(ENTRIES_OF_A_LEDGER),
    "managedLedgerMinLedgerRolloverTimeMinutes": "0",
    "retentionCheckIntervalInSeconds": "1",
}
VERSIONS = (DEFAULT_VERSION, *(pytest.param(version, marks=pytest.mark.soak) for version in OLDER_VERSIONS))
# It has apache/pulsar#22572, as 3.3 and later have.
WITHOUT_MARKERS_AT_THE_END = (3, 0, 7)
_topics = itertools.count(1)


class RealTopic:
    """A World: a topic of its own at a real broker."""

    def __init__(self, broker: Standalone, client: PulsarClient, of_admin: PulsarAdmin) -> None:
        self.names_markers = version_tuple(broker.version) < WITHOUT_MARKERS_AT_THE_END
        self._name = f"contract-{os.getpid()}-{next(_topics)}"
        self._url = f"{broker.admin_url}/admin/v2/persistent/public/default/{self._name}"
        self._client = client
        self._admin = of_admin

    async def _call(self, method: str, path: str, body: object = None) -> bytes:
        return await asyncio.to_thread(admin, method, self._url + path, None if body is None else json.dumps(body).encode())

    async def make(self, *, deduplicates: bool) -> None:
        await self._call("PUT", "/partitions", 1)
        if deduplicates:
            await self._call("POST", "/deduplicationEnabled", True)
            async with asyncio.timeout(30):
                while await self._call("GET", "/deduplicationEnabled") != b"true":  # noqa: ASYNC110
                    await asyncio.sleep(0.05)

    def log(self, writer: str) -> EntryLog:
        return PulsarLog(self._client, self._admin, f"persistent://public/default/{self._name}-partition-0", writer, PlainTopic())

    async def unload(self) -> None:
        await asyncio.to_thread(admin, "PUT", f"{self._url}-partition-0/unload")

    async def roll(self) -> None:
        """The broker does, as it has so many entries."""

    async def make_anew(self) -> None:
        await self._call("DELETE", "/partitions?force=true")
        await self._call("PUT", "/partitions", 1)

    async def mark(self) -> None:
        log = self.log("w")
        assert isinstance(log, PulsarLog)
        await write_marker(self._client, await log.topic())

    async def trim(self) -> None:
        log = self.log("w")
        first = (await log.stats()).first
        assert first is not None
        await self._call("POST", "/retention", {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0})
        async with asyncio.timeout(60):
            while True:
                stats = await log.stats()
                if stats.first is None or (stats.first > first and len(stats.ledgers) == 1):
                    return
                await asyncio.sleep(0.05)


@pytest.fixture(scope="module", params=VERSIONS)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    server = Standalone(tmp_path_factory.mktemp("contract"), version=request.param, settings=SETTINGS)
    server.start()
    yield server
    server.stop()


@pytest.mark.parametrize("one", CASES, ids=[one.name for one in CASES])
def test_a_broker_keeps_the_contract(broker: Standalone, one: Case) -> None:
    async def play() -> None:
        client, of_admin = PulsarClient(broker.url), PulsarAdmin(broker.admin_url)
        try:
            topic = RealTopic(broker, client, of_admin)
            await topic.make(deduplicates=one.deduplicates)
            await one.play(topic)
        finally:
            await client.close()
            await of_admin.close()

    asyncio.run(play())
