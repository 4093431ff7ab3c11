"""One run of a plan, or many: `python -m tests.simulation.run SEED [COUNT]`."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from kafka_sidecar.internal_topics import snapshot_parts, snapshot_shard
from kafka_sidecar.partition import opening
from kafka_sidecar.partition.fold import log_times
from kafka_sidecar.partition.follow import replay
from kafka_sidecar.partition.log import large_entries, unfolding
from kafka_sidecar.partition.read import catch_up_reader
from kafka_sidecar.partition.snapshots import fold_snapshots
from tests.simulation.chance import Chance
from tests.simulation.clients import Connection
from tests.simulation.history import Violation
from tests.simulation.loop import SimulatedLoop
from tests.simulation.many import arguments_for, run_seeds
from tests.simulation.partition_run import PartitionRun
from tests.simulation.plan import PATIENCE_SECONDS, Bounds, FaultKind, Plan, Swarm, drawn
from tests.simulation.replication import SecondCluster
from tests.simulation.sidecar import Sidecar
from tests.simulation.simulated import Constant, simulated
from tests.simulation.snapshot_topic import SnapshotLog
from tests.simulation.tally import tallied

KEPT_SOON_SECONDS: Final = 1.0


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
        kept, skew = SnapshotLog(loop, chance, plan.bounds), chance.of("skew")
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
                plan.of(number),
                number,
                loop,
                chance.apart(f"partition {number}") if number else chance,
                kept,
                self._sidecars,
                connections,
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
            done, _ = await asyncio.wait(
                wait_for, timeout=until - self._loop.time(), return_when=asyncio.FIRST_COMPLETED
            )
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
        if (
            reference.counts_first_tries
        ):  # else what retention leaves first may be what the first cluster hides (ADR 21)
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
        (unfolding, "LARGE_RECORDS", bounds.large_records),
        (large_entries, "LARGE_MESSAGES", bounds.large_records),
        (replay, "MOST_UNJUDGED", bounds.most_unjudged),
        (replay, "TOO_FAR_ENTRIES", bounds.too_far),
        (snapshot_parts, "PART_BYTES", bounds.part_bytes),
        (snapshot_shard, "PART_BYTES", bounds.part_bytes),
        (fold_snapshots, "STORED_AGAIN_AFTER", bounds.kept_after),
        (
            fold_snapshots,
            "STORE_EVERY_SECONDS",
            fold_snapshots.STORE_EVERY_SECONDS
            if bounds.kept_after == fold_snapshots.STORED_AGAIN_AFTER
            else KEPT_SOON_SECONDS,
        ),
    )


def run_plan(plan: Plan) -> Result:
    chance, runs = Chance(plan.seed), list[Run]()

    async def go(loop: SimulatedLoop) -> None:
        runs.append(Run(plan, loop, chance))
        await runs[0].go()

    outcome = simulated(
        chance, constants(plan.bounds), go, has_unreadable=any(fault.kind is FaultKind.NATIVE for fault in plan.faults)
    )
    (run,) = runs
    return Result(plan, outcome.violation, run.operations, run.struck, outcome.steps, outcome.seconds)


def main(arguments: list[str]) -> int:
    parser = arguments_for("tests.simulation.run", __doc__)
    parser.add_argument("--plan", type=Path, help="a plan that was kept, instead of a seed")
    parser.add_argument("--markers", action="store_true", help="with markers of replicated subscriptions in the log")
    parser.add_argument(
        "--tally", action="store_true", help="how often faults struck, bounds were reached, and answers were judged"
    )
    options = parser.parse_args(arguments)
    swarm = Swarm(kinds=(*Swarm().kinds, FaultKind.MARK)) if options.markers else Swarm()
    with tallied() if options.tally else nullcontext(Counter[str]()) as counts:

        def run(seed: int) -> Result:
            plan = Plan.of_data(json.loads(options.plan.read_text())) if options.plan else drawn(seed, swarm)
            if options.log:
                print(json.dumps(plan.as_data(), indent=1), flush=True)
            result = run_plan(plan)
            if options.tally:
                counts.update({f"fault: {kind}": count for kind, count in result.struck.items()})
                counts.update(f"drawn: {name} = {value}" for name, value in asdict(plan.bounds).items())
            return result

        return run_seeds(options, run, counts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
