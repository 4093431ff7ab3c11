"""Sidecars that coordinate: what is the product's is the product's own, over the model of Pulsar."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar, cast

from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.coordination.housekeeping import Housekeeping
from kafka_sidecar.coordination.runtime import CoordinatorRuntime, InternalTopic
from kafka_sidecar.fleet.peers import Peers
from kafka_sidecar.internal_topics.shared_map import MergeRule, SharedMap
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.loop.ids import WRITER_PREFIX
from kafka_sidecar.model.sidecar import SidecarInfo
from kafka_sidecar.partition.table import PartitionTable
from kafka_sidecar.process.marker_logs import MarkerLogs
from kafka_sidecar.topics.names import TopicName, TopicNames
from kafka_sidecar.wire.error_code import ErrorCode
from tests.model.cluster import Cluster, ClusterAdmin, ClusterClient
from tests.model.connections import Connection
from tests.simulation.conduct import DrawnCaller, DrawnConduct, DrawnWay
from tests.simulation.coordinators import transactions
from tests.simulation.coordinators.logs import State
from tests.simulation.coordinators.offsets import HOME, offsets_runtime
from tests.simulation.coordinators.peers import SimulatedPeers
from tests.simulation.coordinators.registers import RegisterCoordinator, Registers
from tests.simulation.coordinators.written_partitions import WrittenPartitions
from tests.simulation.history import Violation
from tests.simulation.loop import EPOCH_SECONDS, SimulatedLoop
from tests.simulation.machine import Machine
from tests.support.memory_topics import MemoryTopics

NAMESPACE: Final = "public/__kafka"
TOPIC: Final = "__registers"
NAMESPACES: Final = (HOME, "public/team")  # of sidecars
FOLLOWED: Final = f"persistent://{NAMESPACE}/__greatest"
MOST_TASKS: Final = 400
# A client asks anew after so long.
ANSWER_SECONDS: Final = 12.0
T = TypeVar("T")
# Of a shard: its name, its term, and what it was loaded with.
OnLed = Callable[[str, Any, State], None]


class Greatest(MergeRule[int]):
    def encode(self, value: int) -> bytes:
        return b"%d" % value

    def decode(self, data: bytes) -> int:
        return int(data)

    def supersedes(self, value: int, other: int) -> bool:
        return value > other


class Member(Machine):
    """One of the fleet."""

    def __init__(
        self,
        loop: SimulatedLoop,
        conduct: DrawnConduct,
        cluster: Cluster,
        name: str,
        namespace: str,
        node: int,
        shards: int,
        skew: float,
        peers: SimulatedPeers,
        partitions: WrittenPartitions,
        retention_minutes: int,
        on_register_led: OnLed,
        on_offsets_led: OnLed,
        on_transactions_led: OnLed,
    ) -> None:
        super().__init__(loop, name)
        self._conduct = conduct
        self._cluster = cluster
        self._node = node
        self.names = TopicNames(namespace, NAMESPACE)
        self._shards = shards
        self._on_register_led = on_register_led
        self._on_offsets_led = on_offsets_led
        self._on_transactions_led = on_transactions_led
        self.peers = peers
        self._partitions = partitions
        self._retention_minutes = retention_minutes
        self._clock = Clock(lambda: int((EPOCH_SECONDS + loop.time() + skew) * 1000), loop.time)
        self._begin()

    def _begin(self) -> None:
        self._begin_life()
        self.run(self._start)

    def _start(self) -> None:
        clock, life, life_number = self._clock, f"{self.name}/{self.life}", self.life
        ids = iter(range(1, 10**9))
        caller = DrawnCaller(self._conduct, life, self.context)
        client, admin = ClusterClient(self._cluster, life, caller), ClusterAdmin(self._cluster, caller)

        def new_id() -> str:
            return f"{life}/{next(ids)}"

        topic = InternalTopic(
            kind="register",
            namespace=NAMESPACE,
            name=TOPIC,
            partitions=self._shards,
            subscription="leaders",
            producer="registers",
            codec=Registers(),
        )
        own = SidecarInfo(WRITER_PREFIX + life, self._node, f"{self.name}:9092", namespace=self.names.default_namespace)
        self.coordinator = RegisterCoordinator(
            self._loop.time, clock.awake, lambda shard: self._on_register_led(shard.name, shard.term, shard.values)
        )
        self.runtime = CoordinatorRuntime(
            client, admin, topic, own, self.names, self.coordinator, clock, new_id, MemoryTopics().id_of
        )
        self.runtime.control_address = f"{self.name}:9094"
        self.runtime.ensure_candidate()
        self.groups = offsets_runtime(
            client, admin, NAMESPACE, self._shards, own, self.names, self._loop, clock, new_id, self._on_offsets_led
        )
        self.groups.control_address = self.runtime.control_address
        self.groups.ensure_candidate()

        def new_producer_id() -> int:
            return (1_000 * next(ids) + life_number) * 100 + self._node + 1

        logs = MarkerLogs(
            self.names, cast(PartitionTable, self._partitions), self.groups, cast(Peers, self.peers), _has_none
        )
        self.transactions = transactions.runtime_of(
            client,
            admin,
            NAMESPACE,
            self._shards,
            own,
            self.names,
            self._loop,
            clock,
            new_id,
            new_producer_id,
            logs,
            self._on_transactions_led,
        )
        self.transactions.control_address = self.runtime.control_address
        self.transactions.ensure_candidate()
        self.followed = SharedMap(client, admin, FOLLOWED, Greatest(), clock, new_id)
        self.followed.start()
        led = [self.runtime.topic, self.groups.topic, self.transactions.topic]
        self.housekeeping = Housekeeping(
            client, admin, NAMESPACE, led, [FOLLOWED], [], self._retention_minutes, clock, new_id
        )
        self.housekeeping.start()

    def topic(self, local: str) -> str:
        """What this one calls a topic."""
        tenant, _, namespace = HOME.partition("/")
        return self.names.kafka(TopicName(tenant, namespace, local))

    # --- faults

    def kill(self) -> None:
        self._end_life()
        for connection in self.connections:
            connection.vanish()
        self._begin()

    def lose_connections(self) -> None:
        for connection in self.connections:
            connection.cut()

    @property
    def connections(self) -> list[Connection]:
        all_there = [connection for log in self._cluster.logs for connection in log.connections]
        return [one for one in all_there if isinstance(one.way, DrawnWay) and one.way.context is self.context]

    # --- the end

    async def close(self) -> None:
        await self.runtime.close()
        await self.groups.close()
        await self.transactions.close()
        await self.followed.close()
        await self.housekeeping.close()

    def check_bounds(self) -> None:
        if len(self.process.tasks) > MOST_TASKS:
            raise Violation(f"{self.name} has {len(self.process.tasks)} tasks")

    def check_closed(self) -> None:
        if self.process.tasks:
            raise Violation(f"{self.name} has closed all, and goes on with {next(iter(self.process.tasks))}")


class Fleet:
    def __init__(self, members: list[Member], delay: Callable[[], float]) -> None:
        self.members = members
        self.is_shared = len({one.names.default_namespace for one in members}) > 1  # by sidecars of several namespaces
        self._delay = delay

    async def ask(
        self,
        member: Member,
        runtime: Callable[[Member], CoordinatorRuntime[Any]],
        key: str,
        work: Callable[[Member], Coroutine[Any, Any, T]],
    ) -> T:
        """Of a key's leader, through one that the client knows. May raise CoordinatorError, and what `work` raises."""
        found = await _answer(member.begin(runtime(member).leaders.leader(key)))
        leader = member if found is None else self._named(found.name)
        return await self.ask_of(leader, lambda: work(leader))

    async def ask_of(self, member: Member, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Of this one, whatever it leads. May raise CoordinatorError, and what `work` raises."""
        await asyncio.sleep(self._delay())
        answer = await _answer(member.begin(work()))
        await asyncio.sleep(self._delay())
        return answer

    def _named(self, name: str) -> Member:
        return next(one for one in self.members if one.name == name.removeprefix(WRITER_PREFIX).partition("/")[0])


async def _has_none(*_: object) -> bool:
    """What brokers say of a partition's log is all that is asked here."""
    return False


async def _answer(task: asyncio.Task[T]) -> T:
    """None comes of one that was killed, or stands still: who asked gives it up."""
    await asyncio.wait({task}, timeout=ANSWER_SECONDS)
    if not task.done():
        raise CoordinatorError(ErrorCode.REQUEST_TIMED_OUT)
    return task.result()
