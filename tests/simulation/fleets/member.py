"""A whole sidecar in a process that may be killed, or stand still."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from kafka_sidecar.config import Config, ControlConfig, GroupsConfig, KafkaConfig, LimitsConfig, TransactionsConfig
from kafka_sidecar.fleet.peers import Peers, PeerUnavailable
from kafka_sidecar.fleet.rpc import snake_case
from kafka_sidecar.fleet.server import Answers, ControlServer, Further
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.process.sidecar import Sidecar
from kafka_sidecar.process.surroundings import Surroundings
from kafka_sidecar.pulsar.admin import PulsarAdmin
from kafka_sidecar.pulsar.client import PulsarClient
from tests.model.cluster import Cluster
from tests.model.connections import Connection
from tests.simulation.conduct import DrawnCaller, DrawnConduct, DrawnWay
from tests.simulation.fleets.network import Address, Network
from tests.simulation.fleets.pulsar import AdminCaller, SidecarsAdmin, SidecarsClient
from tests.simulation.history import Violation
from tests.simulation.loop import EPOCH_SECONDS, SimulatedLoop
from tests.simulation.machine import Machine

KAFKA_PORT: Final = 9092
CONTROL_PORT: Final = 9094
# keepalive_time and keepalive_timeout together (kafka_sidecar.fleet.peers).
SILENT_SECONDS: Final = 10.0
MOST_TASKS: Final = 2_000


class _Control(ControlServer):
    """A control port that other members of the simulation reach."""

    def __init__(self, member: Member, name: str, answers: Answers, *further: Further) -> None:
        super().__init__(name, answers, *further)
        self._member = member

    async def start(self, host: str, port: int) -> int:
        self._member.control = self._control
        return port

    async def close(self) -> None:
        self._member.control = None
        await super().close()


class _Peers(Peers):
    def __init__(
        self, members: Mapping[str, Member], delay: Callable[[], float], clock: Callable[[], float], namespace: str
    ) -> None:
        super().__init__(clock, namespace)
        self._members = members
        self._delay = delay

    async def _call(self, address: str, method: str, request: Any, response: Any) -> Any:
        await asyncio.sleep(self._delay())
        member = self._members[address]
        control, life = member.control, member.life
        if control is None:
            raise PeerUnavailable(f"the sidecar at {address} did not answer: nobody listens there")
        task = member.begin(getattr(control, snake_case(method))(request))
        while not task.done():
            await asyncio.wait({task}, timeout=SILENT_SECONDS)
            if not task.done() and (member.life != life or not member.is_running):
                raise PeerUnavailable(f"the sidecar at {address} did not answer")
        await asyncio.sleep(self._delay())
        if task.cancelled():
            raise PeerUnavailable(f"the sidecar at {address} did not answer: it ends")
        failure = task.exception()
        if failure is not None:
            raise PeerUnavailable(f"the sidecar at {address} did not answer: {failure}") from failure
        return task.result()


class Member(Machine):
    def __init__(
        self,
        loop: SimulatedLoop,
        conduct: DrawnConduct,
        cluster: Cluster,
        network: Network,
        members: dict[str, Member],
        name: str,
        node: int,
        skew: float,
        on_failed: Callable[[str], None],
    ) -> None:
        super().__init__(loop, name)
        self.control: Any = None
        self.sidecar: Sidecar
        self.address: Address = (name, KAFKA_PORT)
        self._conduct = conduct
        self._cluster = cluster
        self._network = network
        self._members = members
        self._on_failed = on_failed
        self._without_admin_until = 0.0
        self._clock = Clock(lambda: int((EPOCH_SECONDS + loop.time() + skew) * 1000), loop.time)
        at = f"{name}:{CONTROL_PORT}"
        members[at] = self
        self._node = node
        self._config = Config(
            kafka=KafkaConfig(listen=f"{name}:{KAFKA_PORT}", advertised=f"{name}:{KAFKA_PORT}", node_id=node),
            groups=GroupsConfig(offsets_partitions=2, initial_rebalance_delay_ms=100, internal_retention_minutes=-1),
            transactions=TransactionsConfig(state_partitions=2),
            control=ControlConfig(listen=at),
            limits=LimitsConfig(pulsar_idle_seconds=20.0, cache_bytes=200_000),
        )
        self._begin()

    def _begin(self) -> None:
        self._begin_life()
        self._is_ending = False
        self._starting = self.begin(self._start())

    async def _start(self) -> None:
        life, life_number = f"{self.name}/{self.life}", self.life
        ids = iter(range(1, 10**9))
        loop = self._loop
        client = SidecarsClient(self._cluster, life, DrawnCaller(self._conduct, life, self.context))
        admin = SidecarsAdmin(
            self._cluster,
            AdminCaller(self._conduct, f"{life}/admin", self.context, lambda: loop.time() < self._without_admin_until),
        )
        around = Surroundings(
            client=cast(PulsarClient, client),
            admin=cast(PulsarAdmin, admin),
            coordination_admin=cast(PulsarAdmin, admin),
            clock=self._clock,
            new_id=lambda: f"{life}/{next(ids)}",
            new_producer_id=lambda: (1_000 * next(ids) + life_number) * 100 + self._node + 1,
            peers=_Peers(self._members, self._network.delay, loop.time, self._config.kafka.namespace),
            control_server=lambda name, answers, further: _Control(self, name, answers, further),
        )
        self.sidecar = Sidecar(self._config, around)
        try:
            await self.sidecar.start()
        except Exception as error:
            self._on_failed(f"{self.name} did not start: {error!r}")
            raise

    # --- faults

    def kill(self) -> None:
        self._end_life()
        self._go()
        self._begin()

    def _go(self) -> None:
        self.control = None
        self._network.vanish(self.process)
        for connection in self.connections:
            connection.vanish()

    def lose_admin(self, seconds: float) -> None:
        self._without_admin_until = self._loop.time() + seconds

    def lose_connections(self) -> None:
        """To Pulsar."""
        for connection in self.connections:
            connection.cut()

    async def restart(self) -> None:
        """As on SIGTERM."""
        if self._is_ending:
            return
        self._is_ending = True
        life = self.life
        task = self.begin(self._end())
        while not task.done() and self.life == life:
            await asyncio.wait({task}, timeout=1.0)
        if self.life == life:
            if task.exception() is not None:
                self._on_failed(f"{self.name} did not end: {task.exception()!r}")
            self.kill()

    async def _end(self) -> None:
        """Where it serves nobody yet, it ends at once (`app.run`)."""
        if self._starting.done() or self.sidecar.port:
            await self._starting
            await self.sidecar.drain()
        else:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        await self.sidecar.close()

    @property
    def connections(self) -> list[Connection]:
        all_there = [connection for log in self._cluster.logs for connection in log.connections]
        return [one for one in all_there if isinstance(one.way, DrawnWay) and one.way.context is self.context]

    # --- the end

    async def close(self) -> None:
        task = self.begin(self._end())
        await asyncio.wait({task}, timeout=120.0)
        if not task.done():
            raise Violation(f"{self.name} does not end")
        task.result()

    def check_bounds(self) -> None:
        if len(self.process.tasks) > MOST_TASKS:
            raise Violation(f"{self.name} has {len(self.process.tasks)} tasks")

    def check_closed(self) -> None:
        if self.process.tasks:
            raise Violation(f"{self.name} has closed all, and goes on with {next(iter(self.process.tasks))}")
