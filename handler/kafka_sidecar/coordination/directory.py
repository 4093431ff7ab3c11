"""The leaders of an internal topic's shards, from its stats."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

from kafka_sidecar.coordination.candidate import info_of
from kafka_sidecar.loop.single_flight import SingleFlight
from kafka_sidecar.model.sidecar import SidecarInfo
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.pulsar.ports import Admin
from kafka_sidecar.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))
# What stays as it is until somebody changes it.
seldom = RateLimitedLog(logging.getLogger(__name__), per_second=1 / 600, burst=1)

# The subscription by which those are seen that coordinate nothing (groups.coordinate).
VISITORS: Final = "visitors"
# Elections are seen by this much later; a client that is sent to the wrong sidecar gets NOT_COORDINATOR and asks again.
FRESH_SECONDS: Final = 1.0
STALE_SECONDS: Final = 3.0
# See `is_settled`: clients refresh their metadata every few seconds while they look for a coordinator.
SETTLED_SECONDS: Final = 15.0
SHARED_SECONDS: Final = 90.0
# A sidecar that stood for election and is not listed for so long has lost Pulsar: after a restart of a broker all come
# back within seconds.
MISSING_SECONDS: Final = 15.0
# So many of those that have gone are remembered.
MOST_MISSING: Final = 1_000


class Address(NamedTuple):
    """As Kafka clients get it."""

    node_id: int
    advertised: str


class Directory:
    def __init__(self, admin: Admin, topic: str, subscription: str, own_name: str, clock: Callable[[], float]) -> None:
        self._subscription = subscription
        self._admin = admin
        self._topic = topic
        self._own_name = own_name
        self._clock = clock
        self._leaders: dict[int, SidecarInfo] = {}
        self._others: dict[str, SidecarInfo] = {}
        self._visitors: list[SidecarInfo] = []
        self._lists_visit: bool | None = None  # this sidecar's own
        self._listed: dict[
            int, frozenset[str]
        ] = {}  # by shard: the names of its candidates, as far as brokers have listed them
        self._known_since: dict[str, float] = {}
        self._missing_since: dict[str, float] = {}
        self.missing: Collection[str] = (
            frozenset()
        )  # those that have lost Pulsar, as of the last look that found this one
        self._learnt_at = -STALE_SECONDS
        self._failure: PulsarError | None = None
        self._failed_at = -FRESH_SECONDS
        self._asking: SingleFlight[None, None] = SingleFlight()

    async def leader(self, index: int) -> SidecarInfo | None:
        """The coordinator of a shard, None while there is none. Raises PulsarError."""
        await self._look()
        return self._leaders.get(index)

    def last_known(self, index: int) -> SidecarInfo | None:
        """The coordinator of a shard as of the last look, however long ago that was."""
        return self._leaders.get(index)

    async def leaders(self) -> list[SidecarInfo]:
        await self._look()
        return list({leader.name: leader for leader in self._leaders.values()}.values())

    async def namespaces(self) -> set[str]:
        """Those of the topics that the clients of all other sidecars name without one. Raises PulsarError."""
        await self._look()
        return {other.namespace for other in (*self._others.values(), *self._visitors)} - {""}

    async def look_now(self) -> None:
        """Raises PulsarError. A look that is under way is waited for, so who came while it went on may not be seen."""
        await self._asking.call(None, self._ask)

    async def _look(self) -> None:
        now = self._clock()
        if now - self._learnt_at < FRESH_SECONDS:
            return
        if self._failure is not None and now - self._failed_at < FRESH_SECONDS:
            raise self._failure  # requests that wait for an election look again and again
        await self._asking.call(None, self._ask)

    @property
    def has_looked(self) -> bool:
        return self._learnt_at > -STALE_SECONDS

    @property
    def others(self) -> Collection[SidecarInfo]:
        """All other candidates, as of the last look."""
        return self._others.values()

    @property
    def visitors(self) -> Collection[SidecarInfo]:
        """The other sidecars that coordinate nothing."""
        return self._visitors

    def lists_own(self, index: int) -> bool | None:
        """Whether the broker lists this sidecar among the candidates of a shard; None where it has not said so a moment
        ago.
        """
        listed = self._listed.get(index)
        if listed is None or self._clock() - self._learnt_at >= STALE_SECONDS:
            return None
        return self._own_name in listed

    @property
    def lists_visit(self) -> bool | None:
        """The same among the visitors."""
        return None if self._clock() - self._learnt_at >= STALE_SECONDS else self._lists_visit

    @property
    def known_leaders(self) -> Mapping[int, str] | None:
        """The names of those who lead, by shard; None unless they were looked at a moment ago."""
        if self._clock() - self._learnt_at >= STALE_SECONDS:
            return None
        return {index: leader.name for index, leader in self._leaders.items()}

    def advertised(self, own: Address) -> list[SidecarInfo]:
        """The other sidecars that Metadata may name: they advertise an address under a node id that nobody else has."""
        advertised = [other for other in self._others.values() if other.advertised]
        shared = self.shared_nodes(own)
        if shared:
            self._say_what_is_shared(own, [other for other in advertised if other.node_id in shared])
        return [other for other in advertised if other.node_id not in shared and other.node_id != own.node_id]

    def shared_nodes(self, own: Address) -> Collection[int]:
        """The node ids that several sidecars have."""
        # One that was started again may be there twice.
        addresses = {
            own,
            *(Address(other.node_id, other.advertised) for other in self._others.values() if other.advertised),
        }
        nodes = Counter(node for node, _ in addresses)
        return [node for node, count in nodes.items() if count > 1]

    def _say_what_is_shared(self, own: Address, others: list[SidecarInfo]) -> None:
        """Not of one that was started again elsewhere: Pulsar may list what it was before for a minute."""
        lasting = {Address(other.node_id, other.advertised) for other in others if self._age(other) >= SHARED_SECONDS}
        lasting |= {own} if own.node_id in {node for node, _ in lasting} else set()
        nodes = Counter(node for node, _ in lasting)
        listed = ", ".join(
            f"{address.advertised} ({address.node_id})" for address in sorted(lasting) if nodes[address.node_id] > 1
        )
        if listed:
            seldom.warning(
                "sidecars have the same node id, and each alone tells clients of itself: %s. "
                "Give each a kafka.node_id of its own, or each set of them a kafka.node_id_base",
                listed,
            )

    def _age(self, other: SidecarInfo) -> float:
        return self._clock() - self._known_since.get(other.name, self._clock())

    def is_settled(self, other: SidecarInfo) -> bool:
        """Whether it has been advertised for a while. Clients that get a coordinator which their metadata, a little
        older, do not have may forget it and wait for it without end (librdkafka 2.16).
        """
        return self._age(other) >= SETTLED_SECONDS

    async def refresh_if_stale(self) -> None:
        """Look again, if the last look was a while ago."""
        if self._clock() - self._learnt_at >= STALE_SECONDS:
            await self.look_again()

    async def look_again(self) -> bool:
        """Whether it could be looked at; after a failure the old answer stays."""
        try:
            await self._look()
        except PulsarError as error:
            log.info("the sidecars of %s are not known at the moment: %s", self._topic, error)
            return False
        return True

    def forget(self) -> None:
        """The next question looks again."""
        self._learnt_at = -STALE_SECONDS

    async def _ask(self) -> None:
        try:
            stats = await self._admin.topics.partition_stats(self._topic)
        except PulsarError as error:
            self._failure, self._failed_at = error, self._clock()
            raise
        self._failure = None
        before = self._others
        self._leaders = {
            index: leader
            for index, one in stats.items()
            if (leader := active_consumer(one, self._subscription)) is not None
        }
        self._listed = {
            index: frozenset(one.name for one in candidates(of_shard, self._subscription))
            for index, of_shard in stats.items()
        }
        listed = {one.name: one for of_shard in stats.values() for one in candidates(of_shard, self._subscription)}
        visitors = [one for of_shard in stats.values() for one in candidates(of_shard, VISITORS)]
        self._visitors = [one for one in visitors if one.name != self._own_name]
        self._lists_visit = len(self._visitors) < len(visitors) if 0 in stats else None
        is_listed = listed.pop(self._own_name, None) is not None
        self._others = listed
        now = self._learnt_at = self._clock()
        self._known_since = {name: self._known_since.get(name, now) for name in self._others}
        if is_listed:  # else this one has lost Pulsar itself, or Pulsar has just started
            self._look_for_missing(before, now)

    def _look_for_missing(self, before: Iterable[str], now: float) -> None:
        since = {**self._missing_since, **{name: now for name in before if name not in self._missing_since}}
        gone = [name for name in since if name not in self._others]
        self._missing_since = {name: since[name] for name in gone[-MOST_MISSING:]}
        self.missing = frozenset(name for name, at in self._missing_since.items() if now - at >= MISSING_SECONDS)


def candidates(stats: Mapping[str, Any], subscription: str) -> list[SidecarInfo]:
    """The candidates in the stats of one partition."""
    consumers = _subscription(stats, subscription).get("consumers") or ()
    return [info_of(one.get("consumerName", ""), one.get("metadata") or {}) for one in consumers]


def active_consumer(stats: Mapping[str, Any], subscription: str) -> SidecarInfo | None:
    """The one of them that is elected."""
    active = _subscription(stats, subscription).get("activeConsumerName")
    return next((one for one in candidates(stats, subscription) if one.name == active), None)


def _subscription(stats: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return (stats.get("subscriptions") or {}).get(name) or {}
