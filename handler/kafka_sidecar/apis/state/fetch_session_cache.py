"""Incremental fetch sessions (KIP-227).

A session remembers which partitions a consumer reads and what it last got of each, so that requests
carry only what changed and answers only what is new. The rules are those of Kafka's FetchSession.
"""

from __future__ import annotations

import random
import uuid
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from weakref import ReferenceType, ref

from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.fetch import FetchRequest, FetchTopic, ForgottenTopic

# max.incremental.fetch.session.cache.slots.
MAX_SESSIONS: Final = 1_000
# FetchSession's MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS.
EVICTION_SECONDS: Final = 120.0
# How old the size of the smallest session may be: a client without one asks twice a second, and all sessions would be
# looked at each time.
SMALLEST_SECONDS: Final = 1.0
# So often all partitions of a session are looked at, and asked where they begin: a consumer at the end learns a minute
# later at most. Retention moves that every few minutes.
WALK_SECONDS: Final = 30.0
# A consumer may read many partitions, not without bound; nor may all of them together: each takes about 300 bytes here.
MAX_PARTITIONS: Final = 50_000
MAX_ALL_PARTITIONS: Final = 100_000
FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
MAX_EPOCH: Final = 2**31 - 1

TOPIC_IDS_SINCE: Final = 13
# None for an id of zeros.
Topic = str | uuid.UUID | None
Key = tuple[Topic, int]


@dataclass(slots=True)
class CachedPartition:
    """One partition that is read, and what its consumer last got of it."""

    topic: Topic
    index: int
    offset: int
    max_bytes: int
    leader_epoch: int
    sent_high_watermark: int = -2
    sent_log_start: int = -2
    _found: ReferenceType[Partition] | None = None  # what it was when it was last looked at

    def follow(self, partition: Partition) -> None:
        self._found = ref(partition)

    def quiet_partition(self, now: float) -> Partition | None:
        """The partition, if its consumer has got everything of it."""
        if self._found is None or self.offset != self.sent_high_watermark or self.leader_epoch > 0:
            return None
        partition = self._found()
        if partition is None or not partition.is_quiet(self.offset, self.sent_log_start, now):
            return None
        return partition

    def update(self, newer: CachedPartition) -> None:
        self.offset = newer.offset
        self.max_bytes = newer.max_bytes
        self.leader_epoch = newer.leader_epoch


@dataclass(slots=True)
class FetchSession:
    session_id: int
    epoch: int
    created_at: float
    used_at: float
    walked_at: float = 0.0  # when all partitions were last looked at
    resolved_for: int = -1  # the state of the catalogue for which their names were resolved then
    partitions: dict[Key, CachedPartition] = field(default_factory=dict)  # the one that got data last is last


class FetchContext(NamedTuple):
    """The partitions that one request fetches, its session taken into account (Kafka's FetchContext)."""

    partitions: list[CachedPartition]
    session: FetchSession | None
    incremental: bool  # leave out of the answer what has nothing new
    error: ErrorCode = ErrorCode.NONE

    @property
    def session_id(self) -> int:
        return 0 if self.session is None else self.session.session_id

    def split(self, resolved_for: int, now: float) -> tuple[list[CachedPartition], dict[Partition, CachedPartition]]:
        """The partitions to be looked at, and those that have nothing new: of an incremental fetch at the end of many,
        nearly all.
        """
        session = self.session
        if session is None or not self.incremental:
            return self.partitions, {}
        if now - session.walked_at > WALK_SECONDS or resolved_for != session.resolved_for:
            session.walked_at, session.resolved_for = now, resolved_for
            return self.partitions, {}
        active: list[CachedPartition] = []
        quiet: dict[Partition, CachedPartition] = {}
        for wanted in self.partitions:
            partition = wanted.quiet_partition(now)
            if partition is None or partition in quiet:  # a topic may stand there by its name and by its id
                active.append(wanted)
            else:
                quiet[partition] = wanted
        return active, quiet


def _topic(named: FetchTopic | ForgottenTopic, version: int) -> Topic:
    return named.topic if version < TOPIC_IDS_SINCE else named.topic_id


def _wanted(request: FetchRequest, version: int) -> list[CachedPartition]:
    return [
        CachedPartition(
            _topic(topic, version),
            partition.partition,
            partition.fetch_offset,
            partition.partition_max_bytes,
            partition.current_leader_epoch,
        )
        for topic in request.topics
        for partition in topic.partitions
    ]


