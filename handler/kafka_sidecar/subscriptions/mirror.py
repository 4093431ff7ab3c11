"""Committed offsets and the durable subscriptions of the same name, kept together.

A commit of offset N has consumed what is before N. Only entries that are consumed whole are
acknowledged: the subscription stands before the entry that holds N. Moving it is an admin call, so
commits are coalesced, and nothing waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, NamedTuple, Protocol

from kafka_sidecar.loop.ids import WRITER_PREFIX
from kafka_sidecar.loop.keyed_lock import KeyedLock
from kafka_sidecar.loop.supervised import every
from kafka_sidecar.partition.follow.read_entries import entries_from
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.partition.log.topic_logs import TopicLogs
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.table import PartitionTable
from kafka_sidecar.pulsar.admin import AlreadyExists, PulsarAdmin, names_a_subscription
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import PulsarError, TopicMissing, Unavailable
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.topics.names import TopicName
from kafka_sidecar.wire.error_code import ErrorCode

log = logging.getLogger(__name__)
limited = RateLimitedLog(log)

# All commits of a group within one second move its subscription once, since each move is an admin call.
INTERVAL_SECONDS: Final = 1.0
# Moves take at most half of the admin client's 16 connections, so that other calls are not held up.
CONCURRENT_MOVES: Final = 8
# Limit of remembered subscription positions. A subscription that is in place already needs no admin call. A position
# takes about 200 bytes.
MAX_REMEMBERED: Final = 100_000


def is_named(group: str, patterns: str) -> bool:
    """Whether groups.mirror names a group: names or patterns, separated by commas."""
    return any(fnmatchcase(group, pattern.strip()) for pattern in patterns.split(",") if pattern.strip())


def can_be_mirrored(group: str) -> bool:
    """Whether a subscription can have its name."""
    return names_a_subscription(group) and not group.startswith(WRITER_PREFIX)


class Subscription(NamedTuple):
    group: str
    partition: str  # full Pulsar name of the partition


class Committed(NamedTuple):
    offset: int
    topic: TopicName
    topic_id: uuid.UUID | None  # None if the topic id was not known at the commit


class Topics(Protocol):
    """Topics, as far as the mirror needs them. Calls may raise PulsarError."""

    def log(self, partition: str) -> EntryLog: ...
    async def log_of(self, partition: str) -> str:
        """Pulsar's topic that holds the entries of a partition: its subscriptions are there."""
        ...

    def partition(self, partition: str) -> Partition: ...
    async def topic_id(self, topic: TopicName) -> uuid.UUID: ...


@dataclass(frozen=True, slots=True)
class PulsarTopics(Topics):
    logs: TopicLogs
    writer_name: str
    partitions: PartitionTable

    def log(self, partition: str) -> EntryLog:
        return self.logs.log(partition, self.writer_name)

    async def log_of(self, partition: str) -> str:
        return await self.logs.log_of(partition)

    def partition(self, partition: str) -> Partition:
        return self.partitions.get(partition)

    async def topic_id(self, topic: TopicName) -> uuid.UUID:
        return (await self.logs.catalog.find(topic)).topic_id


