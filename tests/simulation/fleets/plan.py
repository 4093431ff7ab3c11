"""What is going to happen in a run of a whole fleet. A seed draws it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Final

BUSY_SECONDS: Final = 60.0
# Longer than a broker holds what a process has that stands still, and another waits for it: then all is served again.
PATIENCE_SECONDS: Final = 240.0
# keepAliveIntervalSeconds, twice at the most: then the broker takes a silent client for gone.
SILENT_SECONDS: Final = (30.0, 60.0)


class FaultKind(StrEnum):
    CUT = "cut"  # connections of a sidecar to Pulsar end; what is on its way may land or be lost
    CUT_CLIENTS = "cut clients"  # some connections of clients to a sidecar end
    UNLOAD = "unload"  # a partition moves: all its connections end, a new ledger begins
    CRASH = "crash"  # its broker dies: what has no receipt may be recovered or gone
    KILL = "kill"  # a sidecar, with kill -9; it is started again
    KILL_ALL = "kill all"  # all of them at once
    PAUSE = "pause"  # a sidecar stands still
    RESTART = "restart"  # a sidecar is asked to stop, and is started again
    ROLL = "roll"  # a new ledger, without anybody noticing
    NO_ADMIN = "no admin"  # the admin API is away for a sidecar


@dataclass(frozen=True, slots=True)
class Fault:
    at: float  # seconds
    kind: FaultKind
    place: int = 0  # of the sidecar or the log
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Bounds:
    sidecars: int = 3
    topics: int = 2
    partitions: int = 2  # of each
    producers: int = 3
    plain: int = 1
    transactional: int = 2
    consumers: int = 2
    groups: int = 2
    searchers: int = 1
    members: int = 0  # of a group
    slowest: float = 0.05
    lost_receipts: float = 0.0
    refused_sends: float = 0.0
    slow_stores: float = 0.0
    failed_questions: float = 0.0
    orphans: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    bounds: Bounds = field(default_factory=Bounds)
    faults: tuple[Fault, ...] = ()


def drawn(seed: int) -> Plan:
    draw = Random(f"fleets {seed}")
    bounds = Bounds(
        sidecars=draw.choice((1, 2, 3, 3, 5)),
        topics=draw.choice((1, 2)),
        partitions=draw.choice((1, 3)),
        producers=draw.choice((1, 3)),
        plain=draw.choice((0, 1)),
        transactional=draw.choice((0, 1, 2)),
        consumers=draw.choice((1, 2)),
        groups=draw.choice((1, 2)),
        searchers=draw.choice((0, 1)),
        members=Random(f"members {seed}").choice((0, 1, 3)),
        slowest=draw.choice((0.002, 0.05, 0.3)),
        lost_receipts=draw.choice((0.0, 0.0, 0.01)),
        refused_sends=draw.choice((0.0, 0.0, 0.01)),
        slow_stores=draw.choice((0.0, 0.0, 0.02)),
        failed_questions=draw.choice((0.0, 0.02, 0.1)),
        orphans=draw.choice((0.0, 0.0, 0.3)),
    )
    kinds = draw.sample(list(FaultKind), draw.choice((1, 2, 4, len(FaultKind))))
    faults = [
        Fault(round(draw.uniform(1.0, BUSY_SECONDS), 3), draw.choice(kinds), draw.randrange(12), draw.choice((0.1, 2.0, 8.0, 12.0, 45.0)))
        for _ in range(draw.choice((3, 6, 12)))
    ]
    return Plan(seed, bounds, tuple(sorted(faults, key=lambda fault: fault.at)))
