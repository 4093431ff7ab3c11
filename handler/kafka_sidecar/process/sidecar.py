"""The running program: put together, started, drained, stopped."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
from functools import partial
from typing import Final

from prometheus_client import start_http_server

from kafka_sidecar.admin.service import ADMIN, FROM_THIS_HOST, AdminService
from kafka_sidecar.apis.api import Services
from kafka_sidecar.apis.common.deleted_topics import forget_here
from kafka_sidecar.apis.common.handover import warm, warm_heirs
from kafka_sidecar.apis.routing.transactions import EndedTogether, PeerTransactions, ended_transactions
from kafka_sidecar.apis.state.answer_share import AnswerShare
from kafka_sidecar.apis.state.fetch_session_cache import FetchSessionCache
from kafka_sidecar.apis.state.promise import settled
from kafka_sidecar.apis.state.refused_batches import RefusedBatches
from kafka_sidecar.config import Config, metrics_address
from kafka_sidecar.coordination.housekeeping import Housekeeping
from kafka_sidecar.coordination.leaders import Identity
from kafka_sidecar.doctor import cluster as doctor
from kafka_sidecar.errors import ConfigError
from kafka_sidecar.fleet.fleet import Fleet, View
from kafka_sidecar.fleet.member import Member
from kafka_sidecar.fleet.recent_members import RecentMembers
from kafka_sidecar.fleet.server import Answers, Further, Overloaded
from kafka_sidecar.groups.records import OffsetCommitKey, OffsetCommitValue
from kafka_sidecar.groups.service import group_runtime
from kafka_sidecar.groups.vocabulary import Now
from kafka_sidecar.internal_topics.kept_states import KeptStates
from kafka_sidecar.internal_topics.log_starts import log_starts
from kafka_sidecar.internal_topics.transactional_partitions import transactional_partitions
from kafka_sidecar.loop.ids import WRITER_PREFIX
from kafka_sidecar.loop.keyed_lock import KeyedLock
from kafka_sidecar.loop.supervised import SupervisedTask, every
from kafka_sidecar.partition.fold.producer_states import ProducerMemory
from kafka_sidecar.partition.log.topic_logs import TopicLogs
from kafka_sidecar.partition.partition import PartitionLimits
from kafka_sidecar.partition.table import PartitionTable
from kafka_sidecar.process.marker_logs import MarkerLogs
from kafka_sidecar.process.pulsar_watch import pulsar_watch
from kafka_sidecar.process.replication_watch import replication_watch
from kafka_sidecar.process.surroundings import Surroundings, real_surroundings
from kafka_sidecar.server.budget import ByteBudget
from kafka_sidecar.server.dispatch import Dispatcher
from kafka_sidecar.server.listener import Listener
from kafka_sidecar.subscriptions.mirror import Mirror, PulsarTopics
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.loop_lag import LoopLag
from kafka_sidecar.topics.catalog import Catalog, Topic
from kafka_sidecar.topics.config_store import ConfigStore
from kafka_sidecar.topics.names import InvalidTopicName, TopicNames
from kafka_sidecar.topics.replication import Replication
from kafka_sidecar.topics.skipped import skipped_of
from kafka_sidecar.transactions.service import transaction_runtime

log = logging.getLogger(__name__)

# While Pulsar can't be reached: how often it is looked for, and how often that is said.
LOOK_SECONDS: Final = 2.0
# How often it is looked whether there are transactions that somebody has to coordinate.
STAND_SECONDS: Final = 10.0
SAY_SECONDS: Final = 60.0
# So many new objects, before Python looks for cycles among them.
YOUNG_OBJECTS: Final = 5_000
# Terminals and service managers may send a signal to a process twice.
REPEATED_SECONDS: Final = 1.0
# While clients go to the other sidecars: who has asked for nothing for so long has gone.
QUIET_SECONDS: Final = 1.0
# A topic costs half a millisecond, one after the other: of a thousand in use, two hundredths of a processor.
IN_USE_SECONDS: Final = 30.0


class Caller:
    """A client of another sidecar, which has passed its request on."""

    def __init__(self, services: Services, peer: str) -> None:
        self.services = services
        self.peer = peer
        self.local_address = ("", 0)
        self.is_external = False
        self.refused = RefusedBatches()
        self.software = ""
        self.told: View | None = None
        self.waiting_since = None
        self.round_trip = 0.0

    def abort(self) -> None:
        """Its connection is the other sidecar's."""