class FetchSessionCache:
    """The sessions of all consumers. Those in use are kept, as Kafka's FetchSessionCache does.

    When there is no room, a new session takes the place of one that nobody has used for EVICTION_SECONDS, or of
    one that is older than that and smaller than itself; where there is none of these it is not made. Its consumer
    gets session 0, and sends whole requests.
    """

    def __init__(self) -> None:
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()  # the one that was not used for longest is first
        self._partitions = 0
        self._smallest = (-EVICTION_SECONDS, 0)  # when it was looked for, and how many partitions it has

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        return self._partitions

    def context(self, request: FetchRequest, version: int, now: float) -> FetchContext:
        session_id, epoch = request.session_id, request.session_epoch
        wanted = _wanted(request, version)
        if epoch in (FINAL_EPOCH, INITIAL_EPOCH):
            if session_id:
                self._remove(session_id)
            session = self._create(wanted, now) if epoch == INITIAL_EPOCH else None
            return FetchContext(
                wanted if session is None else list(session.partitions.values()), session, incremental=False
            )
        found = self._sessions.get(session_id)
        if found is None:
            return FetchContext([], None, incremental=False, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if epoch != found.epoch:
            return FetchContext([], found, incremental=False, error=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        self._sessions.move_to_end(session_id)
        found.used_at = now
        found.epoch = 1 if found.epoch == MAX_EPOCH else found.epoch + 1
        if not self._may_grow(found, wanted):
            self._remove(session_id)  # its consumer sends a whole request, and may get another
            return FetchContext([], None, incremental=False, error=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        self._partitions -= len(found.partitions)
        _update(found, wanted, request.forgotten_topics_data, version)
        self._partitions += len(found.partitions)
        return FetchContext(list(found.partitions.values()), found, incremental=True)

    def _create(self, wanted: list[CachedPartition], now: float) -> FetchSession | None:
        if not 0 < len(wanted) <= MAX_PARTITIONS or not self._make_room(len(wanted), now):
            return None
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = random.randint(1, MAX_EPOCH)  # noqa: S311 - an id, not a secret
        session = FetchSession(session_id, 1, now, now)
        for partition in wanted:
            session.partitions[partition.topic, partition.index] = partition
        self._sessions[session_id] = session
        self._partitions += len(session.partitions)
        return session

    def _may_grow(self, session: FetchSession, wanted: list[CachedPartition]) -> bool:
        new = sum((partition.topic, partition.index) not in session.partitions for partition in wanted)
        return not new or (
            len(session.partitions) + new <= MAX_PARTITIONS and self._partitions + new <= MAX_ALL_PARTITIONS
        )

    def _remove(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partitions -= len(session.partitions)

    def _make_room(self, size: int, now: float) -> bool:
        while len(self._sessions) >= MAX_SESSIONS or self._partitions + size > MAX_ALL_PARTITIONS:
            evicted = self._evictable(size, now)
            if evicted is None:
                return False
            self._remove(evicted.session_id)
        return True

    def _evictable(self, size: int, now: float) -> FetchSession | None:
        unused = next(iter(self._sessions.values()))
        if now - unused.used_at > EVICTION_SECONDS:
            return unused
        looked_at, smallest_size = self._smallest
        if now - looked_at < SMALLEST_SECONDS and size <= smallest_size:
            return None  # consumers without a session ask each time, and all sessions would be looked at for each
        settled = (session for session in self._sessions.values() if now - session.created_at > EVICTION_SECONDS)
        smallest = min(settled, key=lambda session: len(session.partitions), default=None)
        self._smallest = now, MAX_PARTITIONS if smallest is None else len(smallest.partitions)
        return smallest if smallest is not None and len(smallest.partitions) < size else None


def _update(
    session: FetchSession, wanted: list[CachedPartition], forgotten: Sequence[ForgottenTopic], version: int
) -> None:
    for partition in wanted:
        known = session.partitions.get((partition.topic, partition.index))
        if known is not None:
            known.update(partition)
        else:
            session.partitions[partition.topic, partition.index] = partition
    for topic in forgotten:
        for index in topic.partitions:
            session.partitions.pop((_topic(topic, version), index), None)


def rotate(session: FetchSession, served: list[CachedPartition]) -> None:
    """Put what got data behind the others, so that no partition starves under a byte limit."""
    for partition in served:
        key = (partition.topic, partition.index)
        if key in session.partitions:
            session.partitions[key] = session.partitions.pop(key)
