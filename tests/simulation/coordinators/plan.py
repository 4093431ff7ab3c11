"""What is going to happen in a run of coordinators. A seed draws it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Final

from tests.simulation.processes import Fault, Moods, Roughness, drawn_faults

# Longer than a broker holds what a process has that stands still, and another waits for it: then a shard has a leader.
PATIENCE_SECONDS: Final = 200.0


class FaultKind(StrEnum):
    CUT = "cut"  # all connections of a sidecar end; what is on its way may land or be lost
    UNLOAD = "unload"  # a partition moves: all its connections end, a new ledger begins
    CRASH = "crash"  # its broker dies: what has no receipt may be recovered or gone
    KILL = "kill"  # a sidecar, with kill -9; it is started again
    PAUSE = "pause"  # a sidecar stands still
    ROLL = "roll"  # a new ledger, without anybody noticing
    COMPACT = "compact"  # somebody has a partition compacted


@dataclass(frozen=True, slots=True)
class Bounds:
    """Constants, and how the network behaves."""

    sidecars: int = 2
    namespaces: int = 1  # of sidecars: topics have other names in each
    shards: int = 2
    keys: int = 4
    clients: int = 3
    groups: int = 1  # that have members
    members: int = 2  # of each
    roughness: Roughness = field(default_factory=Roughness)
    moods: Moods = field(default_factory=Moods)
    lost_appends: float = 0.0  # to partitions: they land much later, or nobody hears of it
    permits: int = 4
    compact_records: int = 10
    retention_minutes: int = 0  # of internal topics, once they are compacted
    looks: float = 5.0  # seconds until the housekeeper looks again
    settles: float = 5.0  # seconds until shards are shared out anew


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    bounds: Bounds = field(default_factory=Bounds)
    faults: tuple[Fault[FaultKind], ...] = ()


def drawn(seed: int) -> Plan:
    draw = Random(f"coordinators {seed}")
    bounds = Bounds(
        sidecars=draw.choice((2, 2, 3, 4)),
        namespaces=Random(f"namespaces {seed}").choice((1, 2)),
        shards=draw.choice((1, 2, 3)),
        keys=draw.choice((1, 4, 12)),
        clients=draw.choice((2, 4)),
        groups=Random(f"groups {seed}").choice((0, 1, 2)),
        members=Random(f"members {seed}").choice((1, 2, 3)),
        roughness=Roughness.drawn(draw),
        moods=Moods(missing_topics=draw.choice((0.0, 0.0, 0.05)), partial_stats=draw.choice((0.0, 0.0, 0.1))),
        lost_appends=Random(f"appends {seed}").choice((0.0, 0.0, 0.05)),
        permits=draw.choice((2, 4, 1_000)),
        compact_records=draw.choice((5, 10, 10_000)),
        settles=draw.choice((3.0, 30.0)),
        retention_minutes=Random(f"retention {seed}").choice((0, 0, 1)),
        looks=Random(f"looks {seed}").choice((2.0, 10.0)),
    )
    return Plan(seed, bounds, drawn_faults(draw, FaultKind, (3, 8, 20)))
