"""All that handlers work with, over twins of Pulsar: topics by name, logs and groups in memory."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from kafka_sidecar.apis import BY_KEY
from kafka_sidecar.apis.api import Call, Services
from kafka_sidecar.apis.common import late
from kafka_sidecar.apis.state.answer_share import AnswerShare
from kafka_sidecar.apis.state.fetch_session_cache import FetchSessionCache
from kafka_sidecar.apis.state.promise import settled
from kafka_sidecar.apis.state.refused_batches import RefusedBatches
from kafka_sidecar.config import GroupsConfig, KafkaConfig, TransactionsConfig
from kafka_sidecar.coordination.term import Phase, Term
from kafka_sidecar.fleet.fleet import View
from kafka_sidecar.fleet.member import Member
from kafka_sidecar.groups.coordinator import Coordinator
from kafka_sidecar.groups.topics_image import TopicsImage
from kafka_sidecar.groups.vocabulary import Now
from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.loop.ids import new_producer_id
from kafka_sidecar.loop.keyed_lock import KeyedLock
from kafka_sidecar.model.sidecar import Endpoint, Node, SidecarInfo
from kafka_sidecar.partition.table import PartitionTable
from kafka_sidecar.process.marker_logs import MarkerLogs
from kafka_sidecar.pulsar.admin import AlreadyExists, DescribedTopic, NoTopicPolicies
from kafka_sidecar.pulsar.errors import Refused, TopicMissing, Unavailable
from kafka_sidecar.subscriptions.mirror import Mirror
from kafka_sidecar.topics.catalog import Catalog
from kafka_sidecar.topics.config_store import ConfigStore
from kafka_sidecar.topics.names import TopicNames
from kafka_sidecar.transactions.coordinator import Coordinator as TransactionCoordinator
from kafka_sidecar.transactions.markers import Markers
from kafka_sidecar.transactions.records import TransactionRecords
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message
from tests.support.fleet import TestFleet
from tests.support.memory_log import MemoryLog
from tests.support.memory_term_log import MemoryOffsets
from tests.support.partitions import open_table

NAMESPACE = "persistent://public/default/"


@dataclass
class MemoryAdmin:
    """Topics with their partitions and times of creation; faults by script."""

    there: dict[str, tuple[int, str]] = field(default_factory=dict)
    away: bool = False
    properties: dict[str, dict[str, str]] = field(default_factory=dict)
    retentions: dict[str, tuple[int, int]] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)  # maxMessageSize
    thresholds: dict[str, int] = field(default_factory=dict)  # of compaction
    stored: dict[str, dict[int, int]] = field(default_factory=dict)  # bytes, by partition
    keeps_policies: bool = True
    written: int = 0  # properties and policies
    lost_partition: set[str] = field(default_factory=set)
    missing_namespaces: set[str] = field(default_factory=set)
    hold: asyncio.Event | None = None  # answers wait for it
    calls: int = 0
    created: int = 0
    in_use: set[str] = field(default_factory=set)

    @property
    def topics(self) -> MemoryAdmin:
        return self

    @property
    def cluster(self) -> MemoryAdmin:
        return self

    @property
    def policies(self) -> MemoryAdmin:
        return self

    async def _answer(self) -> None:
        self.calls += 1
        if self.hold is not None:
            await self.hold.wait()
        if self.away:
            raise Unavailable("no broker")

    def make(self, name: str, partitions: int = 1) -> None:
        self.created += 1
        self.there[name if "://" in name else NAMESPACE + name] = (partitions, f"moment {self.created}")

    def _find_namespace(self, namespace: str) -> None:
        if namespace in self.missing_namespaces:
            raise TopicMissing(namespace)

    async def partitioned_topics(self, namespace: str) -> list[str]:
        await self._answer()
        self._find_namespace(namespace)
        return [
            topic
            for topic, (partitions, _) in self.there.items()
            if topic.startswith(f"persistent://{namespace}/") and partitions
        ]

    async def logs(self, namespace: str) -> list[str]:
        await self._answer()
        self._find_namespace(namespace)
        there = [
            (topic, partitions)
            for topic, (partitions, _) in self.there.items()
            if topic.startswith(f"persistent://{namespace}/")
        ]
        logs = [[f"{topic}-partition-{index}" for index in range(partitions)] or [topic] for topic, partitions in there]
        lost = {f"{topic}-partition-0" for topic in self.lost_partition}
        return [log for of_one in logs for log in of_one if log not in lost]

    async def describe(self, topic: str) -> DescribedTopic:
        await self._answer()
        if topic not in self.there:
            raise TopicMissing(topic)
        return DescribedTopic(self.there[topic][0], dict(self.properties.get(topic, {})))

    async def created_at(self, partition: str) -> str:
        await self._answer()
        topic = partition.rpartition("-partition-")[0] or partition
        if (
            topic not in self.there
            or topic in self.lost_partition
            or (self.there[topic][0] == 0 and topic != partition)
        ):
            raise Unavailable("500 Internal Server Error")
        return self.there[topic][1]

    async def create_topic(self, topic: str, partitions: int, properties: Mapping[str, str]) -> None:
        self.properties[topic] = dict(properties)
        await self._answer()
        if topic in self.there:
            raise AlreadyExists(topic)
        self.make(topic, partitions)

    async def grow_topic(self, topic: str, partitions: int) -> None:
        await self._answer()
        self.there[topic] = (partitions, self.there[topic][1])

    async def delete_unused_topic(self, topic: str) -> None:
        if topic in self.in_use:
            raise Refused("412 Topic has active producers/subscriptions")
        await self.delete_topic(topic, partitioned=True)

    async def create_missing_partitions(self, topic: str) -> None:
        await self._answer()
        self.lost_partition.discard(topic)

    async def delete_topic(self, topic: str, *, partitioned: bool) -> None:
        await self._answer()
        assert partitioned == (self.there.get(topic, (1,))[0] > 0)
        if self.there.pop(topic, None) is None:
            raise TopicMissing(topic)

    async def set_properties(self, topic: str, properties: Mapping[str, str]) -> None:
        self.written += 1
        self.properties.setdefault(topic, {}).update(properties)

    async def remove_property(self, topic: str, name: str) -> None:
        self.written += 1
        del self.properties[topic][name]

    async def broker_settings(self) -> dict[str, str]:
        return {"defaultRetentionTimeInMinutes": "0", "defaultRetentionSizeInMB": "0", "maxMessageSize": "5242880"}

    async def namespace_policies(self, namespace: str) -> dict[str, Any]:
        self._find_namespace(namespace)
        return {"retention_policies": {"retentionTimeInMinutes": 1440, "retentionSizeInMB": 500}}

    async def partition_stats(self, topic: str) -> dict[int, dict[str, Any]]:
        await self._answer()
        if topic not in self.there:
            raise TopicMissing(topic)
        return {index: {"storageSize": size} for index, size in self.stored.get(topic, {}).items()}

    def _policy(self, *, write: bool = False) -> None:
        if not self.keeps_policies:
            raise NoTopicPolicies("switch it on")
        self.written += write

    async def retention(self, topic: str) -> tuple[int, int] | None:
        self._policy()
        return self.retentions.get(topic)

    async def set_retention(self, topic: str, minutes: int, megabytes: int) -> None:
        self._policy(write=True)
        self.retentions[topic] = (minutes, megabytes)

    async def remove_retention(self, topic: str) -> None:
        self._policy(write=True)
        self.retentions.pop(topic, None)

    async def max_message_size(self, topic: str) -> int | None:
        self._policy()
        return self.sizes.get(topic)

    async def set_max_message_size(self, topic: str, size: int) -> None:
        self._policy(write=True)
        self.sizes[topic] = size

    async def remove_max_message_size(self, topic: str) -> None:
        self._policy(write=True)
        self.sizes.pop(topic, None)

    async def compaction_threshold(self, topic: str) -> int | None:
        self._policy()
        return self.thresholds.get(topic)

    async def set_compaction_threshold(self, topic: str, size: int) -> None:
        self._policy(write=True)
        self.thresholds[topic] = size

    async def remove_compaction_threshold(self, topic: str) -> None:
        self._policy(write=True)
        self.thresholds.pop(topic, None)

    async def quorums(self, topic: str) -> tuple[int, int, int] | None:
        self._policy()
        return None

    async def clusters(self) -> list[str]:
        if self.away:
            raise Unavailable("no broker")
        return ["standalone"]


class LocalLeaders:
    """All keys are of one shard, which this sidecar leads."""

    coordinator: Any

    def ensure_candidate(self) -> None:
        pass

    @property
    def _term(self) -> Term[Any]:
        term: Term[Any] = self.coordinator.shards[0].term
        return term

    def is_here(self, key: str) -> bool:
        return self._term.phase is Phase.LEADING

    def is_loading(self, key: str) -> bool:
        return self._term.phase is Phase.LOADING

    async def loaded(self, key: str, until: float | None) -> None:
        await self._term.loaded(until)

    async def leader(self, key: str) -> SidecarInfo | None:
        return None


class LocalGroups(LocalLeaders):
    """Groups that are all coordinated here."""

    def __init__(self, config: GroupsConfig, now: Any, catalog: Catalog, offsets: MemoryOffsets) -> None:
        self.coordinator = Coordinator(config, now, catalog.canonical, TopicsImage(catalog), lambda key, value: None)
        self.coordinator.begin([("__consumer_offsets-0", offsets.open)])
        self.leaders = self

    async def candidate(self) -> None: ...

    async def leader_of_shard(self, number: int) -> SidecarInfo | None:
        return None

    @property
    def are_shared(self) -> bool:
        return False

    async def know_whether_they_are_shared(self) -> bool:
        return self.are_shared

    async def known_others(self) -> list[SidecarInfo]:
        return []

    async def all(self) -> list[SidecarInfo]:
        return []

    async def find(self, group_id: str, own: tuple[str, int], is_external: bool) -> Node:
        self.coordinator.led_shard(group_id)
        return Node(1, *own)


class LocalTransactions(LocalLeaders):
    """Transactional ids that are all coordinated here."""

    def __init__(
        self,
        catalog: Catalog,
        table: PartitionTable,
        groups: LocalGroups,
        log: MemoryOffsets,
        wall_clock: Callable[[], int],
    ) -> None:
        loop = asyncio.get_running_loop()
        markers = Markers(MarkerLogs(catalog.names, table, cast(Any, groups), cast(Any, None), catalog.has_partition))
        self.coordinator = TransactionCoordinator(
            TransactionsConfig(), markers, loop.time, wall_clock, loop.time, new_producer_id
        )
        self.coordinator.begin([("__transaction_state-0", log.open)])
        self.leaders = self

    async def known_leaders(self) -> list[SidecarInfo]:
        return []

    async def all(self) -> list[SidecarInfo]:
        return []

    async def find(self, transactional_id: str, own: tuple[str, int], is_external: bool) -> Node:
        return Node(1, *own)


class MemoryLogStarts:
    """What DeleteRecords has moved, without a topic."""

    def __init__(self, logs: dict[str, MemoryLog], table: PartitionTable) -> None:
        self._logs = logs
        self._table = table

    async def put(self, partition: str, moved: MovedStart) -> None:
        self._logs[partition].start_moved_to = moved
        self._table.on_start_moved(partition, moved)

    @property
    def values(self) -> dict[str, MovedStart]:
        return {name: log.start_moved_to for name, log in self._logs.items() if log.start_moved_to is not None}

    def forget(self, values: Mapping[str, MovedStart]) -> None:
        for partition, value in values.items():
            if self.values.get(partition) == value:
                self._logs[partition].start_moved_to = None


class Client:
    """The connection that requests come through."""

    round_trip = 0.0

    peer = "127.0.0.1:5"
    local_address = Endpoint("127.0.0.1", 9092)
    waiting_since: float | None = None
    is_external = False
    software = ""
    last_metadata: View | None = None
    services: Services

    def __init__(self) -> None:
        self.aborted = 0
        self.refused = RefusedBatches()

    def abort(self) -> None:
        self.aborted += 1


@dataclass
class Sidecar:
    """Handlers to be called with requests."""

    config: KafkaConfig = field(default_factory=KafkaConfig)
    logs: dict[str, MemoryLog] = field(default_factory=dict)
    writer_name: str = "kafka-sidecar-t"
    offsets: MemoryOffsets = field(default_factory=MemoryOffsets)
    admin: MemoryAdmin = field(default_factory=MemoryAdmin)
    transaction_log: MemoryOffsets = field(default_factory=lambda: MemoryOffsets(codec=TransactionRecords()))
    later_ms: int = 0  # on the transaction coordinator's clock
    others: Sequence[Member] = ()  # of the fleet
    namespace: str = "public/default"  # of topics with short names
    skew: float = 0.0  # of the clock by which what is known of topics grows old

    def __post_init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.client = Client()
        self.catalog = Catalog(
            cast(Any, self.admin), TopicNames(self.namespace, "public/__kafka"), lambda: loop.time() + self.skew
        )
        self.table = open_table(
            lambda topic, name: self.logs.setdefault(topic, MemoryLog()).named(name), self.writer_name
        )
        groups = LocalGroups(
            GroupsConfig(initial_rebalance_delay_ms=0),
            lambda: Now(loop.time(), time.time_ns() // 1_000_000),
            self.catalog,
            self.offsets,
        )
        (self.shard,) = groups.coordinator.shards
        self.transactions = LocalTransactions(
            self.catalog, self.table, groups, self.transaction_log, lambda: time.time_ns() // 1_000_000 + self.later_ms
        )
        self.transactions.coordinator.shards[0].term.elect()
        self.fleet = TestFleet(
            Member(self.config.own_node_id, *self.client.local_address, self.config.rack or None), *self.others
        )
        self.services = Services(
            config=self.config,
            catalog=self.catalog,
            configs=ConfigStore(cast(Any, self.admin), "kafka"),
            partitions=self.table,
            sessions=FetchSessionCache(),
            groups=cast(Any, groups),
            transactions=cast(Any, self.transactions),
            peers=cast(Any, None),
            fleet=self.fleet,
            mirror=Mirror("", cast(Any, None), cast(Any, None)),
            in_turn=KeyedLock(),
            answers=AnswerShare(2**30),
            log_starts=cast(Any, MemoryLogStarts(self.logs, self.table)),
            clock=loop.time,
            wall_clock=lambda: time.time_ns() // 1_000_000,
        )
        self.client.services = self.services

    async def lead(self) -> None:
        self.shard.term.elect()
        while self.shard.term.phase is not Phase.LEADING:  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(0.001)

    def begin(self, request: Message, version: int) -> asyncio.Future[Any]:
        """As a connection does it: in the order of the calls."""
        late_at = asyncio.get_running_loop().time() + late.LATE_AFTER_SECONDS
        call = Call(version, "test", self.client, memoryview(b""), 0, late_at=late_at, loaded_by=late_at)
        return asyncio.ensure_future(settled(BY_KEY[request.KEY].handle(self.services, call, request)))

    async def ask(self, request: Message, version: int) -> Any:
        async with asyncio.timeout(10):
            return await self.begin(request, version)

    async def close(self) -> None:
        self.shard.term.depose("end")
        self.transactions.coordinator.shards[0].term.depose("end")
        await self.table.close()
        await self.catalog.lost.close()


def errors(found: Sequence[Any]) -> list[ErrorCode]:
    return [one.error_code for one in found]


__all__ = ["NAMESPACE", "Client", "MemoryAdmin", "Sidecar", "errors"]
