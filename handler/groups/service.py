"""Groups as a part of the running sidecar: the coordinator, its topic and what keeps it at work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from handler.config import GroupsConfig
from handler.coordination.leaders import Identity
from handler.coordination.runtime import CoordinatorRuntime, InternalTopic
from handler.groups.coordinator import Coordinator, OnCommitted
from handler.groups.records.codec import GroupRecords
from handler.groups.topics_image import TopicsImage, TopicSource
from handler.groups.vocabulary import Now
from handler.pulsar.admin import PulsarAdmin
from handler.pulsar.client import PulsarClient

SUBSCRIPTION: Final = "kafka-sidecar-groups"
OFFSETS_TOPIC: Final = "__consumer_offsets"

GroupRuntime = CoordinatorRuntime[Coordinator]


class Topics(TopicSource, Protocol):
    """The catalogue, as far as groups need it."""

    def canonical(self, name: str) -> str: ...


def group_runtime(
    client: PulsarClient, admin: PulsarAdmin, config: GroupsConfig, topics: Topics, on_committed: OnCommitted,
    now: Callable[[], Now], own: Identity, awake_clock: Callable[[], float] | None = None,
) -> GroupRuntime:  # fmt: skip
    topic = InternalTopic(
        kind="group", namespace=config.namespace, name=OFFSETS_TOPIC, partitions=config.offsets_partitions,
        subscription=SUBSCRIPTION, producer="kafka-groups", codec=GroupRecords(),
    )  # fmt: skip
    coordinator = Coordinator(
        config,
        now,
        topics.canonical,
        TopicsImage(topics),
        on_committed,
        awake_clock,
    )
    return CoordinatorRuntime(client, admin, topic, own, coordinator)
