"""Real brokers keep the contract that the model of the simulation keeps (tests/model/test_contract.py)."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Final

import httpx
import pytest

from integration.launcher.jars import CACHE
from integration.launcher.pulsar import DEFAULT_VERSION, Standalone, version_tuple
from integration.markers import write_marker
from integration.support import admin
from integration.two_clusters import NAMES, two_clusters
from integration.versions import OLDER_VERSIONS, OLDEST
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.partition.log.pulsar_log import PulsarLog
from kafka_sidecar.pulsar.admin import PulsarAdmin
from kafka_sidecar.pulsar.client import PulsarClient
from kafka_sidecar.pulsar.errors import Unavailable
from tests.contract.all_cases import CASES
from tests.contract.case import ENTRIES_OF_A_LEDGER, Case, World
from tests.contract.copies import COPIES, Clusters
from tests.contract.internal import INTERNAL, Internal
from tests.contract.table import Played, as_table, noted
from tests.support.stored_topics import PlainTopic

SETTINGS = {
    "managedLedgerMaxEntriesPerLedger": str(ENTRIES_OF_A_LEDGER),
    "managedLedgerMinLedgerRolloverTimeMinutes": "0",
    "retentionCheckIntervalInSeconds": "1",
}
VERSIONS = (DEFAULT_VERSION, *(pytest.param(version, marks=pytest.mark.soak) for version in OLDER_VERSIONS))
# It has apache/pulsar#22572, as 3.3 and later have.
WITHOUT_MARKERS_AT_THE_END = (3, 0, 7)
# It has apache/pulsar#23697.
WITH_ENTRIES_OF_COPIES = (4, 1)
NAMESPACE: Final = "public/contract"
_topics = itertools.count(1)


class RealTopic:
    """A World: a topic of its own at a real broker."""

    def __init__(self, broker: Standalone, client: PulsarClient, of_admin: PulsarAdmin, topic: str) -> None:
        self.names_markers = version_tuple(broker.version) < WITHOUT_MARKERS_AT_THE_END
        self._topic = topic
        self._url = f"{broker.admin_url}/admin/v2/persistent/{topic}"
        self._client = client
        self._admin = of_admin

    async def _call(self, method: str, path: str, body: object = None) -> bytes:
        return await asyncio.to_thread(
            admin, method, self._url + path, None if body is None else json.dumps(body).encode()
        )

    async def make_if_it_is_not_there(self) -> None:
        """Some versions make a topic in each cluster."""
        try:
            await self._call("PUT", "/partitions", 1)
        except httpx.HTTPStatusError as error:
            if error.response.status_code != HTTPStatus.CONFLICT:
                raise

    async def lacks(self, other: str) -> bool:
        """Whether the cluster `other` has yet to get something of it."""
        stats = json.loads(await self._call("GET", "-partition-0/stats"))
        replicated = stats.get("replication", {}).get(other)
        return replicated is None or not replicated["connected"] or replicated["replicationBacklog"] > 0

    async def make(self, *, deduplicates: bool) -> None:
        await self._call("PUT", "/partitions", 1)
        if deduplicates:
            await self._call("POST", "/deduplicationEnabled", True)
            async with asyncio.timeout(30):
                while await self._call("GET", "/deduplicationEnabled") != b"true":  # noqa: ASYNC110
                    await asyncio.sleep(0.05)

    def log(self, writer: str) -> EntryLog:
        return PulsarLog(self._client, self._admin, f"persistent://{self._topic}-partition-0", writer, PlainTopic())

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


class RealClusters:
    """A topic that two brokers copy to each other."""

    source = NAMES[0]

    def __init__(self, here: RealTopic, there: RealTopic, *, names_entries: bool) -> None:
        self.names_entries = names_entries
        self.here = here
        self.there = there

    async def replicate(self) -> None:
        async with asyncio.timeout(60):
            for topic, other in ((self.here, NAMES[1]), (self.there, NAMES[0])):
                while await topic.lacks(other):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)


@asynccontextmanager
async def at(broker: Standalone, topic: str) -> AsyncIterator[RealTopic]:
    client, of_admin = PulsarClient(broker.url), PulsarAdmin(broker.admin_url)
    try:
        yield RealTopic(broker, client, of_admin, topic)
    finally:
        await client.close()
        await of_admin.close()


def new_name() -> str:
    return f"contract-{os.getpid()}-{next(_topics)}"


@pytest.fixture(scope="module")
def played() -> Iterator[Played]:
    """What this run has seen: `.cache/contract.md` is made of it."""
    seen: Played = {}
    yield seen
    CACHE.mkdir(exist_ok=True)
    (CACHE / "contract.md").write_text(as_table(seen))


@pytest.fixture(scope="module", params=VERSIONS)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    server = Standalone(tmp_path_factory.mktemp("contract"), version=request.param, settings=SETTINGS)
    server.start()
    yield server
    server.stop()


@pytest.mark.parametrize("one", CASES, ids=[one.name for one in CASES])
def test_a_broker_keeps_the_contract(broker: Standalone, one: Case[World], played: Played) -> None:
    async def play() -> None:
        async with at(broker, f"public/default/{new_name()}") as topic:
            await topic.make(deduplicates=one.deduplicates)
            await one.play(topic)

    with noted(played, one, broker.version):
        asyncio.run(play())


class RealInternal:
    """A topic of its own, and a client for each name."""

    def __init__(self, broker: Standalone, of_admin: PulsarAdmin, topic: str) -> None:
        self.topic = f"persistent://{topic}"
        self.partition = f"{self.topic}-partition-0"
        self.admin = of_admin
        self._broker = broker
        self.clients: dict[str, PulsarClient] = {}

    def client(self, name: str) -> PulsarClient:
        if name not in self.clients:
            self.clients[name] = PulsarClient(self._broker.url)
        return self.clients[name]

    def roll(self) -> None:
        """The broker does, as it has so many entries."""

    async def cut(self, name: str) -> None:
        for connection in list(self.clients[name]._connections.values()):
            connection.abort(Unavailable("cut"))


@pytest.mark.parametrize("one", INTERNAL, ids=[one.name for one in INTERNAL])
def test_a_broker_keeps_the_contract_of_internal_topics(
    broker: Standalone, one: Case[Internal], played: Played
) -> None:
    async def play() -> None:
        topic = f"public/default/{new_name()}"
        async with at(broker, topic) as real:
            await real.make(deduplicates=False)
            internal = RealInternal(broker, real._admin, topic)
            try:
                await one.play(internal)
            finally:
                for client in internal.clients.values():
                    await client.close()

    with noted(played, one, broker.version):
        asyncio.run(play())


@pytest.fixture(scope="module", params=(DEFAULT_VERSION, OLDEST))
def clusters(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Standalone, Standalone]]:
    with two_clusters(tmp_path_factory.mktemp("clusters"), NAMESPACE, request.param) as brokers:
        yield brokers


@pytest.mark.soak
@pytest.mark.parametrize("one", COPIES, ids=[one.name for one in COPIES])
def test_two_clusters_keep_the_contract(
    clusters: tuple[Standalone, Standalone], one: Case[Clusters], played: Played
) -> None:
    async def play() -> None:
        name = f"{NAMESPACE}/{new_name()}"
        async with at(clusters[0], name) as here, at(clusters[1], name) as there:
            for topic in (here, there):
                await topic.make_if_it_is_not_there()
            await one.play(
                RealClusters(here, there, names_entries=version_tuple(clusters[0].version) >= WITH_ENTRIES_OF_COPIES)
            )

    with noted(played, one, clusters[0].version):
        asyncio.run(play())
