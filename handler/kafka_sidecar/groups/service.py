"""Groups as a part of the running sidecar: the coordinator, its topic and what keeps it at work."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Final, Protocol

from kafka_sidecar.config import GroupsConfig
from kafka_sidecar.coordination.home import Names
from kafka_sidecar.coordination.runtime import CoordinatorRuntime, InternalTopic
from kafka_sidecar.groups.coordinator import Coordinator, OnCommitted
from kafka_sidecar.groups.records.codec import GroupRecords
from kafka_sidecar.groups.topics_image import TopicsImage, TopicSource
from kafka_sidecar.groups.vocabulary import Now
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.loop.ids import NewId
from kafka_sidecar.model.sidecar import SidecarInfo
from kafka_sidecar.pulsar.ports import Admin, Client

SUBSCRIPTION: Final = "kafka-sidecar-groups"
OFFSETS_TOPIC: Final = "__consumer_offsets"

GroupRuntime = CoordinatorRuntime[Coordinator]


class Topics(TopicSource, Protocol):
    """The catalogue, as far as groups need it."""

    def canonical(self, name: str) -> str: ...
    async def id_of(self, name: str) -> uuid.UUID | None: ...


def group_runtime(
    client: Client,
    admin: Admin,
    config: GroupsConfig,
    topics: Topics,
    on_committed: OnCommitted,
    now: Callable[[], Now],
    own: SidecarInfo,
    names: Names,
    clock: Clock,
    new_id: NewId,
) -> GroupRuntime:
    topic = InternalTopic(
        kind="group",
        namespace=config.namespace,
        name=OFFSETS_TOPIC,
        partitions=config.offsets_partitions,
        subscription=SUBSCRIPTION,
        producer="kafka-groups",
        codec=GroupRecords(),
    )
    image = TopicsImage(topics)
    coordinator = Coordinator(
        config, now, topics.canonical, image, on_committed, clock.awake, lambda: runtime.leaders.may_be_shared
    )
    runtime: GroupRuntime = CoordinatorRuntime(
        client, admin, topic, own, names, coordinator, clock, new_id, topics.id_of
    )
    return runtime
