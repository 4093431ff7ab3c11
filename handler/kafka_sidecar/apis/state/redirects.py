"""Clients that are sent to the leader of a partition: once, since any sidecar may serve any partition.

A client that comes back sees another fleet than this sidecar does, and is served until the fleet changes.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary

from kafka_sidecar.telemetry import metrics

# Of one client; of more partitions it is served without a word.
MOST_PARTITIONS: Final = 10_000
# An answer is on its way for so long, and a batch that was sent before it came: beside the time that the network takes
# there and back.
# Below the retry backoff of all clients, 100 ms.
ON_ITS_WAY_SECONDS: Final = 0.05
# So often a consumer is sent to the replica of its rack: if it can't reach that, it comes back at once.
REPLICA_SECONDS: Final = 60.0


class ClientConnection(Protocol):
    @property
    def waiting_since(self) -> float | None:
        """When the oldest of its requests that have no answer came."""
        ...

    @property
    def round_trip(self) -> float:
        """How many seconds the network takes to the client and back."""
        ...


@dataclass(slots=True)
class _Refused:
    """The first batch that was refused."""

    version: int  # of the fleet
    at: float
    until: float  # and until then what comes may have been sent before its client had the answer
    is_back: bool = False


class ProduceRedirects:
    """Where a batch has a producer id, `RefusedBatches` knows what stands behind it. Where it has none, only the time
    tells.
    """

    __slots__ = ("_refused", "last_asked_at")

    def __init__(self) -> None:
        self._refused: WeakKeyDictionary[Any, dict[Hashable, _Refused]] = WeakKeyDictionary()
        self.last_asked_at = 0.0

    def is_behind(self, client: ClientConnection, partition: Hashable, now: float) -> bool:
        """Whether a batch without a producer id was sent before its client could know that one was refused."""
        of_client = self._refused.get(client)
        refused = None if of_client is None else of_client.get(partition)
        if refused is None or refused.is_back:
            return False
        since = client.waiting_since
        behind = (since is not None and since <= refused.at) or now < refused.until
        refused.is_back = not behind
        return behind

    def refuses(self, client: ClientConnection, partition: Hashable, version: int, now: float) -> bool:
        """Whether a batch is refused, of a partition that another member leads in this version of the fleet."""
        of_client = self._refused.setdefault(client, {})
        refused = of_client.get(partition)
        if refused is not None and refused.version == version:
            return False
        if refused is None and len(of_client) >= MOST_PARTITIONS:
            return False
        of_client[partition] = _Refused(version, now, now + ON_ITS_WAY_SECONDS + client.round_trip)
        metrics.REDIRECTED.inc()
        return True


class FetchRedirects:
    __slots__ = ("_redirected", "_replica_named_at", "last_asked_at")

    def __init__(self) -> None:
        self._redirected: WeakKeyDictionary[Any, dict[Hashable, int]] = (
            WeakKeyDictionary()
        )  # in which version of the fleet
        self._replica_named_at: WeakKeyDictionary[Any, dict[Hashable, float]] = WeakKeyDictionary()  # when
        self.last_asked_at = 0.0

    def refuses(self, client: ClientConnection, partition: Hashable, version: int) -> bool:
        """Whether a consumer is sent to another member that leads the partition, in this version of the fleet."""
        told = self._redirected.setdefault(client, {})
        known = told.get(partition)
        if known == version or (known is None and len(told) >= MOST_PARTITIONS):
            return False
        told[partition] = version
        metrics.REDIRECTED.inc()
        return True

    def names_replica(self, client: ClientConnection, partition: Hashable, now: float) -> bool:
        """Whether a consumer is sent to the replica in its rack (KIP-392)."""
        told = self._replica_named_at.setdefault(client, {})
        at = told.get(partition)
        if (at is not None and now - at < REPLICA_SECONDS) or (at is None and len(told) >= MOST_PARTITIONS):
            return False
        told[partition] = now
        return True
