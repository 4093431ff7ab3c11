"""Runs of whole fleets: `python -m tests.simulation.fleets.run SEED [COUNT]`."""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Final

from kafka_sidecar.groups import coordinator
from tests.model.cluster import Cluster
from tests.model.internal_log import InternalLog
from tests.simulation.chance import Chance
from tests.simulation.checker import check
from tests.simulation.conduct import DrawnConduct, delay
from tests.simulation.fleets.clients import Committer, Consumer, Place, PlainProducer, Producer, Searcher, TimedHistory
from tests.simulation.fleets.group_member import GroupHistory, GroupMember
from tests.simulation.fleets.kafka_client import KafkaClient, Lost
from tests.simulation.fleets.member import Member
from tests.simulation.fleets.network import Network
from tests.simulation.fleets.plan import PATIENCE_SECONDS, FaultKind, Plan, drawn
from tests.simulation.fleets.pulsar import SETTINGS
from tests.simulation.fleets.topic_maker import TopicMaker
from tests.simulation.fleets.transactional_producer import BEFORE_KIP_890, SINCE_KIP_890, TransactionalProducer
from tests.simulation.history import Violation
from tests.simulation.loop import BEGIN, EPOCH_SECONDS, SimulatedLoop
from tests.simulation.processes import BUSY_SECONDS, DrawnMoods, Result, main, pause, watched
from tests.simulation.reference import fold
from tests.simulation.simulated import Constant, simulated
from tests.simulation.stored import batches_of

NAMESPACE: Final = "public/default"
# What clients did that carries records, or ends a transaction.
OPERATIONS: Final = ("produce", "fetch", "commit", "end transaction")


class _Conduct(DrawnConduct):
    def now_ms(self) -> int:
        """As the sidecars' clocks have it."""
        return int((EPOCH_SECONDS + self.loop.time()) * 1_000)


