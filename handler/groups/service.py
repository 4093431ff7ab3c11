"""Groups as a part of the running sidecar: the coordinator, its topic and what keeps it at work."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from functools import partial
from typing import Final, Protocol

from handler.config import GroupsConfig, KafkaConfig
from handler.coordination.leaders import Identity
from handler.coordination.runtime import CoordinatorRuntime, InternalTopic
from handler.groups.coordinator import Coordinator, OnCommitted
from handler.groups.machine import Now
from handler.groups.records.codec import GroupRecords
from handler.groups.topics_image import TopicsImage, TopicSource
from handler.pulsar.admin import PulsarAdmin
from handler.pulsar.client import PulsarClient

SUBSCRIPTION: Final = "kafka-sidecar-groups"

GroupRuntime = CoordinatorRuntime[Coordinator]


class Topics(TopicSource, Protocol):
    """The catalogue, as far as groups need it."""

    def canonical(self, name: str) -> str: ...


def group_runtime(
    client: PulsarClient, admin: PulsarAdmin, config: GroupsConfig, kafka: KafkaConfig, topics: Topics, on_committed: OnCommitted,
    clock: Callable[[], float],
) -> GroupRuntime:  # fmt: skip
    topic = InternalTopic(
        namespace=config.namespace, name="__consumer_offsets", partitions=config.offsets_partitions,
        subscription=SUBSCRIPTION, producer="kafka-groups", codec=GroupRecords(),
    )  # fmt: skip
    coordinator = Coordinator(
        config,
        lambda: Now(clock(), time.time_ns() // 1_000_000),
        topics.canonical,
        TopicsImage(topics),
        on_committed,
        partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)),
    )
    own = Identity(f"kafka-sidecar-{uuid.uuid4().hex[:16]}", kafka.node_id, kafka.advertised)
    return CoordinatorRuntime(client, admin, topic, own, coordinator)
