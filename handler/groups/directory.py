"""Who coordinates which shard, from the stats of `__consumer_offsets`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from handler.groups.election import SUBSCRIPTION
from handler.pulsar.admin import PulsarAdmin

log = logging.getLogger(__name__)

ADVERTISED: Final = "kafka.advertised"
NODE: Final = "kafka.node"
CONTROL: Final = "kafka.control"
# Elections are seen by this much later; whoever is sent to the wrong sidecar is told so and asks again.
FRESH_SECONDS: Final = 1.0


class Leader(NamedTuple):
    name: str  # of the sidecar's consumers
    node: int
    advertised: str  # host:port for Kafka clients, empty where only its own reach it
    control: str  # host:port for other sidecars


class Directory:
    def __init__(self, admin: PulsarAdmin, topic: str, clock: Callable[[], float]) -> None:
        self._admin = admin
        self._topic = topic
        self._clock = clock
        self._leaders: dict[int, Leader] = {}
        self._learnt_at = -FRESH_SECONDS
        self._asking: asyncio.Task[None] | None = None

    async def leader(self, index: int) -> Leader | None:
        """The coordinator of a shard, None while there is none. Raises PulsarError."""
        if self._clock() - self._learnt_at >= FRESH_SECONDS:
            if self._asking is None:
                self._asking = asyncio.create_task(self._ask())
            await asyncio.shield(self._asking)
        return self._leaders.get(index)

    async def _ask(self) -> None:
        try:
            stats = await self._admin.partition_stats(self._topic)
            self._leaders = {index: leader for index, one in stats.items() if (leader := active_consumer(one)) is not None}
            self._learnt_at = self._clock()
        finally:
            self._asking = None


def active_consumer(stats: Mapping[str, Any]) -> Leader | None:
    """The active consumer in the stats of one partition."""
    subscription = (stats.get("subscriptions") or {}).get(SUBSCRIPTION)
    if subscription is None:
        return None
    active = subscription.get("activeConsumerName")
    for consumer in subscription.get("consumers") or ():
        if consumer.get("consumerName") == active:
            metadata = consumer.get("metadata") or {}
            node = metadata.get(NODE, "0")
            return Leader(active, int(node) if node.isdigit() else 0, metadata.get(ADVERTISED, ""), metadata.get(CONTROL, ""))
    return None
