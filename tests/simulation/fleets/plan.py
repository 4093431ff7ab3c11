"""What is going to happen in a run of a whole fleet. A seed draws it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from random import Random
from typing import Final

from tests.simulation.processes import Fault, Moods, Roughness, drawn_faults

# Longer than a broker holds what a process has that stands still, and another waits for it: then all is served again.
PATIENCE_SECONDS: Final = 240.0


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
class Bounds:
    sidecars: int = 3
    topics: int = 2
    partitions: int = 2  # of each
    producers: int = 3
    plain: int = 1
    transactional: int = 2
    since_kip_890: frozenset[int] = frozenset()  # the numbers of those that bump their epoch with each transaction
    consumers: int = 2
    groups: int = 2
    searchers: int = 1
    members: int = 0  # of a group
    makes_anew: bool = False  # somebody deletes a topic and makes it anew
    moods: Moods = field(default_factory=Moods)
    roughness: Roughness = field(default_factory=Roughness)


@dataclass(frozen=True, slots=True)
class Plan:
    seed: int
    bounds: Bounds = field(default_factory=Bounds)
    faults: tuple[Fault[FaultKind], ...] = ()


def drawn(seed: int) -> Plan:
    draw = Random(f"fleets {seed}")
    bounds = Bounds(
        sidecars=draw.choice((1, 2, 3, 3, 5)),
        topics=draw.choice((1, 2)),
        partitions=draw.choice((1, 3)),
        producers=draw.choice((1, 3)),
        plain=draw.choice((0, 1)),
        transactional=draw.choice((0, 1, 2)),
        since_kip_890=frozenset(Random(f"protocols {seed}").choice(((), (0,), (1,), (0, 1)))),
        consumers=draw.choice((1, 2)),
        groups=draw.choice((1, 2)),
        searchers=draw.choice((0, 1)),
        members=Random(f"members {seed}").choice((0, 1, 3)),
        makes_anew=Random(f"topics {seed}").random() < 0.3,
        roughness=Roughness.drawn(draw),
        moods=_drawn_moods(Random(f"moods {seed}")),
    )
    return Plan(seed, bounds, drawn_faults(draw, FaultKind, (3, 6, 12)))


def _drawn_moods(draw: Random) -> Moods:
    return Moods(missing_topics=draw.choice((0.0, 0.0, 0.05)), partial_stats=draw.choice((0.0, 0.0, 0.1)))
