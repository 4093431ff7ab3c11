"""Runs of coordinators: `python -m tests.simulation.coordinators.run SEED [COUNT]`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from handler.coordination import balance, followed_topic, runtime, term_log
from handler.coordination.errors import CoordinatorError
from handler.coordination.followed_topic import log_of
from handler.coordination.shards import shard_of
from handler.coordination.term import Phase
from handler.pulsar.errors import PulsarError
from tests.model.cluster import Cluster
from tests.model.conduct import NOBODYS
from tests.model.internal_log import InternalLog
from tests.simulation.chance import Chance
from tests.simulation.conduct import DrawnConduct, delay
from tests.simulation.coordinators.fleet import FOLLOWED, NAMESPACE, TOPIC, Fleet, Member
from tests.simulation.coordinators.logs import JudgedLog
from tests.simulation.coordinators.plan import BUSY_SECONDS, PATIENCE_SECONDS, SILENT_SECONDS, Bounds, FaultKind, Plan, drawn
from tests.simulation.coordinators.registers import RegisterShard
from tests.simulation.history import Violation
from tests.simulation.loop import BEGIN, SimulatedLoop
from tests.simulation.plan import Bounds as TopicBounds
from tests.simulation.simulated import Constant, simulated

REGISTERS: Final = f"persistent://{NAMESPACE}/{TOPIC}"
COMPACTION_SECONDS: Final = (0.01, 0.5, 3.0)


class _Moods:
    def __init__(self, chance: Chance, bounds: Bounds) -> None:
        self._draw = chance.of("moods")
        self._bounds = bounds
        self.is_calm = False

    def takes_for_missing(self, topic: str) -> bool:
        return not self.is_calm and self._draw.random() < self._bounds.missing_topics

    def leaves_out(self, partition: int) -> bool:
        return not self.is_calm and self._draw.random() < self._bounds.partial_stats

    def compaction_delay(self) -> float:
        return self._draw.choice(COMPACTION_SECONDS)


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
        bounds = plan.bounds
        topic_bounds = TopicBounds(
            slowest=bounds.slowest, lost_receipts=bounds.lost_receipts, refused_sends=bounds.refused_sends, slow_stores=bounds.slow_stores,
            failed_questions=bounds.failed_questions, orphans=bounds.orphans,
        )  # fmt: skip
        self._plan = plan
        self._loop = loop
        self._chance = chance
        self._conducts: list[DrawnConduct] = []
        self._moods = _Moods(chance, bounds)
        self._topic_bounds = topic_bounds
        self._cluster = Cluster(self._new_log, self._moods)
        self._asked = self._new_conduct("questions")
        self._judged: dict[str, JudgedLog] = {}
        skew = chance.of("skew")
        members = [
            Member(
                loop, self._asked, self._cluster, f"s{number}", number, bounds.shards, skew.choice((0.0, 0.5, -5.0, 86_400.0)), self._on_led
            )
            for number in range(bounds.sidecars)
        ]
        network = chance.of("network")
        self._fleet = Fleet(members, lambda: delay(network, topic_bounds))
        self.counts: Counter[str] = Counter()
        self.struck: Counter[FaultKind] = Counter()
        self._greatest: dict[str, int] = {}  # that was acknowledged
        self._is_busy = True

    def _new_conduct(self, name: str) -> DrawnConduct:
        conduct = DrawnConduct(self._loop, self._chance.apart(name), self._topic_bounds)
        self._conducts.append(conduct)
        return conduct

    def _new_log(self, topic: str, partition: int) -> InternalLog:
        return InternalLog(self._new_conduct(f"{topic}-{partition}"), self._loop, partition)

    def _judge(self, partition: str) -> JudgedLog:
        if partition not in self._judged:
            self._judged[partition] = JudgedLog(self._cluster.log(partition))
        return self._judged[partition]

    def _of_key(self, key: str) -> JudgedLog:
        return self._judge(f"{REGISTERS}-partition-{shard_of(key, self._plan.bounds.shards)}")

    def _on_led(self, shard: RegisterShard) -> None:
        """What was loaded is what the log held before the marker."""
        judged = self._judge(f"{REGISTERS}-partition-{shard.name.rpartition('-')[2]}")
        judged.look()
        writer = shard.term._term_log._producer.name  # type: ignore[union-attr]
        before = judged.markers.get(writer)
        if before is None:
            raise Violation(f"{shard.name} is led by {writer}, whose marker is not in the log")
        if shard.values != judged.state(before):
            raise Violation(f"{shard.name} was loaded as {shard.values} by {writer}, and is {judged.state(before)}")
        self.counts["a shard is loaded"] += 1

    # --- clients

    async def _client(self, number: int) -> None:
        draw = self._chance.of(f"client {number}")
        written = 0
        while self._is_busy:
            key = f"k{draw.randrange(self._plan.bounds.keys)}"
            member = draw.choice(self._fleet.members)
            match draw.choice(("put", "put", "get", "delete", "state", "ask")):
                case "put":
                    written += 1
                    await self._put(member, key, f"{number}/{written}")
                case "delete":
                    await self._put(member, key, None)
                case "get":
                    await self._get(member, key)
                case "state":
                    await self._state(member, key, draw.randrange(10**6))
                case _:
                    await self._ask(member, key)
            await asyncio.sleep(draw.choice((0.001, 0.05, 0.5, 2.0)))

    async def _put(self, member: Member, key: str, value: str | None) -> bool:
        begun = self._of_key_count(key)
        try:
            await self._fleet.put(member, key, value)
        except (CoordinatorError, PulsarError):
            return False
        self.counts["a value is acknowledged"] += 1
        judged = self._of_key(key)
        judged.look()
        if (key, value) not in judged.written[begun:]:
            raise Violation(f"{value!r} of {key} was acknowledged, and is not in the log")
        return True

    def _of_key_count(self, key: str) -> int:
        return self._of_key(key).count if REGISTERS in self._cluster.topics else 0

    async def _get(self, member: Member, key: str) -> bool:
        begun = self._of_key_count(key)
        try:
            value = await self._fleet.get(member, key)
        except (CoordinatorError, PulsarError):
            return False
        self.counts["a value is read"] += 1
        judged = self._of_key(key)
        held = judged.held(key, begun, judged.count)
        if value not in held:
            raise Violation(f"{member.name} says that {key} is {value!r}, and it was {held}")
        return True

    async def _state(self, member: Member, key: str, value: int) -> bool:
        """Of a followed topic: the greatest counts."""
        task = member.begin(asyncio.wait_for(member.followed.put(key, value), 20.0))
        await asyncio.wait({task}, timeout=30.0)
        if not task.done() or task.exception() is not None:
            return False
        self.counts["a fact is acknowledged"] += 1
        self._greatest[key] = max(value, self._greatest.get(key, 0))
        return True

    async def _ask(self, member: Member, key: str) -> bool:
        known = self._greatest.get(key)
        task = member.begin(member.followed.of_now(key))
        await asyncio.wait({task}, timeout=30.0)
        if not task.done() or task.exception() is not None:
            return False
        self.counts["a fact is asked"] += 1
        told_ = task.result()
        if known is not None and (told_ is None or told_ < known):
            raise Violation(f"{member.name} says that the greatest of {key} is {told_}, and {known} was acknowledged before")
        return True

    # --- faults

    async def _strike(self) -> None:
        for fault in self._plan.faults:
            await asyncio.sleep(max(0.0, BEGIN + fault.at - self._loop.time()))
            member = self._fleet.members[fault.place % len(self._fleet.members)]
            logs = self._cluster.logs
            log = logs[fault.place % len(logs)] if logs else None
            self.struck[fault.kind] += 1
            match fault.kind:
                case FaultKind.CUT:
                    member.lose_connections()
                case FaultKind.KILL:
                    member.kill()
                case FaultKind.PAUSE:
                    self._pause(member, fault.seconds)
                case FaultKind.UNLOAD if log is not None:
                    log.unload()
                case FaultKind.CRASH if log is not None:
                    log.crash()
                case FaultKind.ROLL if log is not None:
                    log.roll()
                case FaultKind.COMPACT if log is not None and not log.is_compacting:
                    log.compact(self._moods.compaction_delay)

    def _pause(self, member: Member, seconds: float) -> None:
        if not member.is_running:
            return
        member.stand_still()
        process = member.process

        def while_it_stands(work: object) -> None:
            if member.process is process and not member.is_running:
                work()  # type: ignore[operator]

        silent = self._chance.of("silence").uniform(*SILENT_SECONDS)
        self._loop.call_later(silent, while_it_stands, member.lose_connections, context=NOBODYS)
        self._loop.call_later(seconds, while_it_stands, member.go_on, context=NOBODYS)

    # --- the run

    @property
    def operations(self) -> int:
        return self.counts.total()

    async def go(self) -> None:
        striking = asyncio.create_task(self._strike())
        clients = [asyncio.create_task(self._client(number)) for number in range(self._plan.bounds.clients)]
        await self._watched([striking, *clients], BUSY_SECONDS)
        self._is_busy = False
        self._moods.is_calm = True
        for conduct in self._conducts:
            conduct.is_calm = True
        for member in self._fleet.members:
            member.go_on()
        await self._watched([striking, *clients], PATIENCE_SECONDS, all_end=True)
        await self._check_served()
        for member in self._fleet.members:
            member.check_bounds()
            closing = member.begin(member.close())
            await asyncio.wait({closing}, timeout=60.0)
            if not closing.done():
                raise Violation(f"{member.name} does not close")
            closing.result()
        await asyncio.sleep(60.0)
        for member in self._fleet.members:
            member.check_closed()

    async def _watched(self, tasks: list[asyncio.Task[None]], seconds: float, *, all_end: bool = False) -> None:
        """For so long, or until one finds a violation."""
        until = self._loop.time() + seconds
        while left := {task for task in tasks if not task.done()}:
            done, _ = await asyncio.wait(left, timeout=until - self._loop.time(), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            if not done:
                break
        if all_end and left:
            raise Violation(f"not done after {seconds:.0f} s: {len(left)} of {len(tasks)}")

    async def _check_served(self) -> None:
        """Faults are over: each register is answered through each sidecar, each fact is the greatest, and each shard has one leader."""
        until = self._loop.time() + PATIENCE_SECONDS
        for member in self._fleet.members:
            for number in range(self._plan.bounds.keys):
                key = f"k{number}"
                while not (await self._get(member, key) and await self._ask(member, key)):
                    if self._loop.time() > until:
                        raise Violation(f"{member.name} does not say what {key} is")
                    await asyncio.sleep(1.0)
        for number in range(self._plan.bounds.shards):
            leading = [one.name for one in self._fleet.members if one.coordinator.shards[number].term.phase is Phase.LEADING]
            if len(leading) > 1:
                raise Violation(f"shard {number} is led by {leading}")
        if FOLLOWED in self._cluster.topics:
            judged = self._judge(log_of(FOLLOWED))
            judged.look()
            greatest: dict[str, int] = {}
            for key, value in judged.written:
                greatest[key] = max(greatest.get(key, 0), int(value or 0))
            if any(greatest.get(key, 0) < value for key, value in self._greatest.items()):
                raise Violation(f"{self._greatest} were acknowledged, and {FOLLOWED} has {greatest}")


def constants(bounds: Bounds) -> Sequence[Constant]:
    return (
        (runtime, "COMPACT_RECORDS", bounds.compact_records),
        (runtime, "COMPACT_SECONDS", 2.0),
        (term_log, "PERMITS", bounds.permits),
        (followed_topic, "PERMITS", bounds.permits),
        (followed_topic, "WRITES_BETWEEN_COMPACTIONS", bounds.compact_records),
        (balance, "STABLE_SECONDS", bounds.settles),
        (balance, "CLAIM_SECONDS", bounds.settles / 2),
    )


def run_plan(plan: Plan) -> Result:
    chance, runs = Chance(plan.seed, "coordinators/"), list[Run]()

    async def go(loop: SimulatedLoop) -> None:
        runs.append(Run(plan, loop, chance))
        await runs[0].go()

    outcome = simulated(chance, constants(plan.bounds), go)
    (run,) = runs
    return Result(plan, outcome.violation, run.operations, run.struck, outcome.steps, outcome.seconds)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.coordinators.run", description=__doc__)
    parser.add_argument("first", type=int, nargs="?", default=1, help="the first seed")
    parser.add_argument("count", type=int, nargs="?", default=1, help="how many seeds")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so much time of this processor")
    parser.add_argument("--log", action="store_true", help="what is going to happen, and what the sidecars log of it")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    logging.disable(logging.NOTSET if options.log else logging.CRITICAL)
    begun, operations, faults, runs, bad = time.process_time(), 0, 0, 0, 0
    for seed in range(options.first, options.first + options.count):
        plan = drawn(seed)
        if options.log:
            print(plan, flush=True)
        result = run_plan(plan)
        runs, operations, faults = runs + 1, operations + result.operations, faults + result.struck.total()
        if result.violation is not None:
            bad += 1
            print(f"seed {seed}: {result.violation}", flush=True)
        if time.process_time() - begun > options.seconds:
            break
    took = time.process_time() - begun
    rate = f"{operations} client operations ({operations / took:.0f} a second)"
    print(f"{runs} runs, {bad} with a violation, {rate}, {faults} faults, {took:.1f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
