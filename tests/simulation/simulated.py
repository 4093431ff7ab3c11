"""The world around a run: its loop and constants, what it leaves behind, and what it may never count."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any, Final, NamedTuple

from prometheus_client import Counter

from kafka_sidecar.loop.pace import Pace
from kafka_sidecar.partition.log import unfolding
from kafka_sidecar.telemetry import metrics
from tests.simulation.chance import Chance
from tests.simulation.history import Violation
from tests.simulation.loop import BEGIN, PROCESS, Endless, SimulatedLoop

# How long a simulated thread takes.
THREAD_SECONDS: Final = (0.0, 0.001, 0.05)

Constant = tuple[ModuleType, str, Any]


# What may never be counted.
TROUBLES: Final = (metrics.INTERNAL_ERRORS, metrics.INDEX_ALARMS, metrics.UNREADABLE_ENTRIES)


class Outcome(NamedTuple):
    violation: str | None
    steps: int
    seconds: float  # virtual


def simulated(
    chance: Chance,
    constants: Sequence[Constant],
    go: Callable[[SimulatedLoop], Awaitable[None]],
    *,
    has_unreadable: bool = False,
) -> Outcome:
    """`has_unreadable`: entries that nobody can read are written on purpose."""
    threads = chance.of("threads")
    loop = SimulatedLoop(lambda: threads.choice(THREAD_SECONDS))
    never = TROUBLES[:-1] if has_unreadable else TROUBLES
    before = _troubles(never)
    gc.disable()  # what is collected when would decide what happens when
    Pace.clock = loop.time
    violation = None
    try:
        asyncio.set_event_loop(loop)
        with _set([*constants, (unfolding, "this_process", lambda: PROCESS.get() or loop)]):
            loop.run_until_complete(_in(go(loop)))
        counted = {
            name: now - before.get(name, 0) for name, now in _troubles(never).items() if now > before.get(name, 0)
        }
        if counted or loop.failures:
            violation = f"troubles: {counted} {_told(loop.failures)}"
    except (Violation, Endless) as found:
        violation = f"{_told(loop.failures)} {found}" if loop.failures else str(found)
    finally:
        Pace.clock = time.perf_counter
        loop.bury()
        asyncio.set_event_loop(None)
        loop.close()
        gc.enable()
    return Outcome(violation, loop.steps, loop.time() - BEGIN)


async def _in(work: Awaitable[None]) -> None:
    await work


@contextmanager
def _set(constants: Sequence[Constant]) -> Iterator[None]:
    """Bounds that are constants of modules."""
    before = [getattr(module, name) for module, name, _ in constants]
    for module, name, value in constants:
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name, _), value in zip(constants, before, strict=True):
            setattr(module, name, value)


def _told(failures: list[dict[str, Any]]) -> list[str]:
    """What was raised where nobody handles it, the first of it."""
    return [str(one.get("exception") or one["message"]) for one in failures[:3]]


def _troubles(counters: Sequence[Counter]) -> dict[str, float]:
    found = {}
    for counter in counters:
        for family in counter.collect():
            for sample in family.samples:
                if sample.name.endswith("_total"):
                    found[f"{sample.name}{sample.labels or ''}"] = sample.value
    return found
