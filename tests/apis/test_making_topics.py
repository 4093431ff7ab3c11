"""CreateTopics and DeleteTopics that are cut short: what was written is not lost, and the topic can be made, deleted
and used again.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.topics import catalog
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafka_sidecar.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafka_sidecar.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.services import NAMESPACE, MemoryAdmin, Sidecar

T: Final = NAMESPACE + "t"
DAYS_MS: Final = "604800000"


@pytest.fixture
async def sidecar(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sidecar]:
    monkeypatch.setattr(catalog, "NEW_TOPIC_SECONDS", 0.001)
    one = Sidecar()
    yield one
    await one.close()


async def create(sidecar: Sidecar, **configs: str) -> CreatableTopicResult:
    wanted = [CreatableTopicConfig(name=name.replace("_", "."), value=value) for name, value in configs.items()]
    topic = CreatableTopic(name="t", num_partitions=2, replication_factor=1, configs=wanted)
    answer: CreateTopicsResponse = await sidecar.ask(CreateTopicsRequest(topics=[topic]), 7)
    return answer.topics[0]


async def delete(sidecar: Sidecar) -> ErrorCode:
    answer = await sidecar.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=5_000), 4)
    return ErrorCode(answer.responses[0].error_code)


async def metadata(sidecar: Sidecar) -> ErrorCode:
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")], allow_auto_topic_creation=False)
    return ErrorCode((await sidecar.ask(request, 12)).topics[0].error_code)


def without_policies(sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: Any) -> None:
        raise Unavailable("500: the broker of the policies is away")

    monkeypatch.setattr(sidecar.admin, "set_retention", away)


@pytest.mark.parametrize("is_used", [False, True])
async def test_where_its_configs_can_not_be_stored_a_topic_goes_unless_somebody_uses_it(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch, is_used: bool
) -> None:
    without_policies(sidecar, monkeypatch)
    if is_used:
        sidecar.admin.in_use.add(T)
    made = await create(sidecar, retention_ms=DAYS_MS)
    assert made.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (T in sidecar.admin.there) is is_used
    assert ("lacks configs" in str(made.error_message)) is is_used
    assert await metadata(sidecar) is (ErrorCode.NONE if is_used else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


async def test_a_topic_has_its_configs_though_its_first_partition_does_not_answer_yet(sidecar: Sidecar) -> None:
    sidecar.admin.lost_partition.add(T)
    made = await create(sidecar, retention_ms=DAYS_MS)
    assert (made.error_code, made.topic_id) == (ErrorCode.NONE, None)
    assert sidecar.admin.retentions[T][0] == 7 * 24 * 60


async def test_a_topic_that_has_lost_its_first_partition_can_be_deleted_by_its_name(sidecar: Sidecar) -> None:
    """A deletion was cut short."""
    sidecar.admin.make("t", 2)
    sidecar.admin.lost_partition.add(T)
    assert await metadata(sidecar) is ErrorCode.LEADER_NOT_AVAILABLE
    by_id = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=uuid.uuid4())])
    assert (await sidecar.ask(by_id, 6)).responses[0].error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER, (
        "it may be that one"
    )
    assert await delete(sidecar) is ErrorCode.NONE
    assert T not in sidecar.admin.there


async def test_while_pulsar_may_still_be_deleting_nothing_is_made_again(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is made behind a deletion that goes on would be left without a topic: a name that can be neither made nor
    deleted.
    """
    without_policies(sidecar, monkeypatch)
    made: list[str] = []

    async def no_answer(_: str) -> None:
        raise Unavailable("the broker did not answer within 30 s")

    async def note(topic: str) -> None:
        made.append(topic)

    monkeypatch.setattr(sidecar.admin, "delete_unused_topic", no_answer)
    monkeypatch.setattr(sidecar.admin, "create_missing_partitions", note)
    assert "did not answer" in str((await create(sidecar, retention_ms=DAYS_MS)).error_message)
    assert made == []


async def test_a_partition_that_could_not_go_brings_back_those_that_went(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pulsar deletes one after another, and refuses at the first that is in use."""
    without_policies(sidecar, monkeypatch)
    sidecar.admin.in_use.add(T)
    unused = MemoryAdmin.delete_unused_topic

    async def half(topic: str) -> None:
        sidecar.admin.lost_partition.add(topic)
        await unused(sidecar.admin, topic)

    monkeypatch.setattr(sidecar.admin, "delete_unused_topic", half)
    await create(sidecar, retention_ms=DAYS_MS)
    await asyncio.sleep(0)
    assert await metadata(sidecar) is ErrorCode.NONE
