"""Clients that are sent to the leader of a partition: once, since any sidecar may serve any partition.

A client that comes back sees another fleet than this sidecar does, and is served until the fleet changes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from handler.partition.log.basis import KnownProducer
from handler.telemetry import metrics
from handler.wire.records import BatchHeader

# Of one client; of more partitions it is served without a word.
MOST_PARTITIONS: Final = 10_000
# An answer is on its way for so long, and a batch that was sent before it came: beside the time that the network takes there and back.
# Below the retry backoff of all clients, 100 ms.
ON_ITS_WAY_SECONDS: Final = 0.05
# After this an idempotent producer is served though the batch that was refused has not come back.
FORGET_SECONDS: Final = 10.0
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


# Of a producer id the last batch in the partition's log, where that is known.
KnownProducers = Callable[[int], KnownProducer | None]


class _Sequence(NamedTuple):
    producer_id: int
    epoch: int
    first: int


@dataclass(slots=True)
class _Refused:
    """The first batch that was refused; what its client had sent behind it is refused as well."""

    version: int  # of the fleet
    at: float
    until: float  # and until then what comes may have been sent before its client had the answer
    sequence: _Sequence | None
    is_back: bool = False


class ProduceRedirects:
    __slots__ = ("_refused", "last_asked_at")

    def __init__(self) -> None:
        self._refused: WeakKeyDictionary[Any, dict[Hashable, _Refused]] = WeakKeyDictionary()
        self.last_asked_at = 0.0

    def is_behind(self, client: ClientConnection, partition: Hashable, batch: BatchHeader, now: float, known: KnownProducers) -> bool:
        """Whether a batch was sent behind one that was refused, whoever leads the partition by now."""
        of_client = self._refused.get(client)
        refused = None if of_client is None else of_client.get(partition)
        return refused is not None and _is_behind(refused, _sequence_of(batch), client, now, known)

    def refuses(self, client: ClientConnection, partition: Hashable, version: int, batch: BatchHeader, now: float) -> bool:
        """Whether a batch is refused, of a partition that another member leads in this version of the fleet."""
        of_client = self._refused.setdefault(client, {})
        refused = of_client.get(partition)
        if refused is not None and refused.version == version:
            return False
        if refused is None and len(of_client) >= MOST_PARTITIONS:
            return False
        of_client[partition] = _Refused(version, now, now + ON_ITS_WAY_SECONDS + client.round_trip, _sequence_of(batch))
        metrics.REDIRECTED.inc()
        return True


def _sequence_of(batch: BatchHeader) -> _Sequence | None:
    return _Sequence(batch.producer_id, batch.producer_epoch, batch.base_sequence) if batch.has_producer else None


def _is_behind(refused: _Refused, sequence: _Sequence | None, client: ClientConnection, now: float, known: KnownProducers) -> bool:
    """Whether the batch was sent before its client could know. Of an idempotent producer the refused batch comes back first, here or
    elsewhere: else the fold would take a later one for the producer's first, and the refused one for out of order.
    """
    if refused.is_back:
        return False
    since = client.waiting_since
    behind = (since is not None and since <= refused.at) or now < refused.until
    if sequence is not None and refused.sequence is not None and sequence[:2] == refused.sequence[:2]:
        is_another = sequence.first != refused.sequence.first and now - refused.at < FORGET_SECONDS
        behind = is_another and not _is_written(refused.sequence, known(sequence.producer_id))
    refused.is_back = not behind
    return behind


def _is_written(refused: _Sequence, known: KnownProducer | None) -> bool:
    """Whether the refused batch is in the log by now: its client took it to the leader. Sequences begin again after 2^31 − 1."""
    return known is not None and known.epoch == refused.epoch and (known.last_sequence - refused.first) % 2**31 < 2**30


class FetchRedirects:
    __slots__ = ("_replica_told", "_told", "last_asked_at")

    def __init__(self) -> None:
        self._told: WeakKeyDictionary[Any, dict[Hashable, int]] = WeakKeyDictionary()  # in which version of the fleet
        self._replica_told: WeakKeyDictionary[Any, dict[Hashable, float]] = WeakKeyDictionary()  # when
        self.last_asked_at = 0.0

    def refuses(self, client: ClientConnection, partition: Hashable, version: int) -> bool:
        """Whether a consumer is told that another member leads the partition, in this version of the fleet."""
        told = self._told.setdefault(client, {})
        known = told.get(partition)
        if known == version or (known is None and len(told) >= MOST_PARTITIONS):
            return False
        told[partition] = version
        metrics.REDIRECTED.inc()
        return True

    def names_replica(self, client: ClientConnection, partition: Hashable, now: float) -> bool:
        """Whether a consumer is told that it is to read from the replica in its rack (KIP-392)."""
        told = self._replica_told.setdefault(client, {})
        at = told.get(partition)
        if (at is not None and now - at < REPLICA_SECONDS) or (at is None and len(told) >= MOST_PARTITIONS):
            return False
        told[partition] = now
        return True
