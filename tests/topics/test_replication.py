"""Which topics are replicated, and whether their entries say how many records they hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, Refused, Unavailable
from kafka_sidecar.topics.replication import FRESH_SECONDS, Counting, Replication

TOPIC = "persistent://public/geo/orders"
LOG = TOPIC + "-partition-0"


@dataclass
class Policies:
    """What an admin API answers: of the namespace, of the topic, and of a partition's subscriptions."""

    namespace: list[str] | PulsarError = field(default_factory=lambda: ["east"])
    topic: list[str] | PulsarError | None = None
    subscriptions: dict[str, dict[str, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    @property
    def cluster(self) -> Policies:
        return self

    @property
    def policies(self) -> Policies:
        return self

    @property
    def topics(self) -> Policies:
        return self

    async def namespace_policies(self, namespace: str) -> dict[str, Any]:
        self.asked.append(namespace)
        return {"replication_clusters": _told(self.namespace)}

    async def replication_clusters(self, topic: str) -> list[str] | None:
        self.asked.append(topic)
        return _told(self.topic)

    async def stats(self, log: str) -> dict[str, Any]:
        assert log == LOG
        return {"subscriptions": self.subscriptions}


def _told(answer: list[str] | PulsarError | None) -> list[str] | None:
    if isinstance(answer, PulsarError):
        raise answer
    return answer


def asking(policies: Policies, *, always_counts: bool = False, now: list[float] | None = None) -> Replication:
    time = now or [0.0]
    return Replication(cast(Any, policies), lambda: time[0], always_counts=always_counts)


@pytest.mark.parametrize(
    ("namespace", "topic", "is_replicated"),
    [
        (["east"], None, False),
        (["east", "west"], None, True),
        (["east", "west"], ["east"], False),
        (["east"], ["east", "west"], True),
        (["east", "west"], Refused("HTTP 405"), True),
        (["east", "west"], Unavailable("HTTP 500"), True),
        (NotPermitted("not for this role"), None, False),
    ],
)
async def test_a_topic_is_replicated_where_the_policies_that_count_name_another_cluster(
    namespace: list[str] | PulsarError, topic: list[str] | PulsarError | None, is_replicated: bool
) -> None:
    replication = asking(Policies(namespace, topic))
    assert await replication.is_topic_replicated(TOPIC) is is_replicated


async def test_what_can_not_be_asked_is_not_taken_for_no() -> None:
    with pytest.raises(Unavailable):
        await asking(Policies(Unavailable("gone"))).is_topic_replicated(TOPIC)


async def test_a_namespace_is_asked_once_in_half_a_minute_for_all_its_topics() -> None:
    now = [100.0]
    policies = Policies(["east"])
    replication = asking(policies, now=now)
    for name in ("a", "b"):
        assert not await replication.is_topic_replicated(f"persistent://public/geo/{name}")
    assert policies.asked.count("public/geo") == 1
    policies.namespace = ["east", "west"]
    now[0] += FRESH_SECONDS
    assert await replication.is_topic_replicated("persistent://public/geo/a")


@pytest.mark.parametrize(
    ("subscriptions", "always", "expected"),
    [
        ({}, False, Counting.WRITTEN),
        ({"__compaction": {"durable": True}}, False, Counting.WRITTEN),
        ({"reader-1": {"durable": False}}, False, Counting.WRITTEN),
        ({"billing": {"durable": True}}, False, Counting.LEFT_OUT),
        ({"billing": {}}, False, Counting.LEFT_OUT),
        ({"billing": {"durable": True}}, True, Counting.WRITTEN),
    ],
)
async def test_nobodys_working_subscription_loses_records(
    subscriptions: dict[str, Any], always: bool, expected: Counting
) -> None:
    policies = Policies(["east", "west"], subscriptions=subscriptions)
    assert await asking(policies, always_counts=always).counting_of(TOPIC, LOG) is expected
    policies.topic = ["east"]
    assert await asking(policies, always_counts=always).counting_of(TOPIC, LOG) is Counting.NOT_NEEDED
