"""Groups as a part of the running sidecar: the topic, the candidates for its shards, the seconds.

Nothing happens before a client asks for a coordinator: a sidecar that serves no groups stands in no
election and holds no shard.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from functools import partial
from typing import Final, NamedTuple, Protocol

from handler.config import GroupsConfig, KafkaConfig
from handler.coordination.balance import Balance
from handler.coordination.directory import ADVERTISED, CONTROL, NODE, Directory, Leader
from handler.coordination.election import Election
from handler.coordination.errors import NotLeading
from handler.coordination.term import Phase
from handler.coordination.term_log import PulsarTermLog
from handler.groups.coordinator import Coordinator, OnCommitted
from handler.groups.machine import Now
from handler.groups.records import Record, partition_of
from handler.groups.records.codec import GroupRecords
from handler.groups.shard import Shard
from handler.groups.topics_image import TopicsImage, TopicSource
from handler.pulsar.admin import AlreadyExists, PulsarAdmin
from handler.pulsar.client import PulsarClient
from handler.pulsar.errors import PulsarError, TopicMissing
from handler.tasks import Backoff, KeptAlive, Shared, every
from handler.telemetry.limits import RateLimitedLog
from handler.wire.error_code import ErrorCode

log = logging.getLogger(__name__)
limited = RateLimitedLog(log)

TOPIC: Final = "__consumer_offsets"
# Seen by Pulsar's operators, and the same in every sidecar.
SUBSCRIPTION: Final = "kafka-sidecar-groups"
PRODUCER: Final = "kafka-groups"
BEAT_SECONDS: Final = 1.0
READY_SECONDS: Final = 10.0
ELECTION_SECONDS: Final = 5.0
POLL_SECONDS: Final = 0.05
RETRY_SECONDS: Final = 2.0
COMPACT_SECONDS: Final = 10.0
# How often a sidecar that advertises no address looks who leads what: there may be one beside each application.
BALANCE_SECONDS: Final = 15.0
REFRESH_SECONDS: Final = 10.0
REFRESHED_PER_SECOND: Final = 50
# Worth compacting: this many records, and several for each that counts.
COMPACT_RECORDS: Final = 10_000
COMPACT_RATIO: Final = 4


class Topics(TopicSource, Protocol):
    """The catalogue, as far as groups need it."""

    def canonical(self, name: str) -> str: ...


class Node(NamedTuple):
    node_id: int
    host: str
    port: int


def _node(leader: Leader) -> Node:
    host, _, port = leader.advertised.rpartition(":")
    return Node(leader.node, host.strip("[]"), int(port))


class GroupService:
    def __init__(
        self, client: PulsarClient, admin: PulsarAdmin, config: GroupsConfig, kafka: KafkaConfig, topics: Topics, on_committed: OnCommitted
    ) -> None:
        self._client = client
        self._admin = admin
        self._config = config
        self._kafka = kafka
        self._loop = asyncio.get_running_loop()
        self._topic = f"persistent://{config.namespace}/{TOPIC}"
        self.name = f"kafka-sidecar-{uuid.uuid4().hex[:16]}"
        self.control_address = ""  # where others reach this one, known once it listens
        self._directory = Directory(admin, self._topic, SUBSCRIPTION, self.name, self._loop.time)
        self._elections: list[Election] = []
        self._deciding: Shared[int, Leader | ErrorCode | None] = Shared()
        self._standing = KeptAlive("candidacy", "consumer groups", self._stand, backoff=Backoff(RETRY_SECONDS, RETRY_SECONDS))
        self._stood = asyncio.Event()
        self._has_left = False
        self._balance: Balance | None = None
        self._balance_at = 0.0
        self._beating = [
            every(BEAT_SECONDS, "group_seconds", self._beat),
            every(COMPACT_SECONDS, "group_compaction", self._compact),
            every(REFRESH_SECONDS, "group_topics", self._refresh_topics),
            every(BEAT_SECONDS, "group_directory", self._refresh_directory),
        ]
        self._compacted: dict[Shard, int] = {}
        self.coordinator = Coordinator(
            config, self._now, topics.canonical, TopicsImage(topics), on_committed,
            partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)),
        )  # fmt: skip

    def _now(self) -> Now:
        return Now(self._loop.time(), time.time_ns() // 1_000_000)

    def leave(self) -> None:
        """Stand in no election any more: others take over at once, and whoever waits here is told to look for them."""
        self._has_left = True
        self._standing.stop()
        for election in self._elections:
            election.close()
        self._elections.clear()

    async def close(self) -> None:
        for task in (self._standing, *self._beating):
            await task.stopped()
        await self._deciding.close()
        self.leave()

    # --- where the coordinator of a group is

    async def find(self, group_id: str, own: tuple[str, int]) -> Node:
        """Where clients find the coordinator of a group; NotLeading while there is none."""
        leader = await self.leader(group_id)
        if leader is not None and self.tells(leader):
            return _node(leader)
        return Node(self._kafka.node_id, *own)  # and passes on what is asked

    def tells(self, leader: Leader) -> bool:
        """Whether clients are told where that sidecar is: both advertise an address, and have node ids of their own."""
        known = bool(self._kafka.advertised) and leader in self._directory.told(self._kafka.node_id)
        return known and self._directory.is_settled(leader)

    def fellows(self) -> list[Node]:
        """The other sidecars that clients are told of. Those of one that advertises no address reach only that one."""
        return [_node(other) for other in self._directory.told(self._kafka.node_id)] if self._kafka.advertised else []

    async def others_now(self) -> list[Leader]:
        """The other sidecars that coordinate groups, whether this one has to do with groups or not."""
        try:
            return [leader for leader in await self._directory.leaders() if leader.name != self.name]
        except TopicMissing:
            return []  # there are no groups yet

    def leads(self, group_id: str) -> bool:
        """Whether the group is coordinated here, as far as this sidecar knows."""
        shards = self.join_elections().shards
        return bool(shards) and shards[partition_of(group_id, len(shards))].term.phase is not Phase.WAITING

    async def leader(self, group_id: str) -> Leader | None:
        """The other sidecar that coordinates a group, None when it is this one; NotLeading while there is none."""
        await self.stand()
        return await self._decided(partition_of(group_id, len(self.coordinator.shards)))

    async def leaders(self) -> list[Leader]:
        """The other sidecars that coordinate groups. Every shard has a leader by then; those here are loaded, if that is quick."""
        await self.stand()
        found = await asyncio.gather(*(self._decided(index) for index in range(len(self.coordinator.shards))))
        for _ in range(round(ELECTION_SECONDS / POLL_SECONDS)):
            if all(shard.term.phase is not Phase.LOADING for shard in self.coordinator.shards):
                break
            await asyncio.sleep(POLL_SECONDS)
        return list({leader.name: leader for leader in found if leader is not None}.values())

    async def _decided(self, index: int) -> Leader | None:
        """Who leads a shard, None for this sidecar. An election takes a moment: it is waited for, by all who ask together."""
        if self.coordinator.shards[index].term.phase is not Phase.WAITING:
            return None
        decided = await self._deciding.call(index, lambda: self._decide(index))
        if isinstance(decided, ErrorCode):
            raise NotLeading(decided)
        return decided

    async def _decide(self, index: int) -> Leader | ErrorCode | None:
        until = self._loop.time() + ELECTION_SECONDS
        while True:
            if self.coordinator.shards[index].term.phase is not Phase.WAITING:
                return None
            leader = None
            try:
                async with asyncio.timeout_at(until):
                    leader = await self._directory.leader(index)
            except (PulsarError, TimeoutError) as error:
                limited.info("who coordinates %s-%d can't be found out: %s", TOPIC, index, error or "no answer")
            if leader is not None and leader.name != self.name:
                return leader
            if self._loop.time() >= until:
                return ErrorCode.COORDINATOR_NOT_AVAILABLE
            await asyncio.sleep(POLL_SECONDS)

    def join_elections(self) -> Coordinator:
        """The coordinator, for a request that has to do with groups. With the first this sidecar becomes a candidate for all shards."""
        if not self._stood.is_set() and not self._has_left:
            self._standing.start()
        return self.coordinator

    async def stand(self) -> None:
        """Stand in the elections of all shards, from the first time on that somebody asks."""
        self.join_elections()
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._stood.wait()
        except TimeoutError as error:
            raise NotLeading(ErrorCode.COORDINATOR_NOT_AVAILABLE) from error

    async def _stand(self) -> None:
        try:
            partitions = await self._partitions()
        except PulsarError as error:
            limited.warning("consumer groups have to wait: %s", error)
            raise
        advertised = self._kafka.advertised
        metadata = {
            ADVERTISED.encode(): advertised.encode(), NODE.encode(): str(self._kafka.node_id).encode(),
            CONTROL.encode(): self.control_address.encode(),
        }  # fmt: skip
        topics = [f"{self._topic}-partition-{index}" for index in range(partitions)]
        self.coordinator.begin([(f"{TOPIC}-{index}", partial(self._open_log, topic)) for index, topic in enumerate(topics)])
        for topic, shard in zip(topics, self.coordinator.shards, strict=True):
            self._elections.append(Election(self._client, topic, SUBSCRIPTION, self.name, metadata, shard.term, lambda: self._now().wall))
        self._balance = Balance(self.name, partitions)
        for task in self._beating:
            task.start()
        self._stood.set()
        log.info("standing for coordinator of the %d partitions of %s", partitions, self._topic)

    def _open_log(self, topic: str) -> PulsarTermLog[Record]:
        return PulsarTermLog(self._client, self._admin, topic, GroupRecords(), PRODUCER)

    async def _partitions(self) -> int:
        """The partitions of the topic, which is made if it isn't there; what is there keeps its count."""
        try:
            return await self._admin.partitions(self._topic)
        except TopicMissing:
            log.info("%s is to be made with %d partitions", self._topic, self._config.offsets_partitions)
        with contextlib.suppress(AlreadyExists):
            await self._admin.create_namespace(self._config.namespace)
            # Made here, so nobody else's settings are touched: committed offsets have no subscription to keep them.
            await self._admin.keep_for_ever(self._config.namespace)
        with contextlib.suppress(AlreadyExists):
            await self._admin.create_topic(self._topic, self._config.offsets_partitions)
        return await self._admin.partitions(self._topic)

    # --- the seconds

    def _beat(self) -> None:
        self.coordinator.beat()

    async def _refresh_directory(self) -> None:
        now = self._loop.time()
        if self._kafka.advertised or now >= self._balance_at:
            self._balance_at = now + BALANCE_SECONDS
            await self._directory.refresh_if_stale()
            self._keep_balance()

    def _keep_balance(self) -> None:
        """Claim a shard that this sidecar is to lead, if one is due."""
        leading = self._directory.known_leaders
        if self._elections and leading is not None and self._balance is not None:
            members = frozenset({self.name, *(other.name for other in self._directory.others)})
            index = self._balance.shard_to_claim(self._loop.time(), members, leading)
            if index is not None:
                log.info("claiming %s-%d: each of %d sidecars is to lead its share", TOPIC, index, len(members))
                self._elections[index].claim()

    async def _refresh_topics(self) -> None:
        """Partitions that were added, topics that came and went: the groups that they concern are assigned anew."""
        needs = self.coordinator.consumers.needed(self.coordinator.shards)
        try:
            await self.coordinator.topics.refresh(lambda: self.coordinator.consumers.needed(self.coordinator.shards))
        except PulsarError as error:
            limited.info("the topics of consumer groups can't be looked at now: %s", error)
        self.coordinator.consumers.refresh(self.coordinator.shards)
        await asyncio.sleep(max(0.0, len(needs.names) / REFRESHED_PER_SECOND - REFRESH_SECONDS))

    async def _compact(self) -> None:
        """Let Pulsar compact the shards that have grown: whoever loads them next reads what counts.

        Also those that never were: until then no cursor keeps what retention would take.
        """
        for index, shard in enumerate(self.coordinator.shards):
            if shard.term.phase is not Phase.LEADING:
                self._compacted.pop(shard, None)
                continue
            topic = f"{self._topic}-partition-{index}"
            live = len(shard.groups) + sum(map(len, shard.offsets.values()))
            try:
                known = self._compacted.get(shard)
                if known is None:
                    self._compacted[shard] = 0
                    due = not await self._admin.is_compacted(topic)
                else:
                    due = shard.term.records - known > max(COMPACT_RECORDS, COMPACT_RATIO * live)
                if due:
                    await self._admin.compact(topic)
                    self._compacted[shard] = shard.term.records
            except PulsarError as error:
                limited.info("%s can't be compacted now: %s", shard.name, error)
