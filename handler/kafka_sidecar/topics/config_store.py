"""Topic configs in Pulsar: read, and changed where they differ. What they mean is in `configs`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final
from weakref import WeakValueDictionary

from kafka_sidecar.loop.single_flight import SingleFlight
from kafka_sidecar.pulsar.admin import NoTopicPolicies, PulsarAdmin, persistence_quorums, retention
from kafka_sidecar.pulsar.errors import PulsarError, Refused
from kafka_sidecar.topics.config_types import Operation
from kafka_sidecar.topics.configs import Quorums, TopicSettings, altered
from kafka_sidecar.topics.names import TopicName
from kafka_sidecar.topics.retention import RETENTION_SET, Retention

# Limit of concurrent config reads. Tools read all topics at once, and partitions that are being opened need the admin
# client's connections too.
AT_ONCE: Final = 4
# Brokers learn of a changed topic policy from a system topic (__change_events), within some tens of milliseconds.
SEEN_SECONDS: Final = 5.0
LOOK_AGAIN_SECONDS: Final = 0.02
_QUORUM_SETTINGS: Final = (
    "managedLedgerDefaultEnsembleSize",
    "managedLedgerDefaultWriteQuorum",
    "managedLedgerDefaultAckQuorum",
)


class ConfigStore:
    def __init__(self, admin: PulsarAdmin, default_entry_format: str) -> None:
        self._admin = admin
        self._default_entry_format = default_entry_format
        self._reading = asyncio.Semaphore(AT_ONCE)
        self._altering: WeakValueDictionary[TopicName, asyncio.Lock] = WeakValueDictionary()
        self._defaults: SingleFlight[str, TopicSettings] = SingleFlight()

    async def defaults(self, name: TopicName) -> TopicSettings:
        """The settings of a topic that says nothing itself. May raise PulsarError."""
        return await self.namespace_defaults(f"{name.tenant}/{name.namespace}")

    async def namespace_defaults(self, namespace: str) -> TopicSettings:
        return await self._defaults.call(namespace, lambda: self._read_defaults(namespace))

    async def _read_defaults(self, namespace: str) -> TopicSettings:
        broker, policies = await asyncio.gather(
            self._admin.cluster.broker_settings(), self._admin.cluster.namespace_policies(namespace)
        )
        default = (int(broker.get("defaultRetentionTimeInMinutes", 0)), int(broker.get("defaultRetentionSizeInMB", 0)))
        if isinstance(of_namespace := policies.get("retention_policies"), dict):
            default = retention(of_namespace)
        persistence = policies.get("persistence")
        quorums = Quorums(*(int(broker.get(name, 2)) for name in _QUORUM_SETTINGS))
        return TopicSettings(
            default_entry_format=self._default_entry_format,
            default_retention=Retention(*default),
            default_max_message_bytes=int(broker.get("maxMessageSize", 5 * 1024 * 1024)),
            quorums=Quorums(*persistence_quorums(persistence)) if isinstance(persistence, dict) else quorums,
        )

    async def read(self, name: TopicName) -> TopicSettings:
        """The settings of a topic. May raise PulsarError."""
        topic, policies = name.pulsar, self._admin.policies
        async with self._reading:
            described, defaults = await asyncio.gather(self._admin.topics.describe(topic), self.defaults(name))
            try:
                own, size, threshold, quorums = await asyncio.gather(
                    policies.retention(topic),
                    policies.max_message_size(topic),
                    policies.compaction_threshold(topic),
                    policies.quorums(topic),
                )
            except NoTopicPolicies:  # without topic-level policies the topic has no values of its own
                own, size, threshold, quorums = None, None, None, None
        return replace(
            defaults,
            properties=described.properties,
            retention=None if own is None else Retention(*own),
            max_message_bytes=size,
            compaction_threshold=threshold,
            quorums=defaults.quorums if quorums is None else Quorums(*quorums),
        )

    async def alter(
        self,
        name: TopicName,
        operations: Callable[[TopicSettings], Sequence[tuple[str, Operation, str | None]]],
        *,
        validate_only: bool,
    ) -> None:
        """Change the configs of a topic, one alteration after another. May raise InvalidConfig or PulsarError."""
        lock = self._altering.setdefault(name, asyncio.Lock())
        async with lock:
            before = await self.read(name)
            after = altered(before, operations(before))
            if not validate_only:
                await self.write(name, before, after)

    async def write(self, name: TopicName, before: TopicSettings, after: TopicSettings) -> None:
        """Change what differs, and nothing else. May raise PulsarError; what came before it is put back then, as far as
        that can be.
        """
        try:
            await self._write_properties(name.pulsar, before, after)
            await self._write_policies(name.pulsar, before, after)
        except PulsarError:
            for put_back in (self._write_policies, self._write_properties):
                with contextlib.suppress(PulsarError):
                    await put_back(name.pulsar, after, before)
            raise

    async def _write_properties(self, topic: str, before: TopicSettings, after: TopicSettings) -> None:
        for key in before.properties.keys() | after.properties.keys():
            if before.properties.get(key) == after.properties.get(key):
                continue
            # Brokers before Pulsar 3.0 can't change a topic property. A change of kafka.retention is then skipped, and
            # the sidecar does not know which retention limits were set. A change of any other property fails.
            with contextlib.suppress(*([Refused] if key == RETENTION_SET else [])):
                await self._set_property(topic, key, after.properties.get(key))

    async def _write_policies(self, topic: str, before: TopicSettings, after: TopicSettings) -> None:
        policies = self._admin.policies
        if after.retention != before.retention:
            if after.retention is None:
                await policies.remove_retention(topic)
            else:
                await policies.set_retention(topic, *after.retention)
            await _seen(lambda: policies.retention(topic), after.retention)
        if after.max_message_bytes != before.max_message_bytes:
            if after.max_message_bytes is None:
                await policies.remove_max_message_size(topic)
            else:
                await policies.set_max_message_size(topic, after.max_message_bytes)
            await _seen(lambda: policies.max_message_size(topic), after.max_message_bytes)
        if after.compaction_threshold != before.compaction_threshold:
            if after.compaction_threshold is None:
                await policies.remove_compaction_threshold(topic)
            else:
                await policies.set_compaction_threshold(topic, after.compaction_threshold)
            await _seen(lambda: policies.compaction_threshold(topic), after.compaction_threshold)

    async def _set_property(self, topic: str, name: str, value: str | None) -> None:
        if value is None:
            await self._admin.topics.remove_property(topic, name)
        else:
            await self._admin.topics.set_properties(topic, {name: value})


async def _seen(ask: Callable[[], Any], wanted: object) -> None:
    """Wait until the brokers tell what was written: the next alteration begins with what they tell. It is stored in any
    case.
    """
    with contextlib.suppress(PulsarError, TimeoutError):
        async with asyncio.timeout(SEEN_SECONDS):
            while await ask() != wanted:  # noqa: ASYNC110 - nobody tells
                await asyncio.sleep(LOOK_AGAIN_SECONDS)
