"""One run of a plan, or many: `python -m tests.simulation.run SEED [COUNT]`."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType
from typing import Final

from handler.coordination import kept_places, kept_shard
from handler.partition import kept_fold, opening
from handler.partition.fold import log_times
from handler.partition.fold.fold import BEFORE_ALL
from handler.partition.log.basis import BASIS_PROPERTY, UNKNOWN_PRODUCER, Basis, KnownProducer
from handler.partition.log.entries import read_entry
from handler.partition.log.formats import KAFKA
from handler.partition.read import catch_up_reader, replay
from handler.pulsar.entry import Position
from handler.pulsar.pulsar_api_pb2 import MessageMetadata
from handler.tasks import Pace
from handler.telemetry import metrics
from handler.wire.error_code import ErrorCode
from tests.model.topic import is_marker
from tests.simulation.chance import Chance
from tests.simulation.checker import check, check_late
from tests.simulation.clients import (
    FIRST_PRODUCER,
    IN_FLIGHT,
    Consumer,
    Isolation,
    Network,
    ReadCommitted,
    ReadUncommitted,
    ends,
    idempotent_producer,
    plain_producer,
)
from tests.simulation.faults import Faults
from tests.simulation.history import History, Violation
from tests.simulation.loop import BEGIN, Endless, SimulatedLoop
from tests.simulation.node import Node
from tests.simulation.plan import PATIENCE_SECONDS, Bounds, Client, ClientKind, FaultKind, Plan, Swarm, drawn
from tests.simulation.reference import fold
from tests.simulation.replication import SecondCluster
from tests.simulation.tally import tallied
from tests.simulation.topic import SimulatedTopic
from tests.simulation.transactions import Coordinator, TransactionalProducer
from tests.support.batches import batch

# Of the loop's own: how long a simulated thread takes.
THREAD_SECONDS: Final = (0.0, 0.001, 0.05)
# At the log's start, until what was moved is known everywhere.
LOOKS: Final = 30
KEPT_SOON_SECONDS: Final = 1.0
COMPACT_SOON: Final = 10  # messages
ISOLATION: Final[Mapping[ClientKind, Isolation]] = {ClientKind.CONSUMER: ReadUncommitted(), ClientKind.COMMITTED: ReadCommitted()}


@dataclass(frozen=True, slots=True)
class Result:
    plan: Plan
    violation: str | None
    operations: int
    faults: int
    steps: int
    seconds: float  # virtual


class Run:
    def __init__(self, plan: Plan, loop: SimulatedLoop, chance: Chance) -> None:
        self.plan = plan
        self.history = History()
        self._loop = loop
        self._chance = chance
        self.topic = SimulatedTopic(loop, chance, plan.bounds)
        skew = chance.of("skew")
        self.nodes = [Node(loop, self.topic, f"s{number}", skew.choice((0.0, 0.5, -86_400.0))) for number in range(plan.bounds.nodes)]
        self.network = Network(loop, self.nodes, chance, plan.bounds)
        self.coordinator = Coordinator(self.network, self.history, chance, plan.bounds.failed_questions)
        self._faults = Faults(plan, loop, chance, self.topic, self.nodes, self.network, self.history)
        self.history.lost_its_reason = self._faults.lost_its_reason
        self._write_before()

    def _write_before(self) -> None:
        """In order, by a writer that learns now and then how far the log has come: up to five batches of a producer are on their way."""
        draw = self._chance.of("before")
        known: dict[int, tuple[Position, KnownProducer]] = {}
        for sequence in range(self.plan.bounds.written_before):
            for number in range(len(self.plan.of(ClientKind.IDEMPOTENT))):
                value = b"%d/%d" % (FIRST_PRODUCER + number, sequence)
                if number not in known or known[number][1].last_sequence < sequence - IN_FLIGHT or draw.random() < 0.3:
                    last = self.topic.entries[-1].position if self.topic.entries else BEFORE_ALL
                    known[number] = last, KnownProducer(0, sequence - 1) if sequence else UNKNOWN_PRODUCER
                metadata = MessageMetadata(producer_name=b"kafka-sidecar-before", sequence_id=len(self.topic.entries), publish_time=1)
                metadata.MergeFromString(KAFKA.fields)
                metadata.properties.add(key=BASIS_PROPERTY, value=Basis(known[number][0], [known[number][1]]).encode())
                self.topic.append(metadata, 1, batch(value, producer_id=FIRST_PRODUCER + number, epoch=0, sequence=sequence))
                self.history.acknowledge([value], self.topic.index, 0)
                if len(self.topic.entries) % 16 == 0:
                    self.topic.roll()

    @property
    def struck(self) -> int:
        """How many faults were tried. A trim, say, may find nothing to take."""
        return self._faults.struck

    async def go(self) -> None:
        consumers = [
            asyncio.create_task(self._consumer(one, ISOLATION[one.kind]).run()) for one in self.plan.clients if one.kind in ISOLATION
        ]
        producers = [
            asyncio.create_task(self._producer(one, number), name=one.name) for number, one in enumerate(self.plan.clients) if one.batches
        ]
        faults = asyncio.create_task(self._faults.strike(), name="the faults")
        try:
            await self._finish([*producers, faults], consumers)
            self._calm()
            await asyncio.gather(self.coordinator.done(), *self._faults.deleting)
            await self._read_all()
        finally:
            for task in (*producers, *consumers, faults):
                task.cancel()
        reference = fold(self.topic.entries, self.history.is_stray)
        check(self.history, reference, self._log_start)
        check_late(self.history, [*self._faults.entries_before, *self.topic.entries])
        if not reference.strays:
            second = SecondCluster(self._loop, self._chance, self.plan.bounds)
            self.nodes += second.nodes
            await second.check(self.topic.entries, [reference.values[offset] for offset in sorted(reference.values)], self.history.aborted)
            self.nodes += second.nodes[1:]
        await self._close()

    async def _finish(self, working: list[asyncio.Task[None]], watching: list[asyncio.Task[None]]) -> None:
        """Until all that end by themselves have, or one has found a violation."""
        left = set(working)
        quiet = sum([fault.seconds for fault in self.plan.faults if fault.kind is FaultKind.QUIET])
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

    async def _producer(self, client: Client, number: int) -> None:
        match client.kind:
            case ClientKind.IDEMPOTENT:
                await idempotent_producer(self.network, client, number, self.history, self._chance)
            case ClientKind.TRANSACTIONAL:
                await TransactionalProducer(self.network, self.coordinator, client, number, self.history, self._chance).run()
            case _:
                await plain_producer(self.network, client, self.history, self._chance)

    def _consumer(self, client: Client, isolation: Isolation) -> Consumer:
        return Consumer(self.network, client, self.history, self._chance, isolation)

    # --- the end

    def _calm(self) -> None:
        self.topic.is_calm = self.network.is_calm = True
        for node in self.nodes:
            node.go_on()

    @property
    def _log_start(self) -> int:
        present = self.topic.present
        if not present:
            return self.topic.index + 1
        first, moved = present[0], self.topic.start_moved_to
        assert first.last_index is not None
        start = first.last_index + 1 - (1 if is_marker(first) else read_entry(first).offset_count)
        return max(start, moved.offset) if moved is not None and moved.position >= first.position else start

    @property
    def _end(self) -> int:
        """Behind the last record: markers may follow."""
        return max(((one.last_index or 0) + 1 for one in self.topic.entries if not is_marker(one)), default=0)

    async def _read_all(self) -> None:
        """Through a sidecar that has seen nothing, and through all others: they must find the same."""
        fresh = Node(self._loop, self.topic, "fresh")
        self.nodes.append(fresh)
        for node in reversed(self.nodes):
            await self._check_start(node)
            for kind in ISOLATION if self.plan.of(ClientKind.TRANSACTIONAL) else (ClientKind.CONSUMER,):
                await self._read_through(node, self._consumer(Client(f"last-{kind}-{node.name}", kind), ISOLATION[kind]))

    async def _check_start(self, node: Node) -> None:
        """Every sidecar says where the log begins."""
        readable = [one for one in self.topic.present if not is_marker(one)]
        first = min([(one.last_index or 0) + 1 - read_entry(one).offset_count for one in readable[:1]], default=self.topic.index + 1)
        told: int | None = None
        if self._log_start < self.history.low_watermark:
            raise Violation(f"the log begins at {self._log_start}, and DeleteRecords was told {self.history.low_watermark}")
        for _ in range(LOOKS):
            opened = node.begin(node.current().opened())
            if await ends(opened, PATIENCE_SECONDS) and opened.result() is ErrorCode.NONE:
                asked = node.begin(node.current().confirmed_start())
                if await ends(asked, PATIENCE_SECONDS):
                    told = asked.result()
                    if self._log_start <= told <= max(first, self._log_start):
                        return
            await asyncio.sleep(1.0)
        raise Violation(f"{node.name} says that the log begins at {told}, and it begins at {self._log_start}")

    async def _read_through(self, node: Node, reader: Consumer) -> None:
        reader.offset = self._log_start
        until = self._loop.time() + PATIENCE_SECONDS
        while reader.offset < self._end:
            await reader.read_through(node, 5.0)
            if self._loop.time() > until:
                raise Violation(f"through {node.name} nothing comes at offset {reader.offset} of {self._end}")
            await asyncio.sleep(0.1)

    async def _close(self) -> None:
        for node in self.nodes:
            node.close()
        await asyncio.sleep(60.0)
        for node in self.nodes:
            node.let_go()
            if node.cache.used:
                raise Violation(f"{node.name} has closed all, and {node.cache.used} bytes of its cache are taken")
            if node.process.tasks:
                raise Violation(f"{node.name} has closed all, and goes on with {next(iter(node.process.tasks))}")


@contextmanager
def drawn_constants(bounds: Bounds) -> Iterator[None]:
    """Bounds that are constants of modules."""
    drawn_here: tuple[tuple[ModuleType, str, float], ...] = (
        (opening, "ENTRIES_BEFORE_END", bounds.entries_before),
        (catch_up_reader, "ENTRIES_BEFORE", bounds.entries_before),
        (log_times, "MARKS", bounds.marks),
        (replay, "MOST_UNJUDGED", bounds.most_unjudged),
        (replay, "TOO_FAR_ENTRIES", bounds.too_far),
        (kept_shard, "COMPACT_AFTER_WRITES", COMPACT_SOON),
        (kept_places, "COMPACT_AFTER", COMPACT_SOON),
        (kept_fold, "KEPT_ANEW_AFTER", bounds.kept_after),
        (kept_fold, "KEPT_SECONDS", kept_fold.KEPT_SECONDS if bounds.kept_after == kept_fold.KEPT_ANEW_AFTER else KEPT_SOON_SECONDS),
    )
    before = [getattr(module, name) for module, name, _ in drawn_here]
    for module, name, value in drawn_here:
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name, _), value in zip(drawn_here, before, strict=True):
            setattr(module, name, value)


def run_plan(plan: Plan) -> Result:
    chance = Chance(plan.seed)
    threads = chance.of("threads")
    loop = SimulatedLoop(lambda: threads.choice(THREAD_SECONDS))
    before = _troubles()
    gc.disable()  # what is collected when would decide what happens when
    Pace.clock = loop.time
    run = None
    violation = None
    try:
        asyncio.set_event_loop(loop)

        async def go() -> None:
            nonlocal run
            run = Run(plan, loop, chance)
            await run.go()

        with drawn_constants(plan.bounds):
            loop.run_until_complete(go())
        troubles = {name: now - before.get(name, 0) for name, now in _troubles().items() if now > before.get(name, 0)}
        if troubles or loop.failures:
            violation = f"troubles: {troubles} {[str(one.get('exception') or one['message']) for one in loop.failures[:3]]}"
    except (Violation, Endless) as found:
        violation = str(found)
    finally:
        Pace.clock = time.perf_counter
        loop.bury()
        asyncio.set_event_loop(None)
        loop.close()
        gc.enable()
    assert run is not None
    return Result(plan, violation, run.history.operations, run.struck, loop.steps, loop.time() - BEGIN)


def _troubles() -> dict[str, float]:
    """What may never be counted."""
    found = {}
    for counter in (metrics.INTERNAL_ERRORS, metrics.INDEX_ALARMS, metrics.UNREADABLE_ENTRIES):
        for family in counter.collect():
            for sample in family.samples:
                if sample.name.endswith("_total"):
                    found[f"{sample.name}{sample.labels or ''}"] = sample.value
    return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.run", description=__doc__)
    parser.add_argument("first", type=int, nargs="?", default=1, help="the first seed")
    parser.add_argument("count", type=int, nargs="?", default=1, help="how many seeds")
    parser.add_argument("--seconds", type=float, default=1e9, help="stop after so much time of this processor")
    parser.add_argument("--plan", type=Path, help="a plan that was kept, instead of a seed")
    parser.add_argument("--markers", action="store_true", help="with markers of replicated subscriptions in the log")
    parser.add_argument("--tally", action="store_true", help="how often faults struck, bounds were reached, and answers were judged")
    parser.add_argument("--log", action="store_true", help="what the sidecars log")
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
        result = run_plan(plan)
        runs, operations, faults = runs + 1, operations + result.operations, faults + result.faults
        if counts:
            counts.update(f"fault: {fault.kind}" for fault in plan.faults[: result.faults])
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