class Sidecar:
    """`start`, then `drain`, then `close`. Needs a running loop."""

    def __init__(self, config: Config, around: Surroundings | None = None) -> None:
        """`around`: what is there in place of a real Pulsar and real sidecars."""
        self.config = config
        self.port = 0
        limits = config.limits
        loop = asyncio.get_running_loop()
        around = around or real_surroundings(config)
        self.client, self.admin, self.groups_admin = around.client, around.admin, around.coordination_admin
        clock, new_id, peers = around.clock, around.new_id, around.peers
        writer_name = WRITER_PREFIX + new_id()
        names = TopicNames(config.kafka.namespace, config.groups.namespace, config.kafka.further_namespaces)
        replication = Replication(self.admin, loop.time, always_counts=config.kafka.replicated_count)
        catalog = Catalog(self.admin, names, loop.time, replication)
        self._log_starts = log_starts(
            self.client,
            self.groups_admin,
            config.groups.namespace,
            clock,
            new_id,
            lambda name, moved: self.partitions.on_start_moved(name, moved),
        )
        self._transactional = transactional_partitions(self.client, self.groups_admin, config.groups.namespace, clock, new_id)
        self._kept_states = KeptStates(self.client, self.admin, config.groups.namespace, clock, new_id)
        logs = TopicLogs(
            self.client, self.admin, catalog, config.kafka.entry_format, replication, self._log_starts, self._transactional
        )  # fmt: skip
        self._asked_together = EndedTogether(lambda producer_ids: ended_transactions(self.services, producer_ids))
        self.partitions = PartitionTable(
            logs.log, writer_name, limits.cache_bytes,
            PartitionLimits(
                replay_entries=limits.replay_entries, replay_bytes=limits.replay_bytes,
                read_ahead=limits.read_ahead_bytes, idle_seconds=limits.pulsar_idle_seconds,
                batches_per_entry=limits.batches_per_entry,
            ),
            ProducerMemory(limits.producer_state_bytes, config.transactions.producer_id_expiration_ms), clock, self._kept_states,
            self._asked_together.ended,
        )  # fmt: skip
        self._lag = SupervisedTask("loop_lag", "this sidecar", LoopLag().watch)
        self._requests = ByteBudget(limits.request_budget_bytes)
        self.answers = AnswerShare(limits.answer_bytes)
        catalog.on_record_configs = partial(_tell_properties, self.partitions, logs)
        self._standing = every(STAND_SECONDS, "open_transactions", self._stand_for_transactions)
        self._topic_listing = catalog.listing.task()
        self._pulsar_watch = pulsar_watch(self.client, self.admin)
        self._topics_in_use = every(IN_USE_SECONDS, "topics_in_use", lambda: catalog.look_at_all(list(self.partitions.topics())))
        self._replication = replication_watch(self.partitions, logs)
        mirror = Mirror(config.groups.mirror, self.admin, PulsarTopics(logs, writer_name, self.partitions))

        def now() -> Now:
            return Now(loop.time(), clock.wall())

        kafka = config.kafka
        external = kafka.own_external_advertised
        own = Identity(
            WRITER_PREFIX + new_id(), kafka.own_node_id, kafka.advertised, kafka.rack, kafka.namespace, external,
            coordinates=config.groups.coordinate,
        )  # fmt: skip
        groups = group_runtime(
            self.client, self.groups_admin, config.groups, catalog, partial(_mirror, mirror, names), now, own, names, clock, new_id
        )
        host, port = kafka.advertised_address or kafka.listen_address
        self.fleet = Fleet(
            Member(kafka.own_node_id, host, port, kafka.rack or None, kafka.external_address), own.name, groups.leaders, peers, loop.time,
            lambda node_id: self.listener.tell_again(node_id),
        )  # fmt: skip
        self._recent_members = RecentMembers(
            self.client, self.groups_admin, config.groups.namespace, self.fleet.own, kafka.namespace, self.fleet.was_there, clock, new_id
        )
        self.services = Services(
            config=config.kafka,
            settings=config,
            catalog=catalog,
            configs=ConfigStore(self.admin, config.kafka.entry_format),
            partitions=self.partitions,
            sessions=FetchSessionCache(),
            groups=groups,
            transactions=transaction_runtime(
                self.client,
                self.groups_admin,
                config.transactions,
                config.groups.namespace,
                MarkerLogs(names, self.partitions, groups, peers, catalog.has_partition),
                own,
                names,
                loop.time,
                clock,
                new_id,
                around.new_producer_id,
                catalog.id_of,
            ),
            peers=peers,
            fleet=self.fleet,
            mirror=mirror,
            log_starts=self._log_starts,
            in_turn=KeyedLock(),
            answers=self.answers,
            clock=loop.time,
            wall_clock=clock.wall,
            new_producer_id=around.new_producer_id,
        )
        self._housekeeping = Housekeeping(
            self.client, self.groups_admin, config.groups.namespace,
            [groups.topic, self.services.transactions.topic],
            [self._log_starts.topic, self._transactional.topic, self._recent_members.topic],
            [self._kept_states.topic],
            config.groups.internal_retention_minutes, clock, new_id,
        )  # fmt: skip
        self._dispatch = Dispatcher(loop.time)
        peer_transactions = PeerTransactions(self.services.transactions, groups)
        answers = Answers(
            serve=self._serve_peer, topics_deleted=partial(forget_here, self.services), transactions=peer_transactions,
            ping=self.fleet.on_ping, warm=partial(warm, self.services), heard_of=self._hear_of_namespace,
        )  # fmt: skip
        self.stop_asked = asyncio.Event()
        further = Further(ADMIN, AdminService(self.services, self.stop_asked.set), FROM_THIS_HOST)
        self.control = around.control_server(own.name, answers, further)
        self._handing_over: set[asyncio.Task[None]] = set()
        self.listener = Listener(
            self.services, self._dispatch, self._requests, self.answers, max_request=limits.max_request_bytes,
            max_connections=limits.max_connections, idle_seconds=limits.connection_idle_seconds,
            others_serve=lambda: bool(config.kafka.advertised),  # whoever has stood still does not know who has come meanwhile
            awake_clock=clock.awake,
        )  # fmt: skip

    async def start(self, *, once: bool = False) -> None:
        """Serve as soon as Pulsar can be reached; with `once` that has to be now."""
        host, port = self.config.control.listen_address
        port = await self.control.start(host, port)
        await self._wait_for_pulsar(once)
        self.client.start()
        self._log_starts.start()
        self._transactional.start()
        self.partitions.start()
        self._lag.start()
        self._topic_listing.start()
        self._standing.start()
        self._topics_in_use.start()
        self._replication.start()
        if self.config.groups.coordinate:
            self._housekeeping.start()
        metrics.PULSAR_REACHED.set(1)
        self._pulsar_watch.start()
        if host in ("127.0.0.1", "::1", "localhost") and self.config.kafka.listen_address[0] not in ("127.0.0.1", "::1", "localhost"):
            log.warning("control.listen is %s: sidecars on other machines can't pass requests for consumer groups on to this one", host)
        for runtime in (self.services.groups, self.services.transactions):
            runtime.control_address = self.config.control.told(port)
        if self.config.kafka.advertised:
            await asyncio.gather(self.fleet.start(self._on_fleet_change), self._recent_members.load())
        self.port = await self.listener.start(*self.config.kafka.listen_address)
        if self.config.kafka.external_listen_address is not None:
            await self.listener.start_external(*self.config.kafka.external_listen_address)
        if self.config.kafka.advertised:
            self._recent_members.begin()
        await self.control.ready()
        await self.fleet.serve()

    def _on_fleet_change(self) -> None:
        """Who leads now what this sidecar has led opens it; clients are sent there a little later."""
        if not self.fleet.is_leaving:  # then it waits for them
            task = asyncio.create_task(warm_heirs(self.services))
            self._handing_over.add(task)
            task.add_done_callback(self._handing_over.discard)

    async def _stand_for_transactions(self) -> None:
        """Somebody has to lead where transactions are, though no client asks: to time out what is open, to complete what is prepared."""
        if self.partitions.has_open_transactions or await self.admin.topics.is_partitioned(self.services.transactions.topic):
            self.services.transactions.ensure_candidate()

    async def _wait_for_pulsar(self, once: bool) -> None:
        """A pod may start before its cluster. A wrong setting ends the start; a cluster that is not there yet is waited for."""
        loop = asyncio.get_running_loop()
        config = self.config
        start = doctor.StartGate(once)
        say_at = loop.time()
        while True:
            findings = await doctor.examine(self.client, self.admin, config.kafka.namespace, config.groups.namespace)
            faults = [finding for finding in findings if finding.severity is doctor.Severity.FAULT]
            if not faults:
                break
            texts = "\n  ".join(finding.text for finding in faults)
            if not start.may_wait(faults, loop.time()):
                raise ConfigError(f"Pulsar is not ready for Kafka clients:\n  {texts}")
            if loop.time() >= say_at:
                say_at = loop.time() + SAY_SECONDS
                log.warning("waiting for Pulsar:\n  %s", texts)
            await asyncio.sleep(LOOK_SECONDS)
        for finding in findings:
            if finding.severity is doctor.Severity.WARNING:
                log.warning("%s", finding.text)

    async def _serve_peer(self, frame: bytes, peer: str, namespace: str) -> bytes:
        """A request that another sidecar passes on."""
        if not self._requests.try_take(len(frame)):
            raise Overloaded("no bytes are left for requests")
        try:
            handled = self._dispatch(Caller(self.services, peer), memoryview(frame), forwarded=True, by_0_2=not namespace)
            answer = await settled(handled.answer)
            assert answer is not None, "requests without an answer are not passed on"
            return b"".join(handled.encode(answer))[4:]
        finally:
            self._requests.release(len(frame))

    def _hear_of_namespace(self, namespace: str) -> None:
        """Another sidecar that has this one for its own passes a request on."""
        self.services.catalog.has_neighbour(namespace)
        self.services.groups.leaders.hear_of(namespace)

    async def drain(self) -> bool:
        """Others lead, then coordinate, what this one has; then it stops."""
        await self.control.not_ready()
        await self.fleet.leave()
        for runtime in (self.services.groups, self.services.transactions):
            runtime.leave(others_are_there=self.fleet.leads_nothing)
        self.control.drain()
        if self.fleet.leads_nothing:
            await self._hand_over()
        seconds = self.config.limits.drain_seconds
        drained = await asyncio.gather(self.listener.drain(seconds), self.control.finish(seconds))
        return all(drained)

    async def _hand_over(self) -> None:
        """Until clients have gone to the members that lead now."""
        await warm_heirs(self.services)
        self.fleet.send_away()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        services = self.services
        while loop.time() - begun < self.config.limits.handover_seconds:
            asked_at = max(services.produce_redirects.last_asked_at, services.fetch_redirects.last_asked_at, begun)
            if loop.time() - asked_at >= QUIET_SECONDS:
                break
            await asyncio.sleep(QUIET_SECONDS / 10)

    async def close(self) -> None:
        await self._recent_members.close()
        await self.fleet.close()
        for task in self._handing_over:
            task.cancel()
        await self._lag.stopped()
        await self._topic_listing.stopped()
        await self._standing.stopped()
        await self._topics_in_use.stopped()
        await self._replication.stopped()
        await self._pulsar_watch.stopped()
        await self._housekeeping.close()
        await self.services.groups.close()
        await self.services.transactions.close()
        await self.services.catalog.close()
        await self.services.mirror.close()
        await self.services.peers.close()
        await self.control.close()
        await self.partitions.close()
        await self._log_starts.close()
        await self._transactional.close()
        self._kept_states.close()
        await self.client.close()
        await self.admin.close()
        await self.groups_admin.close()


