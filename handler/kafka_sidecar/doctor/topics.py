"""What `kafka-sidecar doctor --topics` looks at: every topic, and its readers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from kafka_sidecar.config import ENTRY_FORMATS, GroupsConfig, KafkaConfig
from kafka_sidecar.doctor.cluster import Finding, Severity
from kafka_sidecar.internal_topics.transactional_partitions import stored_beginnings
from kafka_sidecar.model.partition_name import topic_of
from kafka_sidecar.pulsar.admin import PulsarAdmin
from kafka_sidecar.pulsar.client import PulsarClient
from kafka_sidecar.pulsar.errors import PulsarError, TopicMissing, Undescribed
from kafka_sidecar.subscriptions.mirror import can_be_mirrored, is_named
from kafka_sidecar.topics.catalog import Catalog
from kafka_sidecar.topics.names import TopicName
from kafka_sidecar.topics.replication import Replication, durable_readers

# The doctor examines 8 topics at once, and the partitions of each topic one by one, to spare the admin API.
TOPICS_AT_ONCE: Final = 8


async def examine_topics(
    client: PulsarClient, admin: PulsarAdmin, catalog: Catalog, kafka: KafkaConfig, groups: GroupsConfig
) -> AsyncIterator[Finding]:
    try:
        async for finding in _topics_from_before(admin, catalog):
            yield finding
        async for finding in _replicated_without_count(admin, catalog, kafka):
            yield finding
        async for finding in _native_readers_of_transactions(client, admin, catalog, groups):
            yield finding
    except PulsarError as error:
        yield Finding(Severity.FAULT, "topics", f"they can't be looked at: {error}", transient=error.retriable)


async def _topics_from_before(admin: PulsarAdmin, catalog: Catalog) -> AsyncIterator[Finding]:
    """The topics of the listed namespaces that have a partition which begins with entries without an index. May raise
    PulsarError.
    """
    names = await catalog.list_names()
    for begin in range(0, len(names), TOPICS_AT_ONCE):
        part = [name for name in names[begin : begin + TOPICS_AT_ONCE] if not name.internal]
        for name, is_old in zip(
            part, await asyncio.gather(*(_begins_without_index(admin, catalog, name) for name in part)), strict=True
        ):
            if is_old:
                yield Finding(
                    Severity.WARNING,
                    "topics",
                    f"{catalog.names.kafka(name)} begins with entries from before AppendIndexMetadataInterceptor was "
                    "on: "
                    "Kafka clients are given what comes after them, from offset 0 on; `kafka-sidecar pipeline reindex` "
                    "copies all of it",
                )


async def _begins_without_index(admin: PulsarAdmin, catalog: Catalog, name: TopicName) -> bool:
    try:
        topic = await catalog.find(name)
        for index in range(topic.partitions):
            log = await catalog.log_of(name.partition(index))
            first = (await admin.topics.log_stats(log)).first
            if first is not None and await admin.topics.index_of(log, first) is None:
                return True
    except (TopicMissing, Undescribed):  # the topic was deleted, or lost a partition, in the meantime
        pass
    return False


async def _replicated_without_count(admin: PulsarAdmin, catalog: Catalog, kafka: KafkaConfig) -> AsyncIterator[Finding]:
    """The topics that are copied to another cluster, where nobody can read them. May raise PulsarError."""
    replication = Replication(admin, asyncio.get_running_loop().time, always_counts=kafka.replicated_count)
    for name in await catalog.list_names():
        if name.internal or not await replication.is_topic_replicated(name.pulsar):
            continue
        try:
            topic = await catalog.find(name)
            own = topic.record_configs.entry_format
            if (own or kafka.entry_format) != ENTRY_FORMATS[0] or kafka.replicated_count:
                continue
            readers = {
                reader
                for index in range(topic.partitions)
                for reader in durable_readers(
                    (await admin.topics.stats(await catalog.log_of(name.partition(index)))).get("subscriptions", {})
                )
            }
        except (TopicMissing, Undescribed):  # the topic was deleted in the meantime
            continue
        if readers:
            yield Finding(
                Severity.FAULT,
                "replication",
                f"{catalog.names.kafka(name)} is copied to another cluster, where its batches of several records can't "
                "be read: native "
                f"consumers of {', '.join(sorted(readers))} would not be given them here if they said how many records "
                "they have. "
                "Set entry.format=pulsar, or kafka.replicated_count=true where those consumers have "
                "KafkaPayloadProcessor",
            )


async def _native_readers_of_transactions(
    client: PulsarClient, admin: PulsarAdmin, catalog: Catalog, groups: GroupsConfig
) -> AsyncIterator[Finding]:
    """The mirrored groups whose subscription has native consumers on a topic with transactions. May raise
    PulsarError.
    """
    found: set[tuple[str, str]] = set()
    partitions = await stored_beginnings(client, admin, groups.namespace) if groups.mirror else {}
    for partition in sorted(partitions):
        name = catalog.names.from_pulsar(topic_of(partition))
        if name is None:
            continue
        try:
            subscriptions = (await admin.topics.stats(await catalog.log_of(partition))).get("subscriptions", {})
        except (TopicMissing, Undescribed):  # the topic was deleted in the meantime
            continue
        for group, subscription in subscriptions.items():
            if is_named(group, groups.mirror) and can_be_mirrored(group) and subscription.get("consumers"):
                found.add((catalog.names.kafka(name), group))
    for topic, group in sorted(found):
        yield Finding(
            Severity.WARNING,
            "transactions",
            f"{topic} has transactions, and subscription {group} has native consumers there: they are given what is "
            "open or aborted too, "
            "and move the group of this name over it. Have it read by Kafka consumers of read_committed, or take it "
            "out of groups.mirror",
        )
