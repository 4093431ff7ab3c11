"""What simulations of whole processes share: faults that a seed draws, how they strike, and how a run is watched and
told of.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Any, Final, Generic, Protocol, TypeVar

from tests.model.conduct import NOBODYS
from tests.simulation.chance import Chance
from tests.simulation.history import Violation
from tests.simulation.loop import SimulatedLoop
from tests.simulation.many import arguments_for, run_seeds
from tests.simulation.plan import Bounds as TopicBounds

BUSY_SECONDS: Final = 60.0
# keepAliveIntervalSeconds, twice at the most: then the broker takes a silent client for gone.
SILENT_SECONDS: Final = (30.0, 60.0)
# Until a compaction is done.
COMPACTION_SECONDS: Final = (0.01, 0.5, 3.0)
# How often it is looked whether a run has failed.
WATCH_SECONDS: Final = 1.0

K = TypeVar("K", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Fault(Generic[K]):
    at: float  # seconds
    kind: K
    place: int = 0  # of the sidecar or the log
    seconds: float = 0.0


def drawn_faults(draw: Random, kinds: type[K], counts: Sequence[int]) -> tuple[Fault[K], ...]:
    """Of a few kinds, or of all. One of `counts` is how many."""
    some = draw.sample(list(kinds), draw.choice((1, 2, 4, len(kinds))))
    faults = [
        Fault(
            round(draw.uniform(1.0, BUSY_SECONDS), 3),
            draw.choice(some),
            draw.randrange(12),
            draw.choice((0.1, 2.0, 8.0, 12.0, 45.0)),
        )
        for _ in range(draw.choice(counts))
    ]
    return tuple(sorted(faults, key=lambda fault: fault.at))


@dataclass(frozen=True, slots=True)
class Roughness:
    """How the network and the brokers behave."""

    slowest: float = 0.05  # seconds of one way
    lost_receipts: float = 0.0
    refused_sends: float = 0.0
    slow_stores: float = 0.0
    failed_questions: float = 0.0
    orphans: float = 0.0

    @classmethod
    def drawn(cls, draw: Random) -> Roughness:
        return cls(
            slowest=draw.choice((0.002, 0.05, 0.3)),
            lost_receipts=draw.choice((0.0, 0.0, 0.01)),
            refused_sends=draw.choice((0.0, 0.0, 0.01)),
            slow_stores=draw.choice((0.0, 0.0, 0.02)),
            failed_questions=draw.choice((0.0, 0.02, 0.1)),
            orphans=draw.choice((0.0, 0.0, 0.3)),
        )

    def of_topics(self) -> TopicBounds:
        return TopicBounds(
            slowest=self.slowest,
            lost_receipts=self.lost_receipts,
            refused_sends=self.refused_sends,
            slow_stores=self.slow_stores,
            failed_questions=self.failed_questions,
            orphans=self.orphans,
        )


@dataclass(frozen=True, slots=True)
class Moods:
    """What brokers say that is not so."""

    missing_topics: float = 0.0  # of looks at a topic that is there
    partial_stats: float = 0.0


class DrawnMoods:
    def __init__(self, chance: Chance, moods: Moods) -> None:
        self._draw = chance.of("moods")
        self._moods = moods
        self.is_calm = False

    def takes_for_missing(self, topic: str) -> bool:
        return not self.is_calm and self._draw.random() < self._moods.missing_topics

    def leaves_out(self, partition: int) -> bool:
        return not self.is_calm and self._draw.random() < self._moods.partial_stats

    def compaction_delay(self) -> float:
        return self._draw.choice(COMPACTION_SECONDS)


@dataclass(frozen=True, slots=True)
class Result:
    violation: str | None
    operations: int
    counts: Counter[str]  # of what clients did
    struck: Counter[Any]  # of faults, by kind
    steps: int
    seconds: float  # virtual


class Process(Protocol):
    """A sidecar that may stand still."""

    @property
    def process(self) -> object: ...
    @property
    def is_running(self) -> bool: ...
    def stand_still(self) -> None: ...
    def go_on(self) -> None: ...
    def lose_connections(self) -> None: ...


def pause(loop: SimulatedLoop, chance: Chance, member: Process, seconds: float) -> None:
    """A process stands still. The broker gives it up after a while, if it has not gone on by then."""
    if not member.is_running:
        return
    member.stand_still()
    process = member.process

    def while_it_stands(work: Callable[[], None]) -> None:
        if member.process is process and not member.is_running:
            work()

    silent = chance.of("silence").uniform(*SILENT_SECONDS)
    loop.call_later(silent, while_it_stands, member.lose_connections, context=NOBODYS)
    loop.call_later(seconds, while_it_stands, member.go_on, context=NOBODYS)


async def watched(
    tasks: Sequence[asyncio.Task[None]],
    seconds: float,
    failure: Callable[[], str | None] = lambda: None,
    *,
    all_end: bool = False,
) -> None:
    """For so long, or until one finds a violation. `failure`: what went wrong elsewhere."""
    loop = asyncio.get_running_loop()
    until = loop.time() + seconds
    while left := {task for task in tasks if not task.done()}:
        done, _ = await asyncio.wait(
            left, timeout=min(WATCH_SECONDS, until - loop.time()), return_when=asyncio.FIRST_COMPLETED
        )
        for task in done:
            task.result()
        if (what := failure()) is not None:
            raise Violation(what)
        if loop.time() >= until:
            break
    if all_end and left:
        raise Violation(f"not done after {seconds:.0f} s: {len(left)} of {len(tasks)}")


def main(
    module: str,
    description: str | None,
    drawn: Callable[[int], Any],
    run_plan: Callable[[Any], Result],
    arguments: list[str],
) -> int:
    """Runs of plans that seeds draw, as they are asked for at the command line."""
    options = arguments_for(module, description).parse_args(arguments)
    counts: Counter[str] = Counter()

    def run(seed: int) -> Result:
        plan = drawn(seed)
        if options.log:
            print(plan, flush=True)
        result = run_plan(plan)
        counts.update(result.counts)
        return result

    return run_seeds(options, run, counts)