class Mirror:
    def __init__(self, patterns: str, admin: PulsarAdmin, topics: Topics) -> None:
        self._topics = topics
        self._patterns = patterns
        self._admin = admin
        # Committed offsets to which the subscription has not been moved yet.
        self._wanted: dict[Subscription, Committed] = {}
        self._behind: set[Subscription] = set()  # subscriptions whose last move failed
        self._stands_at: OrderedDict[Subscription, Position] = OrderedDict()
        self._task = every(INTERVAL_SECONDS, "mirroring", self._move_all)
        self._deletions: set[asyncio.Task[None]] = set()
        self._moves = asyncio.Semaphore(CONCURRENT_MOVES)
        self._turns: KeyedLock[Subscription] = KeyedLock()

    def wants(self, group: str) -> bool:
        if not is_named(group, self._patterns):
            return False
        if can_be_mirrored(group):
            return True
        limited.warning("the group %r is not mirrored: no subscription can have this name", group)
        return False

    # --- commits → subscriptions

    def committed(self, group: str, topic: TopicName, index: int, offset: int, topic_id: uuid.UUID | None) -> None:
        """A commit was stored. Its subscription follows a little later; of several only the last counts."""
        if not self.wants(group):
            return
        self._wanted[Subscription(group, topic.partition(index))] = Committed(offset, topic, topic_id)
        self._task.start()

    def deleted(self, group: str, partitions: Sequence[str]) -> None:
        """A client has deleted what a group had committed: its subscriptions go, but for those that Pulsar clients
        use.
        """
        if self.wants(group) and partitions:
            task = asyncio.create_task(self._delete(group, partitions))
            self._deletions.add(task)
            task.add_done_callback(self._deletions.discard)

    async def _delete(self, group: str, partitions: Sequence[str]) -> None:
        subscriptions = [Subscription(group, partition) for partition in partitions]
        for subscription in subscriptions:
            self._wanted.pop(subscription, None)
        for subscription in subscriptions:
            async with self._turns.turn(subscription):  # a move in flight would create the subscription again
                self._stands_at.pop(subscription, None)
                self._behind.discard(subscription)
                try:
                    await self._admin.subscriptions.delete(await self._topics.log_of(subscription.partition), group)
                except TopicMissing:
                    pass
                except PulsarError as error:
                    log.info("the subscription %s of %s stays: %s", group, subscription.partition, error)

    async def close(self) -> None:
        """Bring the subscriptions to where the commits are, as far as that is quick."""
        if self._task.running:
            await self._task.stopped()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(INTERVAL_SECONDS * 5):
                    await self._move_all()

    async def _move_all(self) -> None:
        await asyncio.gather(*map(self._follow, list(self._wanted)))
        metrics.MIRROR_BEHIND.set(len(self._behind))

    async def _follow(self, subscription: Subscription) -> None:
        async with self._moves, self._turns.turn(subscription):
            committed = self._wanted.get(subscription)
            if committed is None:  # the committed offset was deleted meanwhile
                return
            try:
                if (
                    committed.topic_id is not None
                    and await self._topics.topic_id(committed.topic) != committed.topic_id
                ):
                    self._done(subscription, committed)  # the offset was committed for a deleted topic of the same name
                    return
                await self.move(subscription, committed.offset)
            except TopicMissing:
                self._done(subscription, committed)
                log.info("%s is gone, and with it the subscription %s", subscription.partition, subscription.group)
            except Exception as error:
                if not isinstance(error, PulsarError):
                    metrics.INTERNAL_ERRORS.labels("mirroring").inc()
                    limited.exception(
                        "the subscription %s of %s could not be moved", subscription.group, subscription.partition
                    )
                if subscription not in self._behind:
                    log.warning(
                        "the subscription %s of %s follows its group later: %s",
                        subscription.group,
                        subscription.partition,
                        error,
                    )
                self._behind.add(subscription)
            else:
                if self._done(subscription, committed):
                    log.info(
                        "the subscription %s of %s follows its group again", subscription.group, subscription.partition
                    )

    def _done(self, subscription: Subscription, committed: Committed) -> bool:
        """Nothing is left to do for this commit. Whether something had failed before."""
        if self._wanted.get(subscription) is committed:  # a newer committed offset still has to be mirrored
            del self._wanted[subscription]
        was_behind = subscription in self._behind
        self._behind.discard(subscription)
        return was_behind

    async def move(self, subscription: Subscription, offset: int) -> None:
        """Put the subscription before the entry that holds `offset`."""
        position = await next_to_read(self._topics.log(subscription.partition), offset)
        if self._stands_at.get(subscription) == position:
            return
        topic = await self._topics.log_of(subscription.partition)
        try:
            if subscription not in self._stands_at:
                raise TopicMissing(f"no subscription {subscription.group} is known")
            await self._admin.subscriptions.reset_cursor(topic, subscription.group, position)
        # Pulsar answers 404 for a missing subscription too: it has expired, or the topic was created again.
        except TopicMissing:
            self._stands_at.pop(subscription, None)
            with contextlib.suppress(AlreadyExists):
                await self._admin.subscriptions.create(topic, subscription.group)
            await self._admin.subscriptions.reset_cursor(topic, subscription.group, position)
        self._stands_at[subscription] = position
        self._stands_at.move_to_end(subscription)
        if len(self._stands_at) > MAX_REMEMBERED:
            self._stands_at.popitem(last=False)

    # --- subscriptions → groups

    async def offset(self, group: str, partition: str) -> int | None:
        """Where the subscription of a group stands, as an offset; None where there is none."""
        done = await self._admin.subscriptions.acknowledged(await self._topics.log_of(partition), group)
        return None if done is None else await offset_after(self._topics.partition(partition), done)


async def next_to_read(log_: EntryLog, offset: int) -> Position:
    """The place of the entry that holds `offset`, or behind the last entry where none does yet."""
    stats = await log_.stats()
    # Stats come before find_index: an entry that arrives in between may hold the offset, and must not be skipped.
    last = stats.last
    found = await log_.find_index(offset)
    if found is not None:
        return found
    return last.after() if last is not None else Position(-1, -1)


async def offset_after(partition: Partition, done: Position) -> int:
    """The first offset behind an entry."""
    error = await partition.opened()
    if error is not ErrorCode.NONE:
        raise Unavailable(f"{partition.name} can't be opened: {error.name}")
    end = await partition.confirmed_end()
    last = partition.last_position
    if last is None or done >= last:
        return end
    try:
        async with aclosing(entries_from(partition.entry_log, done.after(), 1)) as entries:
            entry = await anext(entries)
    except StopAsyncIteration:
        return end
    if entry.content is None:
        raise Unavailable(f"entry {entry.position} can't be read")
    return entry.base_offset
