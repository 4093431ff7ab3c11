"""The running program: put together, started, drained, stopped."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from functools import partial
from typing import Final

from kafka_sidecar.admin.service import ADMIN, FROM_THIS_HOST, AdminService
from kafka_sidecar.apis.api import Services
from kafka_sidecar.apis.common.deleted_topics import forget_here
from kafka_sidecar.apis.common.handover import open_on_new_leaders, warm
from kafka_sidecar.apis.routing.transactions import EndedTogether, PeerTransactions, ended_transactions
from kafka_sidecar.apis.state.answer_share import AnswerShare
from kafka_sidecar.apis.state.fetch_session_cache import FetchSessionCache
from kafka_sidecar.config import Config, KafkaConfig, LimitsConfig
from kafka_sidecar.coordination.housekeeping import Housekeeping
from kafka_sidecar.fleet.fleet import Fleet
from kafka_sidecar.fleet.member import Member
from kafka_sidecar.fleet.recent_members import RecentMembers
from kafka_sidecar.fleet.server import Answers, Further
from kafka_sidecar.groups.records import OffsetCommitKey, OffsetCommitValue
from kafka_sidecar.groups.service import group_runtime
from kafka_sidecar.groups.vocabulary import Now
from kafka_sidecar.internal_topics.log_starts import log_starts
from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.internal_topics.snapshot_topic import SnapshotTopic
from kafka_sidecar.internal_topics.transactional_partitions import transactional_partitions
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.loop.ids import WRITER_PREFIX
from kafka_sidecar.loop.keyed_lock import KeyedLock
from kafka_sidecar.loop.supervised import SupervisedTask, every
from kafka_sidecar.model.sidecar import SidecarInfo
from kafka_sidecar.partition.fold.producer_states import ProducerMemory
from kafka_sidecar.partition.log.topic_logs import TopicLogs
from kafka_sidecar.partition.partition import PartitionLimits
from kafka_sidecar.partition.table import PartitionTable
from kafka_sidecar.process.marker_logs import MarkerLogs
from kafka_sidecar.process.parts import Part, Parts, part_of
from kafka_sidecar.process.peer_requests import PeerRequests
from kafka_sidecar.process.pulsar_watch import pulsar_watch
from kafka_sidecar.process.replication_watch import replication_watch
from kafka_sidecar.process.surroundings import Surroundings, real_surroundings
from kafka_sidecar.process.waiting_for_pulsar import wait_for_pulsar
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

# Interval at which the sidecar checks whether any transactions need a coordinator.
STAND_SECONDS: Final = 10.0
# During a handover clients move to the other sidecars. After 1 s without a Produce or Fetch for a partition led
# elsewhere, all clients have moved.
QUIET_SECONDS: Final = 1.0
# The check takes half a millisecond per topic, one topic after the other: for 1,000 topics in use, 2 % of a CPU.
IN_USE_SECONDS: Final = 30.0


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
        namespace = config.groups.namespace
        moved_starts = log_starts(self.client, self.groups_admin, namespace, clock, new_id, self._on_start_moved)
        transactional = transactional_partitions(self.client, self.groups_admin, namespace, clock, new_id)
        snapshot_topic = SnapshotTopic(self.client, self.admin, namespace, clock, new_id)
        logs = TopicLogs(
            self.client, self.admin, catalog, config.kafka.entry_format, replication, moved_starts, transactional
        )
        asked_together = EndedTogether(lambda producer_ids: ended_transactions(self.services, producer_ids))
        memory = ProducerMemory(limits.producer_state_bytes, config.transactions.producer_id_expiration_ms)
        self.partitions = PartitionTable(
            logs.log,
            writer_name,
            limits.cache_bytes,
            _partition_limits(limits),
            memory,
            clock,
            snapshot_topic,
            asked_together.ended,
        )
        requests = ByteBudget(limits.request_budget_bytes)
        self.answers = AnswerShare(limits.answer_bytes)
        catalog.on_record_configs = partial(_tell_properties, self.partitions, logs)
        mirror = Mirror(config.groups.mirror, self.admin, PulsarTopics(logs, writer_name, self.partitions))

        kafka = config.kafka
        own = _identity(kafka, WRITER_PREFIX + new_id(), coordinates=config.groups.coordinate)
        now = partial(_now, clock)
        groups = group_runtime(
            self.client,
            self.groups_admin,
            config.groups,
            catalog,
            partial(_mirror, mirror, names),
            now,
            own,
            names,
            clock,
            new_id,
        )
        host, port = kafka.advertised_address or kafka.listen_address
        self.fleet = Fleet(
            Member(kafka.own_node_id, host, port, kafka.rack or None, kafka.external_address),
            own.name,
            groups.leaders,
            peers,
            loop.time,
            lambda node_id: self.listener.tell_again(node_id),
        )
        self._recent_members = RecentMembers(
            self.client,
            self.groups_admin,
            namespace,
            self.fleet.own,
            kafka.namespace,
            self.fleet.was_there,
            clock,
            new_id,
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
                namespace,
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
            log_starts=moved_starts,
            in_turn=KeyedLock(),
            answers=self.answers,
            clock=loop.time,
            wall_clock=clock.wall,
            new_producer_id=around.new_producer_id,
        )
        housekeeping = Housekeeping(
            self.client,
            self.groups_admin,
            namespace,
            [groups.topic, self.services.transactions.topic],
            [moved_starts.topic, transactional.topic, self._recent_members.topic],
            [snapshot_topic.topic],
            config.groups.internal_retention_minutes,
            clock,
            new_id,
        )
        dispatch = Dispatcher(loop.time)
        peer_requests = PeerRequests(self.services, dispatch, requests)
        peer_transactions = PeerTransactions(self.services.transactions, groups)
        answers = Answers(
            serve=peer_requests.serve,
            topics_deleted=partial(forget_here, self.services),
            transactions=peer_transactions,
            ping=self.fleet.on_ping,
            warm=partial(warm, self.services),
            heard_of=self._hear_of_namespace,
        )
        self.stop_asked = asyncio.Event()
        further = Further(ADMIN, AdminService(self.services, self.stop_asked.set), FROM_THIS_HOST)
        self.control = around.control_server(own.name, answers, further)
        self._handing_over: set[asyncio.Task[None]] = set()
        self.listener = Listener(
            self.services,
            dispatch,
            requests,
            self.answers,
            max_request=limits.max_request_bytes,
            max_connections=limits.max_connections,
            idle_seconds=limits.connection_idle_seconds,
            # By the setting, not by the known members: after a pause of the process, other sidecars may have joined
            # unnoticed.
            others_serve=lambda: bool(config.kafka.advertised),
            awake_clock=clock.awake,
        )
        self._parts = Parts(
            [
                Part(self.groups_admin.close),
                Part(self.admin.close),
                Part(self.client.close, self.client.start),
                Part(snapshot_topic.close),
                Part(transactional.close, transactional.start),
                Part(moved_starts.close, moved_starts.start),
                Part(self.partitions.close, self.partitions.start),
                Part(self.control.close),
                Part(peers.close),
                Part(mirror.close),
                Part(catalog.close),
                Part(self.services.transactions.close),
                Part(groups.close),
                *([Part(housekeeping.close, housekeeping.start)] if config.groups.coordinate else []),
                *map(part_of, self._watches(catalog, logs)),
                Part(self._end_handover),
                Part(self.fleet.close),
                Part(self._recent_members.close),
                Part(partial(self.listener.drain, 0.0)),
            ]
        )

    def _watches(self, catalog: Catalog, logs: TopicLogs) -> Iterator[SupervisedTask]:
        """What is looked at again and again."""
        yield pulsar_watch(self.client, self.admin)
        yield replication_watch(self.partitions, logs)
        yield every(IN_USE_SECONDS, "topics_in_use", lambda: catalog.look_at_all(list(self.partitions.topics())))
        yield every(STAND_SECONDS, "open_transactions", self._stand_for_transactions)
        yield catalog.listing.task()
        yield SupervisedTask("loop_lag", "this sidecar", LoopLag().watch)

    async def start(self, *, once: bool = False) -> None:
        """Serve as soon as Pulsar can be reached; with `once` that has to be now."""
        host, port = self.config.control.listen_address
        port = await self.control.start(host, port)
        await wait_for_pulsar(self.client, self.admin, self.config, once)
        metrics.PULSAR_REACHED.set(1)
        self._parts.start()
        if host in ("127.0.0.1", "::1", "localhost") and self.config.kafka.listen_address[0] not in (
            "127.0.0.1",
            "::1",
            "localhost",
        ):
            log.warning(
                "control.listen is %s: sidecars on other machines can't pass requests for consumer groups on to this "
                "one",
                host,
            )
        for runtime in (self.services.groups, self.services.transactions):
            runtime.control_address = self.config.control.advertised_at(port)
        if self.config.kafka.advertised:
            await asyncio.gather(self.fleet.start(self._on_fleet_change), self._recent_members.load())
        self.port = await self.listener.start(*self.config.kafka.listen_address)
        if self.config.kafka.external_listen_address is not None:
            await self.listener.start_external(*self.config.kafka.external_listen_address)
        if self.config.kafka.advertised:
            self._recent_members.begin()
        await self.control.ready()
        await self.fleet.serve()

    def _on_start_moved(self, name: str, moved: MovedStart) -> None:
        self.partitions.on_start_moved(name, moved)

    def _on_fleet_change(self) -> None:
        """Who leads now what this sidecar has led opens it; clients are sent there a little later."""
        # A sidecar that leaves does this in _hand_over, and waits until the new leaders have opened the partitions.
        if not self.fleet.is_leaving:
            task = asyncio.create_task(open_on_new_leaders(self.services))
            self._handing_over.add(task)
            task.add_done_callback(self._handing_over.discard)

    async def _stand_for_transactions(self) -> None:
        """Somebody has to lead where transactions are, though no client asks: to time out what is open, to complete
        what is prepared.
        """
        if self.partitions.has_open_transactions or await self.admin.topics.is_partitioned(
            self.services.transactions.topic
        ):
            self.services.transactions.ensure_candidate()

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
        self.services.waits_elsewhere.leave()
        self.control.drain()
        if self.fleet.leads_nothing:
            await self._hand_over()
        seconds = self.config.limits.drain_seconds
        drained = await asyncio.gather(self.listener.drain(seconds), self.control.finish(seconds))
        return all(drained)

    async def _hand_over(self) -> None:
        """Until clients have gone to the members that lead now."""
        await open_on_new_leaders(self.services)
        self.fleet.send_away()
        loop = asyncio.get_running_loop()
        begun = loop.time()
        services = self.services
        while loop.time() - begun < self.config.limits.handover_seconds:
            asked_at = max(services.produce_redirects.last_asked_at, services.fetch_redirects.last_asked_at, begun)
            if loop.time() - asked_at >= QUIET_SECONDS:
                break
            await asyncio.sleep(QUIET_SECONDS / 10)

    def _end_handover(self) -> None:
        for one in self._handing_over:
            one.cancel()

    async def close(self) -> None:
        await self._parts.stop()


def _now(clock: Clock) -> Now:
    return Now(asyncio.get_running_loop().time(), clock.wall())


def _identity(kafka: KafkaConfig, name: str, *, coordinates: bool) -> SidecarInfo:
    own = SidecarInfo(name, kafka.own_node_id, kafka.advertised, rack=kafka.rack, namespace=kafka.namespace)
    return own._replace(external=kafka.own_external_advertised, coordinates=coordinates)


def _partition_limits(limits: LimitsConfig) -> PartitionLimits:
    return PartitionLimits(
        replay_entries=limits.replay_entries,
        replay_bytes=limits.replay_bytes,
        read_ahead=limits.read_ahead_bytes,
        idle_seconds=limits.pulsar_idle_seconds,
        batches_per_entry=limits.batches_per_entry,
    )


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