def _tell_properties(partitions: PartitionTable, logs: TopicLogs, topic: Topic) -> None:
    """What the properties of a topic ask for has changed, maybe."""
    names = [topic.name.partition(number) for number in range(topic.partitions)]
    partitions.set_config(names, logs.config_of_topic(topic))
    for number, name in enumerate(names):
        partitions.set_skipped(name, skipped_of(topic.properties, number))


def _mirror(mirror: Mirror, names: TopicNames, key: OffsetCommitKey, value: OffsetCommitValue) -> None:
    """A commit was stored: the group's subscription follows, if it is to have one."""
    if mirror.wants(key.group):
        with contextlib.suppress(InvalidTopicName):
            mirror.committed(key.group, names.parse(key.topic), key.partition, value.offset, value.topic_id)


def _serve_metrics(config: Config) -> None:
    metrics_at = metrics_address(config)
    if metrics_at is not None:
        try:
            start_http_server(metrics_at[1], metrics_at[0])
        except OSError as error:
            where = f"{config.telemetry.metrics_listen} ({error.strerror})"
            raise ConfigError(f"can't serve metrics on {where}: set telemetry.metrics_listen to a free address") from error


async def _started(sidecar: Sidecar, stop: asyncio.Event, once: bool) -> bool:
    """False where a signal came first."""
    starting = asyncio.create_task(sidecar.start(once=once))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    stopping.cancel()
    if not starting.done() and not sidecar.port:  # it serves nobody yet
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        return False
    await starting
    return True


