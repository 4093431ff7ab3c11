"""Topic configs in Pulsar: read, and changed where they differ. What they mean is in `configs`."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from handler.pulsar.admin import PulsarAdmin, retention
from handler.pulsar.errors import Refused
from handler.topics.configs import Retention, TopicSettings
from handler.topics.names import TopicName


class ConfigStore:
    def __init__(self, admin: PulsarAdmin, default_entry_format: str) -> None:
        self._admin = admin
        self._default_entry_format = default_entry_format

    async def defaults(self, name: TopicName) -> TopicSettings:
        """The settings of a topic that says nothing itself. May raise PulsarError."""
        broker, namespace = await asyncio.gather(
            self._admin.cluster.broker_settings(), self._admin.cluster.namespace_policies(f"{name.tenant}/{name.namespace}")
        )
        default = (int(broker.get("defaultRetentionTimeInMinutes", 0)), int(broker.get("defaultRetentionSizeInMB", 0)))
        if isinstance(of_namespace := namespace.get("retention_policies"), dict):
            default = retention(of_namespace)
        return TopicSettings(
            default_entry_format=self._default_entry_format,
            default_retention=Retention(*default),
            default_max_message_bytes=int(broker.get("maxMessageSize", 5 * 1024 * 1024)),
        )

    async def read(self, name: TopicName) -> TopicSettings:
        """The settings of a topic. May raise PulsarError."""
        topic, policies = name.pulsar, self._admin.policies
        described, defaults = await asyncio.gather(self._admin.topics.describe(topic), self.defaults(name))
        try:
            own, size = await asyncio.gather(policies.retention(topic), policies.max_message_size(topic))
        except Refused:  # brokers that keep no policies of topics: nothing is the topic's own
            own, size = None, None
        kept = None if own is None else Retention(*own)
        return replace(defaults, properties=described.properties, retention=kept, max_message_bytes=size)

    async def write(self, name: TopicName, before: TopicSettings, after: TopicSettings) -> None:
        """Change what differs, and nothing else. May raise PulsarError; what came before it is changed then."""
        topic, policies = name.pulsar, self._admin.policies
        changed = {key: value for key, value in after.properties.items() if before.properties.get(key) != value}
        if changed:
            await self._admin.topics.set_properties(topic, changed)
        for key in before.properties.keys() - after.properties.keys():
            await self._admin.topics.remove_property(topic, key)
        if after.retention is None and before.retention is not None:
            await policies.remove_retention(topic)
        elif after.retention is not None and after.retention != before.retention:
            await policies.set_retention(topic, *after.retention)
        if after.max_message_bytes is None and before.max_message_bytes is not None:
            await policies.remove_max_message_size(topic)
        elif after.max_message_bytes is not None and after.max_message_bytes != before.max_message_bytes:
            await policies.set_max_message_size(topic, after.max_message_bytes)
