"""Which topics Pulsar copies to other clusters, and whether their entries have to say how many records they hold.

Pulsar's replicator tells the broker of the other cluster the number that is in the metadata of an entry
(num_messages_in_batch), or one (ProducerImpl). Entries of format kafka leave the number out, for a native consumer
takes a payload with it for a batch of Pulsar's, and passes over what it can't read. So it is written only where a topic
is replicated and nobody's subscription would lose anything by it.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from kafka_sidecar.loop.single_flight import SingleFlight
from kafka_sidecar.pulsar.admin import COMPACTION, PulsarAdmin
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError
from kafka_sidecar.telemetry.limits import RateLimitedLog

limited = RateLimitedLog(logging.getLogger(__name__))

FRESH_SECONDS: Final = 25.0  # less than 30 s, the interval at which open partitions check whether they are replicated
MAX_NAMES: Final = 50_000


class Counting(Enum):
    """Whether entries of format kafka say how many records they hold."""

    NOT_NEEDED = auto()  # the topic is not replicated
    WRITTEN = auto()
    LEFT_OUT = auto()  # a durable subscription of a native consumer would lose records


class _Answer(NamedTuple):
    asked_at: float
    is_replicated: bool


class Replication:
    def __init__(self, admin: PulsarAdmin, clock: Callable[[], float], *, always_counts: bool) -> None:
        self._admin = admin
        self._clock = clock
        self._always_counts = always_counts
        self._known: OrderedDict[str, _Answer] = OrderedDict()  # by the name of a topic or namespace
        self._asking: SingleFlight[str, bool] = SingleFlight()

    async def is_namespace_replicated(self, namespace: str) -> bool:
        """Whether its policies name another cluster. May raise PulsarError."""
        return await self._ask(namespace, self._policies_name_another)

    async def is_topic_replicated(self, topic: str) -> bool:
        """The same for a topic, which may have a policy of its own. May raise PulsarError."""
        return await self._ask(topic, self._topic_is_replicated)

    async def counting_of(self, topic: str, log: str) -> Counting:
        """Of what is appended to a partition in format kafka. May raise PulsarError."""
        if not await self.is_topic_replicated(topic):
            return Counting.NOT_NEEDED
        if self._always_counts:
            return Counting.WRITTEN
        readers = durable_readers((await self._admin.topics.stats(log)).get("subscriptions", {}))
        if not readers:
            return Counting.WRITTEN
        limited.warning(
            "%s is replicated, and its batches of several records can't be read in the other cluster: if they said how "
            "many records they have, native consumers of subscription %s would not be given them here. See "
            "kafka.replicated_count",
            log,
            readers[0],
        )
        return Counting.LEFT_OUT

    async def _ask(self, name: str, ask: Callable[[str], Awaitable[bool]]) -> bool:
        known = self._known.get(name)
        if known is not None and self._clock() - known.asked_at < FRESH_SECONDS:
            return known.is_replicated
        return await self._asking.call(name, lambda: self._answer(name, ask))

    async def _answer(self, name: str, ask: Callable[[str], Awaitable[bool]]) -> bool:
        asked_at = self._clock()
        try:
            is_replicated = await ask(name)
        except NotPermitted as error:
            limited.info("nobody knows now whether %s is replicated: %s", name, error)
            is_replicated = False
        self._known[name] = _Answer(asked_at, is_replicated)
        self._known.move_to_end(name)
        if len(self._known) > MAX_NAMES:
            self._known.popitem(last=False)
        return is_replicated

    async def _policies_name_another(self, namespace: str) -> bool:
        return len(set((await self._admin.cluster.namespace_policies(namespace)).get("replication_clusters") or ())) > 1

    async def _topic_is_replicated(self, topic: str) -> bool:
        try:
            own = await self._admin.policies.replication_clusters(topic)
        except PulsarError as error:  # some brokers have no topic-level replication policies, or can't read them yet
            limited.info("the replication policy of %s can't be asked for, its namespace's counts: %s", topic, error)
            own = None
        if own is not None:
            return len(set(own)) > 1
        return await self.is_namespace_replicated(namespace_of(topic))


def namespace_of(topic: str) -> str:
    """Of a topic of Pulsar's, by its whole name."""
    tenant, namespace, _ = topic.partition("://")[2].split("/", 2)
    return f"{tenant}/{namespace}"


def durable_readers(subscriptions: dict[str, Any]) -> list[str]:
    """The durable subscriptions of somebody's own, of those that the stats of a partition have."""
    return sorted(name for name, one in subscriptions.items() if one.get("durable", True) and name != COMPACTION)
