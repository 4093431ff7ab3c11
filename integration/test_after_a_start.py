"""What a sidecar that has just started says of topics while the admin API is slow, fails, or answers 404 to everything.

A client that is told that its topics are missing, or have no partitions, drops them. Of topics that are there it may
hear what is true, or an error after which it asks again.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from kio.schema.describe_topic_partitions.v0.request import TopicRequest
from kio.schema.errors import ErrorCode
from kio.schema.list_offsets.v7.request import ListOffsetsPartition, ListOffsetsTopic
from kio.schema.metadata.v12.request import MetadataRequestTopic

from integration.admin_proxy import AdminProxy, Mood
from integration.conftest import Cluster
from integration.kafka_clients import create, producer
from integration.launcher.sidecar import SidecarProcess
from integration.raw import RawConnection

TOPICS: Final = 10
PARTITIONS: Final = 2
# Longer than the sidecar takes anything of a topic for fresh.
BAD_SECONDS: Final = 8.0
TRY_AGAIN: Final = (
    ErrorCode.leader_not_available,
    ErrorCode.not_leader_or_follower,
    ErrorCode.request_timed_out,
    ErrorCode.kafka_storage_error,
)


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[AdminProxy]:
    one = AdminProxy(cluster.admin_url)
    yield one
    one.close()


@pytest.fixture
def sidecar(cluster: Cluster, proxy: AdminProxy, tmp_path: Path) -> Iterator[SidecarProcess]:
    one = SidecarProcess(tmp_path / "sidecar", cluster.pulsar_url, proxy.url)
    one.start()
    yield one
    proxy.mood = Mood.WELL
    one.stop()
    assert not one.complaints()


class Asking:
    """All that clients ask of topics, in turn. What it was told that is not true is in `wrong`."""

    def __init__(self, address: str, ids: dict[str, uuid.UUID]) -> None:
        self._address = address
        self._ids = ids
        self.wrong: list[object] = []
        self.right = 0

    async def ask_all(self) -> None:
        await self._metadata([MetadataRequestTopic(topic_id=None, name=name) for name in self._ids])  # type: ignore[arg-type]
        await self._metadata([MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in self._ids.values()])
        with suppress(ConnectionError):  # an answer of this version has no room for an error that concerns the list
            await self._metadata(None)
        await self._descriptions()
        await self._offsets()

    async def _ask(self, key: int, version: int, **fields: Any) -> Any:
        connection = await RawConnection.open(self._address)
        try:
            return await connection.ask(key, version, **fields)
        finally:
            connection.close()

    async def _metadata(self, topics: list[MetadataRequestTopic] | None) -> None:
        answer = await self._ask(
            3,
            12,
            topics=None if topics is None else tuple(topics),
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )
        self._judge_topics([one for one in answer.topics if topics is not None or one.name in self._ids])

    async def _descriptions(self) -> None:
        topics: Any = tuple(TopicRequest(name=name) for name in self._ids)  # type: ignore[arg-type]
        self._judge_topics((await self._ask(75, 0, topics=topics)).topics)

    def _judge_topics(self, topics: list[Any]) -> None:
        if len(topics) != TOPICS:
            self.wrong.append(f"{len(topics)} topics of {TOPICS}")
        for one in topics:
            errors = {one.error_code, *(each.error_code for each in one.partitions)} - {ErrorCode.none}
            if errors <= set(TRY_AGAIN) and (errors or len(one.partitions) == PARTITIONS):
                self.right += not errors
            else:
                self.wrong.append(one)

    async def _offsets(self) -> None:
        asked: Any = [ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(PARTITIONS)]  # type: ignore[arg-type]
        topics = tuple(ListOffsetsTopic(name=name, partitions=tuple(asked)) for name in self._ids)  # type: ignore[arg-type]
        answer = await self._ask(2, 7, replica_id=-1, isolation_level=0, topics=topics)
        for topic in answer.topics:
            for one in topic.partitions:
                if one.error_code in TRY_AGAIN or (one.error_code is ErrorCode.none and one.offset == 1):
                    self.right += one.error_code is ErrorCode.none
                else:
                    self.wrong.append((topic.name, one))


@pytest.mark.parametrize("mood", Mood, ids=lambda mood: mood.name.lower())
async def test_topics_that_are_there_are_never_said_to_be_missing(
    sidecar: SidecarProcess, proxy: AdminProxy, topic: str, mood: Mood
) -> None:
    names = [f"{topic}-{number}" for number in range(TOPICS)]
    writer = producer(sidecar.address)
    for name in names:
        create(sidecar.address, name, PARTITIONS)
        for partition in range(PARTITIONS):
            writer.produce(name, b"one", partition=partition)
    assert writer.flush(30) == 0
    connection = await RawConnection.open(sidecar.address)
    wanted: Any = tuple(MetadataRequestTopic(topic_id=None, name=name) for name in names)  # type: ignore[arg-type]
    told = await connection.ask(
        3, 12, topics=wanted, allow_auto_topic_creation=False, include_topic_authorized_operations=False
    )
    ids = {one.name: one.topic_id for one in told.topics}
    assert all(ids.values())
    connection.close()
    sidecar.kill()
    sidecar.start()
    proxy.mood = mood
    asking = Asking(sidecar.address, ids)
    until = time.monotonic() + BAD_SECONDS
    async with asyncio.timeout(120):
        while time.monotonic() < until:
            await asking.ask_all()
            await asyncio.sleep(0.1)
        assert not asking.wrong
        proxy.mood, asking.right = Mood.WELL, 0
        while asking.right < TOPICS * (4 + PARTITIONS):
            asking.right = 0
            await asking.ask_all()
            await asyncio.sleep(0.1)
    assert not asking.wrong
