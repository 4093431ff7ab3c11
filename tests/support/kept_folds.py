"""What sidecars have kept of a partition's fold."""

from __future__ import annotations

from handler.partition import packed
from handler.partition.fold import kept
from tests.support.memory_states import MemoryStates

KEY = b"fold:t-partition-0"


def keys(states: MemoryStates) -> list[bytes]:
    return [key for key in states.values if key.startswith(KEY)]


def folds(states: MemoryStates) -> list[kept.Kept]:
    return [kept.decode(packed.unpack(states.values[key])) for key in keys(states)]