class Run:
    def __init__(self, plan: Plan, loop: SimulatedLoop, chance: Chance) -> None:
        bounds = plan.bounds
        self._plan = plan
        self._loop = loop
        self._chance = chance
        self._topic_bounds = bounds.roughness.of_topics()
        self._conducts: list[DrawnConduct] = []
        self._moods = DrawnMoods(chance, bounds.moods)
        self._cluster = Cluster(self._new_log, self._moods)
        self._cluster.settings = SETTINGS
        network_draw = chance.of("network")
        self._network = loop.network = Network(loop, lambda: delay(network_draw, self._topic_bounds))
        self._is_busy = self._is_served = True
        self._failure: str | None = None
        self.struck: Counter[FaultKind] = Counter()
        self._places = [
            Place(f"t{topic}", number) for topic in range(bounds.topics) for number in range(bounds.partitions)
        ]
        for topic in range(bounds.topics):
            self._cluster.create(f"persistent://{NAMESPACE}/t{topic}", bounds.partitions)
        self._group = GroupHistory()
        self._made = Counter[str]()  # what became of the topic that is made anew
        self._last_looks: list[Callable[[], Awaitable[bool]]] = []  # of clients, once faults are over: each is answered
        self.histories = {place: TimedHistory() for place in self._places}
        questions, skew, members = self._new_conduct("questions"), chance.of("skew"), dict[str, Member]()
        self._members = [
            Member(
                loop,
                questions,
                self._cluster,
                self._network,
                members,
                f"s{number}",
                number,
                skew.choice((0.0, 0.5, -5.0, 60.0)),
                self._fail,
            )
            for number in range(bounds.sidecars)
        ]
        self._clients: list[KafkaClient] = []

    @property
    def counts(self) -> Counter[str]:
        counts = sum((history.counts for history in self.histories.values()), Counter[str]())
        counts.update(self._made)
        counts["share of a member"] += len({generation for generation, _ in self._group.owners})
        return counts

    def _fail(self, what: str) -> None:
        self._failure = self._failure or what

    def _failed(self) -> str | None:
        return self._failure

    def _new_conduct(self, name: str) -> DrawnConduct:
        conduct = _Conduct(self._loop, self._chance.apart(name), self._topic_bounds)
        self._conducts.append(conduct)
        return conduct

    def _new_log(self, topic: str, partition: int) -> InternalLog:
        return InternalLog(self._new_conduct(f"{topic}-{partition}"), self._loop, partition)

    def _log_of(self, place: Place) -> InternalLog:
        return self._cluster.log(f"persistent://{NAMESPACE}/{place.topic}-partition-{place.partition}")

    # --- clients

    def _client(self, name: str) -> KafkaClient:
        bootstrap = [member.address for member in self._members]
        client = KafkaClient(self._network, name, bootstrap)
        self._clients.append(client)
        return client

    def _works(self) -> bool:
        return self._is_busy

    def _begin_clients(self) -> Iterator[asyncio.Task[None]]:
        bounds, begin = self._plan.bounds, asyncio.create_task
        for number in range(bounds.producers):
            place, name = self._places[number % len(self._places)], f"producer {number}"
            yield begin(
                Producer(self._client(name), place, self.histories[place], self._chance.of(name), self._works).run()
            )
        for number in range(bounds.plain):
            place, name = self._places[-1], f"plain{number}"
            yield begin(
                PlainProducer(
                    self._client(name), name, place, self.histories[place], self._chance.of(name), self._works
                ).run()
            )
        for number in range(bounds.transactional):
            name = f"x{number}"
            client, draw = self._client(name), self._chance.of(name)
            versions = SINCE_KIP_890 if number in bounds.since_kip_890 else BEFORE_KIP_890
            yield begin(
                TransactionalProducer(client, name, self._places, self.histories, draw, self._works, versions).run()
            )
        for number in range(bounds.consumers):
            place, name = self._places[number % len(self._places)], f"consumer {number}"
            is_committed = bool(number % 2)
            yield begin(self._consumer(name, place, is_committed=is_committed).run())
        for number in range(bounds.searchers):
            place, name = self._places[number % len(self._places)], f"searcher {number}"
            log, draw = self._log_of(place), self._chance.of(name)
            searcher = Searcher(
                self._client(name),
                place,
                self.histories[place],
                draw,
                self._works,
                lambda log=log: log.index + 1,  # type: ignore[misc]
            )
            self._last_looks.append(searcher.search)
            yield begin(searcher.run())
        for number in range(bounds.members):
            name = f"member {number}"
            member = GroupMember(
                self._client(name),
                "of members",
                "t0",
                bounds.partitions,
                self._group,
                self._chance.of(name),
                self._works,
            )
            yield begin(member.run())
        for number in range(bounds.groups):
            place, name = self._places[number % len(self._places)], f"g{number}"
            history, draw = self.histories[place], self._chance.of(name)
            committer = Committer(self._client(f"of {name}"), name, place, history, draw, self._works)
            self._last_looks.append(committer.look)
            yield begin(committer.run())
        if bounds.makes_anew:
            name = "who makes topics anew"
            maker = TopicMaker(self._client(name), "again", self._made, self._chance.of(name), self._works)
            self._last_looks.append(maker.look)
            yield begin(maker.run())

    def _consumer(self, name: str, place: Place, *, is_committed: bool) -> Consumer:
        history, draw = self.histories[place], self._chance.of(name)
        log = self._log_of(place)
        return Consumer(
            self._client(name), place, history, draw, self._works, lambda: log.index + 1, is_committed=is_committed
        )

    # --- faults

    async def _strike(self) -> None:
        restarts: list[asyncio.Task[None]] = []
        for fault in self._plan.faults:
            await asyncio.sleep(max(0.0, BEGIN + fault.at - self._loop.time()))
            self.struck[fault.kind] += 1
            member, log = (
                self._members[fault.place % len(self._members)],
                self._cluster.logs[fault.place % len(self._cluster.logs)],
            )
            match fault.kind:
                case FaultKind.CUT:
                    member.lose_connections()
                case FaultKind.CUT_CLIENTS:
                    draw = self._chance.of("cut clients")
                    self._network.cut(member.process, lambda draw=draw: draw.random() < 0.6)  # type: ignore[misc]
                case FaultKind.KILL:
                    member.kill()
                case FaultKind.KILL_ALL:
                    for one in self._members:
                        one.kill()
                case FaultKind.RESTART if member.is_running:
                    restarts.append(asyncio.create_task(member.restart()))
                case FaultKind.PAUSE:
                    pause(self._loop, self._chance, member, fault.seconds)
                case FaultKind.UNLOAD:
                    if isinstance(log.conduct, DrawnConduct):
                        log.conduct.unloaded_at = self._loop.time()
                    log.unload()
                case FaultKind.CRASH:
                    log.crash()
                case FaultKind.NO_ADMIN:
                    member.lose_admin(fault.seconds)
                case FaultKind.ROLL:
                    log.roll()
        for task in restarts:
            await task

    # --- the run

    async def go(self) -> None:
        striking = asyncio.create_task(self._strike())
        clients = list(self._begin_clients())
        await watched([striking, *clients], BUSY_SECONDS, self._failed)
        self._is_busy = False
        self._moods.is_calm = True
        for conduct in self._conducts:
            conduct.is_calm = True
        for member in self._members:
            member.go_on()
        await watched([striking, *clients], PATIENCE_SECONDS, self._failed, all_end=True)
        await self._check_served()
        for client in self._clients:
            client.close()
        for member in self._members:
            member.check_bounds()
            await member.close()
        await asyncio.sleep(60.0)
        for member in self._members:
            member.check_closed()

    async def _check_served(self) -> None:
        """Faults are over: all that was written is given to consumers of both kinds, and what was told is true."""
        until = self._loop.time() + PATIENCE_SECONDS
        for look in self._last_looks:
            await self._answered(look, until)
        for place in self._places:
            reference = fold(self._log_of(place).entries)
            for is_committed in (False, True):
                reader = self._consumer(
                    f"last reader of {place.topic}-{place.partition}, {is_committed}", place, is_committed=is_committed
                )
                while reader.offset < reference.end:
                    if self._loop.time() > until:
                        raise Violation(f"{place} is read up to {reader.offset} of {reference.end}")
                    try:
                        await reader.fetch()
                    except Lost:
                        await asyncio.sleep(0.5)
                await self._answered(reader.has_end, until)
            check(self.histories[place], reference, 0)
            markers = {
                one.offset: one.max_timestamp
                for entry in self._log_of(place).entries
                for one in batches_of(entry)
                if one.is_control
            }
            self.histories[place].check_searches(reference.values, markers)

    async def _answered(self, look: Callable[[], Awaitable[bool]], until: float) -> None:
        while True:
            with suppress(Lost):
                if await look():
                    return
            if self._loop.time() > until:
                raise Violation(f"{look} is not answered")
            await asyncio.sleep(0.5)


class _Secrets:
    """Of names that nobody else has."""

    def __init__(self, draw: random.Random) -> None:
        self._draw = draw

    def token_hex(self, count: int) -> str:
        return self._draw.randbytes(count).hex()


def constants(chance: Chance) -> Sequence[Constant]:
    return ((coordinator, "secrets", _Secrets(chance.of("secrets"))),)


def run_plan(plan: Plan) -> Result:
    chance, runs = Chance(plan.seed, "fleets/"), list[Run]()
    random.seed(plan.seed)  # ids of fetch sessions

    async def go(loop: SimulatedLoop) -> None:
        runs.append(Run(plan, loop, chance))
        await runs[0].go()

    outcome = simulated(chance, constants(chance), go)
    (run,) = runs
    operations = sum(run.counts[kind] for kind in OPERATIONS)
    return Result(outcome.violation, operations, run.counts, run.struck, outcome.steps, outcome.seconds)


if __name__ == "__main__":
    sys.exit(main("tests.simulation.fleets.run", __doc__, drawn, run_plan, sys.argv[1:]))