async def run(config: Config, *, once: bool = False, ends_with_input: bool = False) -> int:
    """Serve until SIGTERM or SIGINT, or the end of the standard input; 0 after a clean drain. A second signal does not wait."""
    sidecar = Sidecar(config)
    stop = sidecar.stop_asked
    force = asyncio.Event()

    loop = asyncio.get_running_loop()
    signalled_at: list[float] = []

    def asked_to_stop() -> None:
        """The first signal drains, whoever has begun that already. One that came twice at once is the first."""
        now = loop.time()
        if signalled_at and now - signalled_at[0] >= REPEATED_SECONDS:
            force.set()
        signalled_at.append(now)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked_to_stop)
    if ends_with_input:

        def on_input() -> None:
            if not os.read(0, 1):
                loop.remove_reader(0)
                stop.set()

        loop.add_reader(0, on_input)
    try:
        _serve_metrics(config)
        if not await _started(sidecar, stop, once):
            log.info("stopped before Pulsar could be reached")
            return 0
        # A full collection looked through all that was loaded, and held the loop for 17 ms each time.
        gc.collect()
        gc.freeze()
        # What waits for Pulsar and what is cached is old before it goes. To look for cycles among it took a tenth of the time.
        gc.set_threshold(YOUNG_OBJECTS)
        host, _ = config.kafka.listen_address
        log.info("Kafka clients are served on %s:%d, Pulsar is %s", host, sidecar.port, config.pulsar.url)
        await stop.wait()
        log.info("stopping: no new connections, requests in work are finished")
        draining = asyncio.create_task(sidecar.drain())
        forced = asyncio.create_task(force.wait())
        await asyncio.wait({draining, forced}, return_when=asyncio.FIRST_COMPLETED)
        clean = draining.done() and draining.result()
        for task in (draining, forced):
            task.cancel()
        log.info("stopped" if clean else "stopped with requests in work")
        return 0 if clean else 1
    finally:
        await sidecar.close()
