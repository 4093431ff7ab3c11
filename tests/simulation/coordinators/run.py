"""Runs of coordinators: `python -m tests.simulation.coordinators.run SEED [COUNT]`."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from kafka_sidecar.coordination import balance, housekeeping, runtime, term_log
from kafka_sidecar.coordination.term import Phase
from kafka_sidecar.internal_topics import internal_storage, shared_map_reader
from tests.model.cluster import Cluster
from tests.model.internal_log import InternalLog
from tests.simulation.chance import Chance
from tests.simulation.conduct import DrawnConduct, delay
from tests.simulation.coordinators import offsets, transactions
from tests.simulation.coordinators.classic_members import ClassicGroups, Epochs, Generations
from tests.simulation.coordinators.clients import Clients, FactClients, OffsetClients, RegisterClients
from tests.simulation.coordinators.consumer_members import ConsumerGroups
from tests.simulation.coordinators.converted_groups import ConvertedGroups
from tests.simulation.coordinators.fleet import FOLLOWED, NAMESPACE, NAMESPACES, TOPIC, Fleet, Member
from tests.simulation.coordinators.logs import JudgedTopic
from tests.simulation.coordinators.owners import GroupsWithMembers, Owners
from tests.simulation.coordinators.peers import SimulatedPeers
from tests.simulation.coordinators.plan import PATIENCE_SECONDS, Bounds, FaultKind, Plan, drawn
from tests.simulation.coordinators.transactional_clients import TransactionClients
from tests.simulation.coordinators.written_partitions import COUNT, WrittenPartition, WrittenPartitions
from tests.simulation.history import Violation
from tests.simulation.loop import BEGIN, SimulatedLoop
from tests.simulation.processes import BUSY_SECONDS, DrawnMoods, Result, main, pause, watched
from tests.simulation.simulated import Constant, simulated

COMPACTED_AFTER_SECONDS: Final = 20.0
PROTOCOLS: Final = ("classic", "consumer", "converted")


class Run:
    def __init__(self, plan: Plan, loop: SimulatedLoop, chance: Chance) -> None:
        bounds = plan.bounds
        topic_bounds = bounds.roughness.of_topics()
        self._plan = plan
        self._loop = loop
        self._chance = chance
        self._conducts: list[DrawnConduct] = []
        self._moods = DrawnMoods(chance, bounds.moods)
        self._topic_bounds = topic_bounds
        self._cluster = Cluster(self._new_log, self._moods)
        self._asked = self._new_conduct("questions")
        registers = JudgedTopic(self._cluster, f"persistent://{NAMESPACE}/{TOPIC}", bounds.shards)
        offsets_ = JudgedTopic(self._cluster, f"persistent://{NAMESPACE}/{offsets.TOPIC}", bounds.shards, offsets.read)
        skew = chance.of("skew")
        transactions_ = JudgedTopic(
            self._cluster, f"persistent://{NAMESPACE}/{transactions.TOPIC}", bounds.shards, transactions.read
        )
        decisions = transactions.Decisions(transactions_, bounds.shards)
        self._partitions = [
            WrittenPartition(loop, chance.apart(f"written {number}"), bounds, decisions.check_marker)
            for number in range(COUNT)
        ]
        members: list[Member] = []
        network = chance.of("network")
        peers = SimulatedPeers(members, lambda: delay(network, topic_bounds))
        members += [
            Member(
                loop,
                self._asked,
                self._cluster,
                f"s{number}",
                NAMESPACES[number % bounds.namespaces],
                number,
                bounds.shards,
                skew.choice((0.0, 0.5, -5.0, 86_400.0)),
                peers,
                WrittenPartitions(self._partitions),
                bounds.retention_minutes,
                registers.check_loaded,
                offsets_.check_loaded,
                transactions_.check_loaded,
            )
            for number in range(bounds.sidecars)
        ]
        self._fleet = Fleet(members, lambda: delay(network, topic_bounds))
        self.counts: Counter[str] = Counter()
        self.struck: Counter[FaultKind] = Counter()
        self._kinds: list[Clients] = [
            RegisterClients(self._fleet, registers, self.counts),
            OffsetClients(loop, self._fleet, offsets_, self.counts),
            FactClients(JudgedTopic(self._cluster, FOLLOWED, 1), self.counts),
            TransactionClients(self._fleet, decisions, self._partitions, offsets_, self.counts),
        ]
        owners = Owners(loop, self._fleet, offsets_, self.counts)
        consumer = ConsumerGroups(loop, owners)
        self._groups: dict[str, GroupsWithMembers] = {
            "classic": ClassicGroups(loop, owners, Generations(loop)),
            "consumer": consumer,
            "converted": ConvertedGroups(ClassicGroups(loop, owners, Epochs(loop)), consumer),
        }
        self._owners = owners
        self._is_busy = True

    def _new_conduct(self, name: str) -> DrawnConduct:
        conduct = DrawnConduct(self._loop, self._chance.apart(name), self._topic_bounds)
        self._conducts.append(conduct)
        return conduct

    def _new_log(self, topic: str, partition: int) -> InternalLog:
        return InternalLog(self._new_conduct(f"{topic}-{partition}"), self._loop, partition)

    # --- clients

    async def _client(self, number: int) -> None:
        draw = self._chance.of(f"client {number}")
        asked = 0
        while self._is_busy:
            asked += 1
            key = f"k{draw.randrange(self._plan.bounds.keys)}"
            await draw.choice(self._kinds).do_something(
                draw, draw.choice(self._fleet.members), key, f"{number}/{asked}"
            )
            await asyncio.sleep(draw.choice((0.001, 0.05, 0.5, 2.0)))

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
                    pause(self._loop, self._chance, member, fault.seconds)
                case FaultKind.UNLOAD if log is not None:
                    if isinstance(log.conduct, DrawnConduct):
                        log.conduct.unloaded_at = self._loop.time()
                    log.unload()
                case FaultKind.CRASH if log is not None:
                    log.crash()
                case FaultKind.ROLL if log is not None:
                    log.roll()
                case FaultKind.COMPACT if log is not None and not log.is_compacting:
                    log.compact(self._moods.compaction_delay)

    @property
    def _groups_with_members(self) -> Iterator[tuple[str, str]]:
        for number in range(self._plan.bounds.groups):
            protocol = PROTOCOLS[(number + self._plan.seed) % len(PROTOCOLS)]
            yield protocol, f"{protocol}-{number}"

    async def _member(self, protocol: str, group: str, number: int) -> None:
        """It is started anew when it has ended."""
        owner, draw = self._owners.new(f"m{number}", group), self._chance.of(f"{number} of {group}")
        while self._is_busy:
            await self._groups[protocol].live(owner, draw, self._goes_on)
            await asyncio.sleep(draw.choice((0.05, 0.5)))

    def _goes_on(self) -> bool:
        return self._is_busy

    # --- the run

    async def go(self) -> None:
        striking = asyncio.create_task(self._strike())
        clients = [asyncio.create_task(self._client(number)) for number in range(self._plan.bounds.clients)]
        bounds = self._plan.bounds
        clients += [
            asyncio.create_task(self._member(protocol, group, number))
            for protocol, group in self._groups_with_members
            for number in range(bounds.members)
        ]
        await watched([striking, *clients], BUSY_SECONDS)
        self._is_busy = False
        self._moods.is_calm = True
        for conduct in self._conducts:
            conduct.is_calm = True
        for partition in self._partitions:
            partition.is_calm = True
        for member in self._fleet.members:
            member.go_on()
        await watched([striking, *clients], PATIENCE_SECONDS, all_end=True)
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

    async def _check_served(self) -> None:
        """Faults are over: each register is answered through each sidecar, each fact is the greatest, and each shard
        has one leader.
        """
        until = self._loop.time() + PATIENCE_SECONDS
        for member in self._fleet.members:
            for kind in self._kinds:
                for number in range(self._plan.bounds.keys):
                    while not await kind.look(member, f"k{number}"):
                        if self._loop.time() > until:
                            raise Violation(f"{member.name} does not say what k{number} is")
                        await asyncio.sleep(1.0)
        await self._check_leaders(until)
        await self._check_freed(until)
        for protocol, group in self._groups_with_members:
            await self._groups[protocol].take_all(
                group, self._chance.of("last members"), self._loop.time() + PATIENCE_SECONDS
            )
        for kind in self._kinds:
            while not kind.is_settled and self._loop.time() < until + PATIENCE_SECONDS:  # noqa: ASYNC110
                await asyncio.sleep(1.0)
            kind.check()

    async def _check_leaders(self, until: float) -> None:
        """Each shard has one."""
        for number in range(self._plan.bounds.shards):
            for led in ("runtime", "groups", "transactions"):
                while (count := self._leaders_of(led, number)) != 1:
                    if self._loop.time() > until:
                        raise Violation(f"shard {number} of {led} has {count} leaders")
                    await asyncio.sleep(1.0)

    async def _check_freed(self, until: float) -> None:
        """What is old is compacted and gone, and no topic is kept for ever."""
        for topic, logs in self._cluster.topics.items():
            for log in logs:
                log.roll()
                while (kept := log.kept_though_old(self._plan.bounds.retention_minutes)) is not None:
                    if self._loop.time() > until:
                        raise Violation(f"{topic} has {kept}")
                    await asyncio.sleep(1.0)
                self.counts["a log has given bytes back"] += log.trimmed > 0

    def _leaders_of(self, led: str, number: int) -> int:
        terms = [getattr(one, led).coordinator.shards[number].term for one in self._fleet.members]
        return sum(term.phase is Phase.LEADING for term in terms)


def constants(bounds: Bounds) -> Sequence[Constant]:
    return (
        (runtime, "COMPACT_RECORDS", bounds.compact_records),
        (runtime, "COMPACT_SECONDS", 2.0),
        (term_log, "PERMITS", bounds.permits),
        (shared_map_reader, "PERMITS", bounds.permits),
        (housekeeping, "LOOK_SECONDS", bounds.looks),
        (internal_storage, "LEAST_ENTRIES", bounds.compact_records),
        (internal_storage, "WAIT_SECONDS", COMPACTED_AFTER_SECONDS),
        (runtime, "LOOK_SECONDS", bounds.looks),
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
    return Result(outcome.violation, run.counts.total(), run.counts, run.struck, outcome.steps, outcome.seconds)


if __name__ == "__main__":
    sys.exit(main("tests.simulation.coordinators.run", __doc__, drawn, run_plan, sys.argv[1:]))
