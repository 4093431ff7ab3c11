"""One run of a plan, or many: `python -m tests.simulation.run SEED [COUNT]`."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from handler.coordination import kept_parts, kept_places, kept_shard
from handler.partition import kept_fold, opening
from handler.partition.fold import log_times
from handler.partition.read import catch_up_reader, replay
from tests.simulation.chance import Chance
from tests.simulation.clients import Connection
from tests.simulation.history import Violation
from tests.simulation.kept_topic import KeptTopic
from tests.simulation.loop import SimulatedLoop
from tests.simulation.partition_run import PartitionRun
from tests.simulation.plan import PATIENCE_SECONDS, Bounds, FaultKind, Plan, Swarm, drawn
from tests.simulation.replication import SecondCluster
from tests.simulation.sidecar import Sidecar
from tests.simulation.simulated import Constant, simulated
from tests.simulation.tally import tallied

KEPT_SOON_SECONDS: Final = 1.0
COMPACT_SOON: Final = 10  # messages


@dataclass(frozen=True, slots=True)
class Result:
    plan: Plan
    violation: str | None
    operations: int
    struck: Counter[FaultKind]
    steps: int
    seconds: float  # virtual


class Run:
    def __init__(self, plan: Plan, loop: SimulatedLoop, chance: Chance) -> None:
        kept, skew = KeptTopic(loop, chance, plan.bounds), chance.of("skew")
        self._loop = loop
        self._chance = chance
        self._bounds = plan.bounds
        self._kept = kept
        self._sidecars = [
            Sidecar(loop, chance, kept, plan.bounds, f"s{number}", skew.choice((0.0, 0.5, -86_400.0, 172_800.0)))
            for number in range(plan.bounds.nodes)
        ]
        connections: dict[tuple[str, str], Connection] = {}
        self._partitions = [
            PartitionRun(
                plan.of(number), number, loop, chance.apart(f"partition {number}") if number else chance, kept, self._sidecars, connections
            )
            for number in range(plan.partitions)
        ]

    @property
    def operations(self) -> int:
        return sum(one.history.operations for one in self._partitions)

    @property
    def struck(self) -> Counter[FaultKind]:
        """How many faults of each kind were tried. A trim, say, may find nothing to take."""
        return sum((one.faults.struck for one in self._partitions), Counter())

    async def go(self) -> None:
        consumers = [task for one in self._partitions for task in one.begin_consumers()]
        working = [task for one in self._partitions for task in one.begin_work()]
        try:
            await self._finish(working, consumers)
            self._calm()
            await asyncio.gather(*(one.settled() for one in self._partitions))
            fresh = Sidecar(self._loop, self._chance, self._kept, self._bounds, "fresh")
            self._sidecars.append(fresh)
            for one in self._partitions:
                await one.read_all(fresh)
        finally:
            for task in (*working, *consumers):
                task.cancel()
        for one in self._partitions:
            one.check()
        await self._check_second_cluster(self._partitions[0])
        await self._close(self._sidecars)
        last = [Sidecar(self._loop, self._chance, self._kept, self._bounds, f"last-{number}") for number in range(2)]
        for one in self._partitions:
            await one.go_on_in_peace(last)
        await self._close(last)

    async def _finish(self, working: list[asyncio.Task[None]], watching: list[asyncio.Task[None]]) -> None:
        """Until all that end by themselves have, or one has found a violation."""
        left = set(working)
        quiet = sum(one.quiet_seconds for one in self._partitions)
        until = self._loop.time() + PATIENCE_SECONDS + quiet
        while left:
            wait_for = {*left, *watching}
            done, _ = await asyncio.wait(wait_for, timeout=until - self._loop.time(), return_when=asyncio.FIRST_COMPLETED)
            if not done:
                names = ", ".join(sorted(task.get_name() for task in left))
                raise Violation(f"not done after {PATIENCE_SECONDS:.0f} s: {names}")
            for task in done:
                task.result()
            left -= done

    def _calm(self) -> None:
        self._kept.is_calm = True
        for one in self._partitions:
            one.topic.is_calm = one.network.is_calm = True
        for sidecar in self._sidecars:
            sidecar.go_on()

    async def _check_second_cluster(self, copied: PartitionRun) -> None:
        reference = copied.reference
        if reference.strays or not self._bounds.is_replicated:
            return
        second = SecondCluster(self._loop, self._chance, self._bounds)
        expected = [reference.values[offset] for offset in sorted(reference.values)]
        await second.check(copied.topic.entries, expected, copied.history.aborted)
        if reference.counts_first_tries:  # else what retention leaves first may be what the first cluster hides (ADR 21)
            await second.check_trimmed()
        self._sidecars += (node.sidecar for node in second.nodes)

    async def _close(self, sidecars: Sequence[Sidecar]) -> None:
        for sidecar in sidecars:
            sidecar.close()
        await asyncio.sleep(60.0)
        for sidecar in sidecars:
            sidecar.let_go()
            sidecar.check_closed()


def constants(bounds: Bounds) -> Sequence[Constant]:
    return (
        (opening, "ENTRIES_BEFORE_END", bounds.entries_before),
        (catch_up_reader, "ENTRIES_BEFORE", bounds.entries_before),
        (log_times, "MARKS", bounds.marks),
        (replay, "MOST_UNJUDGED", bounds.most_unjudged),
        (replay, "TOO_FAR_ENTRIES", bounds.too_far),
        (kept_parts, "PART_BYTES", bounds.part_bytes),
        (kept_shard, "PART_BYTES", bounds.part_bytes),
        (kept_shard, "COMPACT_AFTER_WRITES", COMPACT_SOON),
        (kept_places, "COMPACT_AFTER", COMPACT_SOON),
        (kept_fold, "KEPT_ANEW_AFTER", bounds.kept_after),
        (kept_fold, "KEPT_SECONDS", kept_fold.KEPT_SECONDS if bounds.kept_after == kept_fold.KEPT_ANEW_AFTER else KEPT_SOON_SECONDS),
    )


def run_plan(plan: Plan) -> Result:
    chance, runs = Chance(plan.seed), list[Run]()

    async def go(loop: SimulatedLoop) -> None:
        runs.append(Run(plan, loop, chance))
        await runs[0].go()

    outcome = simulated(chance, constants(plan.bounds), go)
    (run,) = runs
    return Result(plan, outcome.violation, run.operations, run.struck, outcome.steps, outcome.seconds)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.run", description=__doc__)
    parser.add_argument("first", type=int, nargs="?", default=1, help="the first seed")
    parser.add_argument("count", type=int, nargs="?", default=1, help="how many seeds")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so much time of this processor")
    parser.add_argument("--plan", type=Path, help="a plan that was kept, instead of a seed")
    parser.add_argument("--markers", action="store_true", help="with markers of replicated subscriptions in the log")
    parser.add_argument("--tally", action="store_true", help="how often faults struck, bounds were reached, and answers were judged")
    parser.add_argument("--log", action="store_true", help="what is going to happen, and what the sidecars log of it")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.disable(logging.NOTSET if options.log else logging.CRITICAL)
    with tallied() if options.tally else nullcontext(Counter[str]()) as counts:
        return _run(options, counts)


def _run(options: argparse.Namespace, counts: Counter[str]) -> int:
    begun, operations, faults, runs, bad = time.process_time(), 0, 0, 0, 0
    swarm = Swarm(kinds=(*Swarm().kinds, FaultKind.MARK)) if options.markers else Swarm()
    for seed in range(options.first, options.first + options.count):
        plan = Plan.of_data(json.loads(options.plan.read_text())) if options.plan else drawn(seed, swarm)
        if options.log:
            print(json.dumps(plan.as_data(), indent=1), flush=True)
        result = run_plan(plan)
        runs, operations, faults = runs + 1, operations + result.operations, faults + result.struck.total()
        if counts:
            counts.update({f"fault: {kind}": count for kind, count in result.struck.items()})
            counts.update(f"drawn: {name} = {value}" for name, value in asdict(plan.bounds).items())
        if result.violation is not None:
            bad += 1
            print(f"seed {seed}: {result.violation}", flush=True)
        if time.process_time() - begun > options.seconds:
            break
    took = time.process_time() - begun
    rate = f"{operations} client operations ({operations / took:.0f} a second)"
    for says, count in sorted(counts.items()):
        print(f"{count:12,}  {says}")
    print(f"{runs} runs, {bad} with a violation, {rate}, {faults} faults, {took:.1f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
