"""Committed offsets: groups' own coordinator in place of registers. Each commit has an id of its own as its
metadata.
"""

from __future__ import annotations

import asyncio
import struct
import uuid
from collections.abc import Callable
from typing import Any, Final

from kafka_sidecar.apis.common.late import LATE_AFTER_SECONDS
from kafka_sidecar.config import GroupsConfig
from kafka_sidecar.groups.coordinator import Commit, CommittedOffset, Coordinator
from kafka_sidecar.groups.service import GroupRuntime, group_runtime
from kafka_sidecar.groups.shard import Shard
from kafka_sidecar.groups.vocabulary import Now
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.loop.ids import NewId
from kafka_sidecar.model.sidecar import SidecarInfo
from kafka_sidecar.pulsar.ports import Admin, Client
from kafka_sidecar.topics.names import TopicNames
from kafka_sidecar.wire.error_code import ErrorCode
from tests.simulation.coordinators.logs import State
from tests.simulation.loop import SimulatedLoop
from tests.support.group_members import NO_MEMBER
from tests.support.memory_topics import MemoryTopics

TOPIC: Final = "__consumer_offsets"
# Where all topics are. Sidecars of another namespace have long names for these.
HOME: Final = "public/default"
PARTITIONS: Final = 8
SESSION_SECONDS: Final = 6.0  # of members of the consumer protocol
_OFFSETS: Final = (0, 1)  # versions of the keys of committed offsets (OffsetCommitKey)


class _Topics(MemoryTopics):
    """One topic, whatever it is called."""

    def __init__(self, names: TopicNames) -> None:
        super().__init__({names.translated(f"{HOME}/t", names): PARTITIONS})
        self.canonical = names.canonical  # type: ignore[method-assign]

    def topic_id(self, name: str) -> uuid.UUID:
        return topic_id()

    async def describe(self, name: str) -> tuple[uuid.UUID, int] | None:
        return await super().describe(self.canonical(name))


def topic_id() -> uuid.UUID:
    return MemoryTopics().topic_id("t")


def _short(topic: str) -> str:
    return topic.removeprefix(f"persistent://{HOME}/")


def read(key: bytes, value: bytes | None) -> tuple[str, str | None] | None:
    """What an entry says of a partition's committed offset, read by Kafka's format; None where it says something
    else.
    """
    if struct.unpack_from(">h", key)[0] not in _OFFSETS:
        return None
    at, words = 2, []
    for _ in range(2):
        (size,) = struct.unpack_from(">h", key, at)
        words.append(key[at + 2 : at + 2 + size].decode())
        at += 2 + size
    name = f"{words[0]}/{_short(words[1])}/{struct.unpack_from('>i', key, at)[0]}"
    if value is None:
        return name, None
    (size,) = struct.unpack_from(">h", value, 14)  # behind the version, the offset and the leader's epoch
    return name, value[16 : 16 + size].decode()


def offsets_runtime(
    client: Client,
    admin: Admin,
    namespace: str,
    shards: int,
    own: SidecarInfo,
    names: TopicNames,
    loop: SimulatedLoop,
    clock: Clock,
    new_id: NewId,
    on_led: Callable[[str, Any, State], None],
) -> GroupRuntime:
    config = GroupsConfig(
        namespace=namespace,
        offsets_partitions=shards,
        consumer_session_timeout_ms=round(SESSION_SECONDS * 1000),
        consumer_heartbeat_interval_ms=1_000,
    )
    topics = _Topics(names)
    runtime = group_runtime(
        client,
        admin,
        config,
        topics,
        lambda _, __: None,
        lambda: Now(loop.time(), clock.wall()),
        own,
        names,
        clock,
        new_id,
    )
    begin = runtime.coordinator.begin

    def begin_and_watch(logs: Any) -> None:
        begin(logs)
        for shard in runtime.coordinator.shards:
            _watch(shard, names, on_led)

    runtime.coordinator.begin = begin_and_watch  # type: ignore[method-assign]
    return runtime


def _watch(shard: Shard, names: TopicNames, on_led: Callable[[str, Any, State], None]) -> None:
    leads = shard.on_leading

    async def on_leading(seconds: float) -> None:
        found = {
            f"{group}/{_short(names.parse(topic).pulsar)}/{index}": value.metadata
            for group, offsets in shard.offsets.items()
            for (topic, index), value in offsets.items()
        }
        on_led(shard.name, shard.term, found)
        await leads(seconds)

    shard.on_leading = on_leading  # type: ignore[method-assign]


async def when_loaded(coordinator: Coordinator, group: str) -> None:
    """Commits wait while their coordinator loads (apis/routing/to_coordinator)."""
    await coordinator.shards.of(group).term.loaded(asyncio.get_running_loop().time() + LATE_AFTER_SECONDS)


async def commit(coordinator: Coordinator, topic: str, group: str, index: int, commit_id: str) -> None:
    """Of somebody who is no member, as tools commit. Raises CoordinatorError, or what it was told."""
    committed = CommittedOffset(1, -1, commit_id)
    await when_loaded(coordinator, group)
    told = await coordinator.commit(Commit(group, NO_MEMBER, -1, {(topic, index): committed}))
    if told[topic, index] is not ErrorCode.NONE:
        raise Refused(told[topic, index])


async def fetch(coordinator: Coordinator, topic: str, group: str, index: int) -> str | None:
    offsets = await coordinator.offsets(group)
    if isinstance(offsets, ErrorCode):
        raise Refused(offsets)
    value = offsets.get((topic, index))
    return None if value is None else value.metadata


async def delete(coordinator: Coordinator, group: str) -> bool:
    """Whether there was one."""
    told = (await coordinator.delete_groups([group]))[group].error
    if told not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
        raise Refused(told)
    return told is ErrorCode.NONE


class Refused(Exception):
    def __init__(self, error: ErrorCode) -> None:
        super().__init__(error.name)
