"""A group's commits and the Pulsar subscription of its name stand at the same record."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.pulsar.admin import AlreadyExists
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import TopicMissing, Unavailable
from kafka_sidecar.subscriptions.mirror import Mirror, next_to_read
from kafka_sidecar.topics.names import TopicName
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import open_table

TOPIC = TopicName("public", "default", "t")
PARTITION = TOPIC.partition(0)
ID = uuid.UUID(int=7)


@dataclass
class Twin:
    """A topic of one partition, its subscriptions, and the mirror between them and groups."""

    log_: MemoryLog = field(default_factory=MemoryLog)
    cursors: dict[str, Position | None] = field(default_factory=dict)
    topic_id_: uuid.UUID = ID
    away: bool = False
    moves: int = 0
    moved: set[str] = field(default_factory=set)
    holds: asyncio.Event | None = None

    def __post_init__(self) -> None:
        self.table = open_table(lambda topic, name: self.log_.named(name))
        self.mirror = Mirror("mirrored*", cast(Any, self), self)

    # --- topics

    def log(self, partition: str) -> EntryLog:
        return self.log_.named("mirror")

    async def log_of(self, partition: str) -> str:
        return partition

    def partition(self, partition: str) -> Partition:
        return self.table.get(partition)

    async def topic_id(self, topic: TopicName) -> uuid.UUID:
        if self.away:
            raise Unavailable("no broker")
        return self.topic_id_

    # --- the admin API

    @property
    def subscriptions(self) -> Twin:
        return self

    async def create(self, partition: str, name: str) -> None:
        if name in self.cursors:
            raise AlreadyExists(name)
        self.cursors[name] = None

    async def reset_cursor(self, partition: str, name: str, next_entry: Position) -> None:
        if self.holds is not None:
            await self.holds.wait()
        if name not in self.cursors:
            raise TopicMissing("404 Subscription not found")
        self.moves += 1
        self.moved.add(partition)
        self.cursors[name] = next_entry

    async def delete(self, partition: str, name: str) -> None:
        if name not in self.cursors:
            raise TopicMissing(name)
        del self.cursors[name]

    async def acknowledged(self, partition: str, name: str) -> Position | None:
        return self.cursors.get(name)

    # --- a group

    async def commit(self, offset: int, group: str = "mirrored", topic_id: uuid.UUID | None = ID) -> Position | None:
        self.mirror.committed(group, TOPIC, 0, offset, topic_id)
        await self.mirror._move_all()
        return self.cursors.get(group)


@pytest.fixture
async def twin() -> AsyncIterator[Twin]:
    one = Twin()
    for size in (2, 3, 1):  # offsets 0-1, 2-4, 5
        one.log_.write(batch(*[b"x"] * size))
    yield one
    await one.mirror.close()
    await one.table.close()


@pytest.mark.parametrize(("offset", "entry"), [(0, 0), (1, 0), (2, 1), (4, 1), (5, 2), (6, 3)])
async def test_the_subscription_stands_before_the_entry_that_holds_the_offset(
    twin: Twin, offset: int, entry: int
) -> None:
    assert await twin.commit(offset) == Position(1, entry)
    assert await next_to_read(twin.log_, offset) == Position(1, entry)


async def test_a_commit_that_moves_nothing_costs_no_call(twin: Twin) -> None:
    for offset in (2, 3, 4):
        await twin.commit(offset)
    assert twin.moves == 1


async def test_only_groups_that_are_named_and_can_name_a_subscription_are_mirrored(twin: Twin) -> None:
    for group in ("other", "mirrored%2f", "."):
        assert await twin.commit(2, group=group) is None
    assert not twin.cursors


async def test_a_commit_of_a_topic_that_had_this_name_moves_nothing(twin: Twin) -> None:
    assert await twin.commit(2, topic_id=uuid.UUID(int=8)) is None
    assert await twin.commit(2, topic_id=None) == Position(1, 1), "it is not known of which"


async def test_while_pulsar_is_away_the_last_commit_is_kept(twin: Twin) -> None:
    twin.away = True
    for offset in (1, 2):
        assert await twin.commit(offset) is None
    twin.away = False
    await twin.mirror._move_all()
    assert twin.cursors == {"mirrored": Position(1, 1)}


async def test_a_group_without_commits_begins_behind_what_its_subscription_has_acknowledged(twin: Twin) -> None:
    assert await twin.mirror.offset("mirrored", PARTITION) is None
    for acknowledged, offset in ((Position(1, -1), 0), (Position(1, 0), 2), (Position(1, 1), 5), (Position(1, 2), 6)):
        twin.cursors["mirrored"] = acknowledged
        assert await twin.mirror.offset("mirrored", PARTITION) == offset


async def test_the_subscription_of_a_group_that_is_deleted_goes_with_it(twin: Twin) -> None:
    await twin.commit(2)
    twin.mirror.deleted("mirrored", [PARTITION])
    for task in list(twin.mirror._deletions):
        await task
    assert not twin.cursors


async def test_a_stop_in_the_middle_of_a_move_does_not_lose_it(twin: Twin) -> None:
    twin.holds = asyncio.Event()
    for partition in range(20):
        twin.mirror.committed("mirrored", TOPIC, partition, 2, ID)
    moving = asyncio.create_task(twin.mirror._move_all())
    await asyncio.sleep(0.01)
    moving.cancel()
    twin.holds.set()
    await twin.mirror.close()
    assert twin.moved == {TOPIC.partition(partition) for partition in range(20)}


async def test_a_move_under_way_does_not_bring_back_what_was_deleted(twin: Twin) -> None:
    twin.holds = asyncio.Event()
    twin.mirror.committed("mirrored", TOPIC, 0, 2, ID)
    moving = asyncio.create_task(twin.mirror._move_all())
    await asyncio.sleep(0.01)
    twin.mirror.deleted("mirrored", [PARTITION])
    await asyncio.sleep(0.01)
    twin.holds.set()
    await moving
    for task in list(twin.mirror._deletions):
        await task
    assert not twin.cursors


async def test_what_could_not_be_moved_and_is_deleted_is_not_tried_again(twin: Twin) -> None:
    twin.away = True
    await twin.commit(2)
    twin.mirror.deleted("mirrored", [PARTITION])
    for task in list(twin.mirror._deletions):
        await task
    twin.away = False
    await twin.mirror._move_all()
    assert not twin.cursors


async def test_a_subscription_that_pulsar_has_lost_is_made_again(twin: Twin) -> None:
    """It has expired, or its topic was deleted and made anew."""
    assert await twin.commit(2) == Position(1, 1)
    twin.cursors.clear()
    assert await twin.commit(5) == Position(1, 2)
