"""Which candidate is to lead which shard, so that all lead about as many, and who moves when.

Pulsar elects the candidate with the lowest number (its priority level). One that joins takes a higher number than
all before it, so it takes over nothing. When the candidates have been the same for a while, each finds out which
shards are to be its own, and claims those that others lead: one at a time, with a lower number than all claims
before, for each change of a leader is a new term.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from kafka_sidecar.coordination.rendezvous import shared_out

# A rolling restart takes each sidecar away for less than this: nothing moves for it.
STABLE_SECONDS: Final = 30.0
# A term is loaded in less than that, also on a busy machine; the next shard moves after it.
CLAIM_SECONDS: Final = 5.0
# A claim that did not last: others see other candidates. It is not to go back and forth.
CLAIM_AGAIN_SECONDS: Final = 300.0

# Priority levels are int32. Seconds since this moment fit on both sides of the middle for 34 years.
_EPOCH: Final = 1_767_225_600  # 2026-01-01T00:00:00Z
_MIDDLE: Final = 2**30


def newcomer_priority(wall_ms: int) -> int:
    """Behind all who joined before."""
    return _MIDDLE + _seconds(wall_ms)


def claim_priority(wall_ms: int) -> int:
    """Before all who claimed before."""
    return _MIDDLE - _seconds(wall_ms)


def _seconds(wall_ms: int) -> int:
    return min(max(wall_ms // 1_000 - _EPOCH, 0), _MIDDLE - 1)


class Balance:
    """One candidate's view. `shard_to_claim` is asked every few seconds."""

    def __init__(self, name: str, shards: int) -> None:
        self._name = name
        self._shards = shards
        self._members: frozenset[str] = frozenset()
        self._stable_since = 0.0
        self._claimed_at: dict[int, float] = {}
        self._next_claim_at = 0.0

    def shard_to_claim(self, now: float, members: frozenset[str], leading: Mapping[int, str]) -> int | None:
        """The shard to claim now; `leading` says who leads which."""
        if members != self._members:
            self._members, self._stable_since = members, now
            self._claimed_at.clear()
        settled = now - self._stable_since >= STABLE_SECONDS and now >= self._next_claim_at
        if not settled or self._name not in members or len(leading) < self._shards:
            return None  # an election is going on
        for shard, leader in enumerate(shared_out("shards", self._shards, members)):
            claimed = now - self._claimed_at.get(shard, -math.inf) < CLAIM_AGAIN_SECONDS
            if leader == self._name != leading[shard] and not claimed:
                self._claimed_at[shard] = now
                self._next_claim_at = now + CLAIM_SECONDS
                return shard
        return None
