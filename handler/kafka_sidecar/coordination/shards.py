"""The shards of one internal topic in this process, and whether this process may speak for them."""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.coordination.term import Phase, Term
from kafka_sidecar.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

# A process in which `beat` has not run for 10 s was suspended, and another sidecar may lead its shards by now. A broker
# drops a silent client after 30 s at the earliest (keepAliveIntervalSeconds). On an overloaded machine the event loop
# was 3 s late.
STALLED_SECONDS: Final = 10.0


class HasTerm(Protocol):
    @property
    def term(self) -> Term[Any]: ...


S = TypeVar("S", bound=HasTerm)


def shard_of(key: str, shards: int) -> int:
    """The shard of a key: Java's hash of it, modulo the count and never negative.

    As in Kafka-on-Pulsar (`MathUtils.signSafeMod`), whose topics are taken over. Kafka itself takes the
    absolute value of the hash; clients never compute it.
    """
    hashed = 0
    for (unit,) in struct.iter_unpack(">H", key.encode("utf-16-be", "surrogatepass")):
        hashed = (31 * hashed + unit) & 0xFFFFFFFF
    return (hashed - 2**32 if hashed >= 2**31 else hashed) % shards


class Shards(Generic[S]):
    """Empty until the partitions of the topic are known."""

    def __init__(self, clock: Callable[[], float], awake_clock: Callable[[], float] | None = None) -> None:
        self._shards: Sequence[S] = ()
        self._clock = clock
        # A clock that also advances while the machine is suspended, where the system has one (CLOCK_BOOTTIME).
        self._awake_clock = awake_clock or clock
        self._beat_at = self._awake_clock()

    def begin(self, shards: Sequence[S]) -> None:
        """From now on `beat` is called once a second."""
        self._shards = shards
        self._beat_at = self._awake_clock()

    def __len__(self) -> int:
        return len(self._shards)

    def __iter__(self) -> Iterator[S]:
        return iter(self._shards)

    def __getitem__(self, number: int) -> S:
        return self._shards[number]

    def of(self, key: str) -> S:
        """The shard that a key belongs to."""
        if not self._shards:
            raise CoordinatorError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return self._shards[shard_of(key, len(self._shards))]

    def led(self, key: str) -> S:
        """The same, if this process leads it; else CoordinatorError."""
        self.end_terms_if_suspended()
        shard = self.of(key)
        shard.term.check_leading()
        return shard

    @property
    def all_leading(self) -> list[S]:
        return [shard for shard in self._shards if shard.term.phase is Phase.LEADING]

    def end_terms_if_suspended(self) -> bool:
        """True if this process stood still: another may lead its shards by now, so it leads nothing until it is elected
        again.
        """
        suspended_for = self._awake_clock() - self._beat_at
        if suspended_for <= STALLED_SECONDS:
            return False
        log.warning("this process stood still for %.0f s: all that it coordinates is loaded again", suspended_for)
        self._beat_at = self._awake_clock()
        for shard in self._shards:
            shard.term.restart("the process stood still")
        return True

    def beat(self) -> None:
        """Once a second."""
        self.end_terms_if_suspended()
        self._beat_at = self._awake_clock()
        for shard in self._shards:
            shard.term.give_up_on_silence(self._clock())
