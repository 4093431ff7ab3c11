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

from kio.schema.errors import ErrorCode

from handler.config import GroupsConfig, KafkaConfig
from handler.groups.coordinator import Coordinator, OnCommitted
from handler.groups.directory import ADVERTISED, CONTROL, NODE, Directory, Leader
from handler.groups.election import Election
from handler.groups.errors import NotLeading
from handler.groups.log import PulsarTermLog
from handler.groups.machine import Now
from handler.groups.records import partition_of
from handler.groups.shard import Phase, Shard
from handler.groups.topics import TopicBook, TopicSource
from handler.pulsar.admin import AlreadyExists, PulsarAdmin
from handler.pulsar.client import PulsarClient
from handler.pulsar.errors import PulsarError, TopicMissing

log = logging.getLogger(__name__)

TOPIC: Final = "__consumer_offsets"
BEAT_SECONDS: Final = 1.0
READY_SECONDS: Final = 10.0
ELECTION_SECONDS: Final = 5.0
POLL_SECONDS: Final = 0.05
RETRY_SECONDS: Final = 2.0
COMPACT_SECONDS: Final = 10.0
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
        self._directory = Directory(admin, self._topic, self.name, self._loop.time)
        self._elections: list[Election] = []
        self._deciding: dict[int, asyncio.Task[Leader | ErrorCode | None]] = {}
        self._standing: asyncio.Task[None] | None = None
        self._compacting: asyncio.Task[None] | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._beating: asyncio.Task[None] | None = None
        self._compacted: dict[Shard, int] = {}
        self.coordinator = Coordinator(
            config, self._now, topics.canonical, TopicBook(topics), on_committed,
            partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)),
        )  # fmt: skip

    def _now(self) -> Now:
        return Now(self._loop.time(), time.time_ns() // 1_000_000)

    def leave(self) -> None:
        """Stand in no election any more: others take over at once, and whoever waits here is told to look for them."""
        for election in self._elections:
            election.close()
        self._elections.clear()

    async def close(self) -> None:
        for task in (self._standing, self._beating, self._compacting, self._refreshing, *self._deciding.values()):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        await self.coordinator.informed.close()
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
        shards = self.asked().shards
        return bool(shards) and shards[partition_of(group_id, len(shards))].phase is not Phase.WAITING

    async def leader(self, group_id: str) -> Leader | None:
        """The other sidecar that coordinates a group, None when it is this one; NotLeading while there is none."""
        await self.stand()
        return await self._decided(partition_of(group_id, len(self.coordinator.shards)))

    async def leaders(self) -> list[Leader]:
        """The other sidecars that coordinate groups. Every shard has a leader by then; those here are loaded, if that is quick."""
        await self.stand()
        found = await asyncio.gather(*(self._decided(index) for index in range(len(self.coordinator.shards))))
        for _ in range(round(ELECTION_SECONDS / POLL_SECONDS)):
            if all(shard.phase is not Phase.LOADING for shard in self.coordinator.shards):
                break
            await asyncio.sleep(POLL_SECONDS)
        return list({leader.name: leader for leader in found if leader is not None}.values())

    async def _decided(self, index: int) -> Leader | None:
        """Who leads a shard, None for this sidecar. An election takes a moment: it is waited for, by all who ask together."""
        if self.coordinator.shards[index].phase is not Phase.WAITING:
            return None
        task = self._deciding.get(index)
        if task is None:
            task = self._deciding[index] = asyncio.create_task(self._decide(index))
            task.add_done_callback(lambda _: self._deciding.pop(index, None))
        decided = await asyncio.shield(task)
        if isinstance(decided, ErrorCode):
            raise NotLeading(decided)
        return decided

    async def _decide(self, index: int) -> Leader | ErrorCode | None:
        until = self._loop.time() + ELECTION_SECONDS
        while True:
            if self.coordinator.shards[index].phase is not Phase.WAITING:
                return None
            try:
                leader = await self._directory.leader(index)
            except PulsarError as error:
                log.info("who coordinates %s-%d can't be found out: %s", TOPIC, index, error)
                leader = None
            if leader is not None and leader.name != self.name:
                return leader
            if self._loop.time() >= until:
                return ErrorCode.coordinator_not_available
            await asyncio.sleep(POLL_SECONDS)

    def asked(self) -> Coordinator:
        """The coordinator, for a request that has to do with groups."""
        if self._standing is None:
            self._standing = asyncio.create_task(self._stand())
        return self.coordinator

    async def stand(self) -> None:
        """Stand in the elections of all shards, from the first time on that somebody asks."""
        self.asked()
        assert self._standing is not None
        try:
            async with asyncio.timeout(READY_SECONDS):
                await asyncio.shield(self._standing)
        except TimeoutError as error:
            raise NotLeading(ErrorCode.coordinator_not_available) from error

    async def _stand(self) -> None:
        while True:
            try:
                partitions = await self._partitions()
                break
            except PulsarError as error:
                log.warning("consumer groups have to wait: %s", error)
            except Exception:
                log.exception("consumer groups have to wait")
            await asyncio.sleep(RETRY_SECONDS)
        advertised = self._kafka.advertised
        metadata = {
            ADVERTISED.encode(): advertised.encode(), NODE.encode(): str(self._kafka.node_id).encode(),
            CONTROL.encode(): self.control_address.encode(),
        }  # fmt: skip
        topics = [f"{self._topic}-partition-{index}" for index in range(partitions)]
        self.coordinator.begin(
            [(f"{TOPIC}-{index}", partial(PulsarTermLog, self._client, self._admin, topic)) for index, topic in enumerate(topics)]
        )
        for topic, shard in zip(topics, self.coordinator.shards, strict=True):
            self._elections.append(Election(self._client, topic, self.name, metadata, shard))
        self._beating = asyncio.create_task(self._beat())
        log.info("standing for coordinator of the %d partitions of %s", partitions, self._topic)

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

    async def _beat(self) -> None:
        compact_at = self._loop.time() + COMPACT_SECONDS
        refresh_at = self._loop.time() + REFRESH_SECONDS
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            try:
                self.coordinator.beat()
                if self._kafka.advertised:
                    self._directory.refresh_if_stale()
                idle = self._compacting is None or self._compacting.done()
                if self._loop.time() >= compact_at and idle:  # not waited for: the seconds must be counted
                    compact_at = self._loop.time() + COMPACT_SECONDS
                    self._compacting = asyncio.create_task(self._compact())
                idle = self._refreshing is None or self._refreshing.done()
                if self._loop.time() >= refresh_at and idle:
                    needs = self.coordinator.consumers.needed(self.coordinator.shards)
                    refresh_at = self._loop.time() + max(REFRESH_SECONDS, len(needs.names) / REFRESHED_PER_SECOND)
                    self._refreshing = asyncio.create_task(self._refresh_topics())
            except Exception:
                log.exception("housekeeping of groups failed")

    async def _refresh_topics(self) -> None:
        """Partitions that were added, topics that came and went: the groups that they concern are assigned anew."""
        try:
            await self.coordinator.topics.refresh(lambda: self.coordinator.consumers.needed(self.coordinator.shards))
        except PulsarError as error:
            log.info("the topics of consumer groups can't be looked at now: %s", error)
        except Exception:
            log.exception("the topics of consumer groups can't be looked at")
        self.coordinator.consumers.refresh(self.coordinator.shards)

    async def _compact(self) -> None:
        """Let Pulsar compact the shards that have grown: whoever loads them next reads what counts.

        Also those that never were: until then no cursor keeps what retention would take.
        """
        for index, shard in enumerate(self.coordinator.shards):
            if shard.phase is not Phase.LEADING:
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
                    due = shard.records - known > max(COMPACT_RECORDS, COMPACT_RATIO * live)
                if due:
                    await self._admin.compact(topic)
                    self._compacted[shard] = shard.records
            except PulsarError as error:
                log.info("%s can't be compacted now: %s", shard.name, error)
            except Exception:
                log.exception("%s can't be compacted", shard.name)
