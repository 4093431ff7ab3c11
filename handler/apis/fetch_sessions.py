"""Incremental fetch sessions (KIP-227).

A session remembers which partitions a consumer reads and what it was told of each, so that requests
carry only what changed and answers only what is new. The rules are those of Kafka's FetchSession.
"""

from __future__ import annotations

import random
import uuid
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from kio.schema.errors import ErrorCode

# max.incremental.fetch.session.cache.slots.
MAX_SESSIONS: Final = 1_000
# A consumer may read many partitions, not without bound.
MAX_PARTITIONS: Final = 50_000
FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
MAX_EPOCH: Final = 2**31 - 1

Key = tuple[str | uuid.UUID, int]


@dataclass(slots=True)
class FetchedPartition:
    """One partition that is read, and what its consumer was last told."""

    topic: str | uuid.UUID
    index: int
    offset: int
    max_bytes: int
    leader_epoch: int
    told_high_watermark: int = -2
    told_log_start: int = -2

    def update(self, newer: FetchedPartition) -> None:
        self.offset = newer.offset
        self.max_bytes = newer.max_bytes
        self.leader_epoch = newer.leader_epoch


@dataclass(slots=True)
class Session:
    session_id: int
    epoch: int
    partitions: OrderedDict[Key, FetchedPartition] = field(default_factory=OrderedDict)


class FetchPlan(NamedTuple):
    """What one request asks for after its session was looked at."""

    partitions: list[FetchedPartition]
    session: Session | None
    incremental: bool  # leave out of the answer what has nothing new
    error: ErrorCode = ErrorCode.none

    @property
    def session_id(self) -> int:
        return 0 if self.session is None else self.session.session_id


def _wanted(request: Any) -> list[FetchedPartition]:
    return [
        FetchedPartition(
            topic.topic_id if hasattr(topic, "topic_id") else topic.topic, partition.partition, partition.fetch_offset,
            partition.partition_max_bytes, getattr(partition, "current_leader_epoch", -1),
        )
        for topic in request.topics
        for partition in topic.partitions
    ]  # fmt: skip


class FetchSessions:
    def __init__(self) -> None:
        self._sessions: OrderedDict[int, Session] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sessions)

    def plan(self, request: Any) -> FetchPlan:
        session_id = getattr(request, "session_id", 0)
        epoch = getattr(request, "session_epoch", FINAL_EPOCH)
        wanted = _wanted(request)
        if epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            if session_id:
                self._sessions.pop(session_id, None)
            if epoch == FINAL_EPOCH or not wanted or len(wanted) > MAX_PARTITIONS:
                return FetchPlan(wanted, None, incremental=False)
            session = self._create(wanted)
            return FetchPlan(list(session.partitions.values()), session, incremental=False)
        found = self._sessions.get(session_id)
        if found is None:
            return FetchPlan([], None, incremental=False, error=ErrorCode.fetch_session_id_not_found)
        if epoch != found.epoch:
            return FetchPlan([], found, incremental=False, error=ErrorCode.invalid_fetch_session_epoch)
        self._sessions.move_to_end(session_id)
        found.epoch = 1 if found.epoch == MAX_EPOCH else found.epoch + 1
        _update(found, wanted, getattr(request, "forgotten_topics_data", ()))
        return FetchPlan(list(found.partitions.values()), found, incremental=True)

    def _create(self, wanted: list[FetchedPartition]) -> Session:
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = random.randint(1, MAX_EPOCH)  # noqa: S311 - an id, not a secret
        session = Session(session_id, 1)
        for partition in wanted:
            session.partitions[partition.topic, partition.index] = partition
        self._sessions[session_id] = session
        if len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return session


def _update(session: Session, wanted: list[FetchedPartition], forgotten: Any) -> None:
    for partition in wanted:
        known = session.partitions.get((partition.topic, partition.index))
        if known is not None:
            known.update(partition)
        elif len(session.partitions) < MAX_PARTITIONS:
            session.partitions[partition.topic, partition.index] = partition
    for topic in forgotten:
        named = topic.topic_id if hasattr(topic, "topic_id") else topic.topic
        for index in topic.partitions:
            session.partitions.pop((named, index), None)


def rotate(session: Session, served: list[FetchedPartition]) -> None:
    """Put what got data behind the others, so that no partition starves under a byte limit."""
    for partition in served:
        key = (partition.topic, partition.index)
        if key in session.partitions:
            session.partitions.move_to_end(key)
