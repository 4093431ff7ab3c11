"""Whether a broker is believed that says a topic is missing.

A broker that has just started, or an ingress whose brokers are away, may answer 404 to every question. A client that is told that its
topics do not exist drops them. So such an answer counts if Pulsar knows the topic's namespace. Where an ingress hands each question to
another broker, that says nothing of the broker that was asked first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from handler.coordination.lasting import Lasting
from handler.pulsar.admin import PulsarAdmin
from handler.pulsar.errors import NotPermitted, Refused, TopicMissing, Unavailable
from handler.tasks import Shared

# A broker that knew a namespace a moment ago still does.
KNOWN_SECONDS: Final = 5.0
# A namespace that was there is gone when that has been said for so long, again and again.
GONE_SECONDS: Final = 30.0
PAUSE_SECONDS: Final = 15.0
MOST_NAMESPACES: Final = 1_000


class KnownNamespaces:
    def __init__(self, admin: PulsarAdmin, expected: Collection[str], clock: Callable[[], float]) -> None:
        """`expected`: those that have to be there."""
        self._admin = admin
        self._expected = frozenset(expected)
        self._clock = clock
        self._known_at: dict[str, float] = {}
        self._missing: dict[str, Lasting] = {}
        self._asking: Shared[str, None] = Shared()

    async def check(self, namespace: str) -> None:
        """As `check_anew`, if the namespace was not known a moment ago."""
        known_at = self._known_at.get(namespace)
        if known_at is None or self._clock() - known_at >= KNOWN_SECONDS:
            await self.check_anew(namespace)

    async def check_anew(self, namespace: str) -> None:
        """Raises Unavailable where Pulsar says that even the namespace is missing, and that is not believed."""
        await self._asking.call(namespace, lambda: self._ask(namespace))

    async def close(self) -> None:
        await self._asking.close()

    async def _ask(self, namespace: str) -> None:
        try:
            await self._admin.cluster.namespace_policies(namespace)
        except (NotPermitted, Refused):
            pass  # whoever refuses is no stranger
        except TopicMissing as error:
            if namespace in self._expected or namespace in self._known_at:
                self._hear_that_it_is_missing(namespace, error)
            return
        self._known_at.pop(namespace, None)
        self._known_at[namespace] = self._clock()
        self._missing.pop(namespace, None)
        if len(self._known_at) > MOST_NAMESPACES:
            del self._known_at[next(iter(self._known_at))]

    def _hear_that_it_is_missing(self, namespace: str, error: TopicMissing) -> None:
        now = self._clock()
        missing = self._missing.setdefault(namespace, Lasting(GONE_SECONDS, PAUSE_SECONDS))
        if len(self._missing) > MOST_NAMESPACES:
            del self._missing[next(iter(self._missing))]
        missing.say(now)
        if not missing.is_believed(now):
            raise Unavailable(f"Pulsar says that the namespace {namespace} is missing: {error}") from error
