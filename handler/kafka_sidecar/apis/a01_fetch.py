"""Fetch (1), versions 4 to 18.

Answered at once when there is enough, else when there is or when max_wait is over. The first
partition with data gives at least one batch, however large (KIP-74); a fetch within a batch gets
the whole batch. Leader epoch is always 0. An offset outside of the log is OFFSET_OUT_OF_RANGE; outside of what is known
here it waits until the log is confirmed to end there. While clients do not take their answers no records are given.

v4   isolation level (KIP-98)
v5   the log start in the response
v7   fetch sessions (KIP-227)
v9   leader epochs (KIP-320)
v11  rack ids (KIP-392): the leader names the replica in the client's rack, where there is one
v12  flexible (KIP-482)
v13  topics by id (KIP-516)
v12  the current leader in the response, v16 its address (KIP-951)
v15  replica state (KIP-903), ignored: nobody replicates from here
v17  directory ids of replicas (KIP-853), ignored
v18  high watermarks of replicas (KIP-1166), ignored
"""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from typing import Final

from kafka_sidecar.apis.api import Api, Call, Client, Response, Result, Services
from kafka_sidecar.apis.common.nodes import is_advertised, nodes
from kafka_sidecar.apis.needs import AclOperation, on_topic
from kafka_sidecar.apis.state.answer_share import CountedFetchResponse
from kafka_sidecar.apis.state.fetch_session_cache import CachedPartition, FetchContext, rotate
from kafka_sidecar.fleet.member import Member
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.read.fetch_cache import FetchedRun
from kafka_sidecar.pulsar.errors import TopicMissing
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.topics.names import InvalidTopicName, TopicName
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.fetch import (
    AbortedTransaction,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

READ_COMMITTED: Final = 1
NONE: Final = ErrorCode.NONE
NOT_LEADER: Final = ErrorCode.NOT_LEADER_OR_FOLLOWER
# Old data may take longer to arrive than a consumer's max_wait (500 ms); Kafka too answers a read
# from disk when it is done and not before. Well below a client's request timeout of 30 s.
CATCH_UP_SECONDS: Final = 10.0
# For so long data of other partitions waits for the end of one that is read beyond it: else each fetch of a
# consumer would be answered before it can learn that its offset is out of range.
HOLD_BACK_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Elsewhere:
    """The client is to read a partition from another member."""

    member: Member
    error: ErrorCode  # NONE where this one leads and the other is in the client's rack


@dataclass(frozen=True, slots=True)
class _Reading:
    """The records that a fetch can have at a moment."""

    runs: list[FetchedRun | None]  # None for a partition whose records are on their way
    awaits_an_end: bool  # a partition is read beyond the end that is known here

    @property
    def under_way(self) -> bool:
        return None in self.runs

    @property
    def size(self) -> int:
        return sum(run.size for run in self.runs if run is not None)

    @property
    def has_failed(self) -> bool:
        return any(run is not None and run.error is not ErrorCode.NONE for run in self.runs)


class _DelayedFetch:
    """One request until it is answered."""

    __slots__ = (
        "_client",
        "_context",
        "_deadline",
        "_has_news",
        "_is_committed",
        "_number_of",
        "_partitions",
        "_quiet",
        "_rack",
        "_reading",
        "_request",
        "_result",
        "_sends_elsewhere",
        "_services",
        "_timer",
        "_waiting_since",
        "_wanted",
    )

    def __init__(self, services: Services, client: Client, request: FetchRequest, context: FetchContext) -> None:
        self._services = services
        self._client = client
        self._request = request
        self._context = context
        self._rack = request.rack_id if services.fleet.view.leadership.has_racks else ""
        services.fetch_partitions.drop_stale(services.generation)
        self._waiting_since = services.clock()
        self._wanted, self._quiet = context.split(services.generation, self._waiting_since)
        self._partitions = [self._partition(wanted) for wanted in self._wanted]
        self._sends_elsewhere = any(isinstance(partition, _Elsewhere) for partition in self._partitions)
        self._number_of: dict[Partition, int] = {}  # while it waits
        self._has_news = True  # something may have come since the last reading
        self._result: asyncio.Future[Response] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._reading = _Reading([], awaits_an_end=False)  # the last
        self._deadline = self._waiting_since + max(0, request.max_wait_ms) / 1000
        self._is_committed = request.isolation_level == READ_COMMITTED

    def _partition(self, wanted: CachedPartition) -> Partition | _Elsewhere | ErrorCode:
        known = None if self._rack else self._services.fetch_partitions.get(wanted.topic, wanted.index)
        if known is not None and known.ended is None and wanted.leader_epoch <= 0:
            return known
        catalog = self._services.catalog
        name: TopicName | None
        if wanted.topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if isinstance(wanted.topic, str):
            try:
                name = catalog.names.parse(wanted.topic)
            except InvalidTopicName:
                return ErrorCode.INVALID_TOPIC_EXCEPTION
        else:
            name = catalog.name_of(wanted.topic)
            if name is None:
                return ErrorCode.UNKNOWN_TOPIC_ID
        if wanted.leader_epoch > 0:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        leader = self._services.leader(name, wanted.index)
        elsewhere = self._elsewhere(name, wanted.index, leader)
        if elsewhere is not None:
            return elsewhere
        try:
            partition = self._services.partition(name, wanted.index)
        except TopicMissing:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if leader == self._services.fleet.own:
            self._services.fetch_partitions.put(wanted.topic, wanted.index, partition)
        return partition

    def _elsewhere(self, name: TopicName, index: int, leader: Member | None) -> _Elsewhere | None:
        """Where the client is sent; None if it is served."""
        services, now = self._services, self._waiting_since
        own, redirects = services.fleet.own, services.fetch_redirects
        reader = services.leader(name, index, self._rack) if self._rack else leader
        if leader is None or reader is None or reader == own or not is_advertised(services, self._client, reader):
            return None
        subject = name.partition(index)
        if leader == own:
            return _Elsewhere(reader, NONE) if redirects.names_replica(self._client, subject, now) else None
        if not services.sends_away(name, now):
            return None
        redirects.last_asked_at = now
        return (
            _Elsewhere(leader, NOT_LEADER) if redirects.refuses(self._client, subject, services.fleet.version) else None
        )

    def begin(self) -> Result:
        answer = self._try_complete()
        if answer is not None:
            return answer
        loop = asyncio.get_running_loop()
        self._result = loop.create_future()
        self._result.add_done_callback(lambda _: self._stop())
        for number, partition in enumerate(self._partitions):
            if isinstance(partition, Partition):
                self._number_of[partition] = number
                partition.watch(self)
        for partition in self._quiet:
            partition.watch(self)
        self._services.fleet.when_sending_away(self._on_sending_away)
        self._timer = loop.call_at(self._deadline, self._on_expiration)
        return self._result

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._services.answers.withdraw(self._there_is_room)
        self._services.fleet.forget(self._on_sending_away)
        for partition in self._number_of:
            partition.unwatch(self)
        for partition in self._quiet:
            partition.unwatch(self)

    def _there_is_room(self) -> None:
        if self._result is not None and not self._result.done():
            answer = self._try_complete()
            if answer is not None:
                self._result.set_result(answer)

    def _on_sending_away(self) -> None:
        """The answer to its next request names the leader."""
        if self._result is not None and not self._result.done():
            self._result.set_result(self._answer(self._read().runs))

    def on_partition_changed(self, partition: Partition) -> None:
        """One partition has news. The others are looked at only when it has something to answer with."""
        if self._result is None or self._result.done():
            return
        self._has_news = True
        if partition in self._quiet:
            self._number_of[partition] = len(self._wanted)
            self._wanted.append(self._quiet.pop(partition))
            self._partitions.append(partition)
        run = self._read_one(self._wanted[self._number_of[partition]], partition, self._max_bytes, first=True)
        if run is not None and (run.size or run.error is not ErrorCode.NONE or self._reading.awaits_an_end):
            answer = self._try_complete()
            if answer is not None:
                self._result.set_result(answer)
                return
        partition.watch(self)

    def _on_expiration(self) -> None:
        if self._result is None or self._result.done():
            return
        # Mostly nothing has come, and there was nothing when it began. Records are read again: there may be less room
        # by now.
        is_quiet = not (self._has_news or self._reading.under_way or self._reading.size)
        reading = self._reading if is_quiet else self._read()
        patience = (HOLD_BACK_SECONDS if reading.awaits_an_end else 0) if reading.size else CATCH_UP_SECONDS
        if reading.under_way and self._services.clock() - self._waiting_since <= patience:
            self._timer = asyncio.get_running_loop().call_later(0.25, self._on_expiration)
            return
        self._result.set_result(self._answer(reading.runs))

    def _try_complete(self) -> FetchResponse | None:
        """The answer if there is enough for one by now."""
        if not self._services.answers.room and self._services.clock() < self._deadline:
            self._services.answers.wait(self._there_is_room)
            return None
        reading = self._read()
        if reading.awaits_an_end and not reading.has_failed:
            return None
        # Old data and an end that has to be confirmed may take longer than a consumer wants to wait.
        impatient = self._deadline <= self._waiting_since and not reading.under_way
        is_decided = reading.has_failed or self._sends_elsewhere or not (reading.runs or self._quiet)
        if is_decided or reading.size >= self._request.min_bytes or impatient or self._is_cut(reading):
            return self._answer(reading.runs)
        return None

    def _is_cut(self, reading: _Reading) -> bool:
        """Whether there is more than one answer may hold: to wait would bring nothing (`DelayedFetch` counts what is
        there).
        """
        for partition, run in zip(self._partitions, reading.runs, strict=True):
            if run is not None and run.size and isinstance(partition, Partition):
                end = partition.last_stable_offset if self._is_committed else partition.end_offset
                if run.next_offset < end:
                    return True
        return False

    @property
    def _max_bytes(self) -> int:
        return min(self._request.max_bytes, self._services.config.fetch_max_bytes, self._services.answers.room)

    def _read(self) -> _Reading:
        """The records that every partition has now."""
        self._has_news = False
        limit = self._max_bytes
        may_give = limit > 0  # one batch is given however large it is, if there is room for anything
        size = 0
        awaits_an_end = False
        runs: list[FetchedRun | None] = []
        for wanted, partition in zip(self._wanted, self._partitions, strict=True):
            run = self._read_one(wanted, partition, limit - size, first=may_give and size == 0)
            if run is None:
                awaits_an_end = awaits_an_end or (
                    isinstance(partition, Partition) and partition.is_open and partition.is_outside(wanted.offset)
                )
            size += 0 if run is None else run.size
            runs.append(run)
        self._reading = _Reading(runs, awaits_an_end)
        return self._reading

    def _read_one(
        self, wanted: CachedPartition, partition: Partition | _Elsewhere | ErrorCode, left: int, first: bool
    ) -> FetchedRun | None:
        if isinstance(partition, ErrorCode):
            return FetchedRun([], 0, wanted.offset, partition)
        if isinstance(partition, _Elsewhere):
            return FetchedRun([], 0, wanted.offset, partition.error)
        if partition.ended is not None:
            return FetchedRun([], 0, wanted.offset, partition.ended)
        if not partition.is_open:
            return None
        read = partition.read_committed if self._is_committed else partition.read
        return read(wanted.offset, min(wanted.max_bytes, max(left, 0)), at_least_one=first, since=self._waiting_since)

    # --- the answer

    def _answer(self, runs: list[FetchedRun | None]) -> FetchResponse:
        topics: dict[str | uuid.UUID | None, list[PartitionData]] = {}
        served = []
        for wanted, partition, run in zip(self._wanted, self._partitions, runs, strict=True):
            answer = self._partition_answer(wanted, partition, run)
            if run is not None and run.size:
                served.append(wanted)
                metrics.FETCHED_BYTES.add(run.size)
            if answer is not None:
                topics.setdefault(wanted.topic, []).append(answer)
        if self._context.session is not None:
            rotate(self._context.session, served)
        response = CountedFetchResponse(
            session_id=self._context.session_id,
            responses=[_topic_answer(topic, partitions) for topic, partitions in topics.items()],
        )
        if self._sends_elsewhere:  # of all nodes, as in a Produce answer
            told = nodes(self._services, self._client)
            response.node_endpoints = [
                NodeEndpoint(node_id=node, host=host, port=port, rack=rack) for node, host, port, rack in told
            ]
        response.counted_bytes = sum(run.size for run in runs if run is not None)
        self._services.answers.take(response.counted_bytes)
        return response

    def _partition_answer(
        self, wanted: CachedPartition, partition: Partition | _Elsewhere | ErrorCode, run: FetchedRun | None
    ) -> PartitionData | None:
        """The partition's part; None when an incremental answer leaves it out."""
        if isinstance(partition, _Elsewhere):
            return _elsewhere_answer(wanted, partition)
        error = ErrorCode.NONE if run is None else run.error
        high_watermark, stable, log_start = -1, -1, -1
        aborted: list[AbortedTransaction] = []
        if isinstance(partition, Partition) and partition.is_open:
            high_watermark, stable, log_start = partition.end_offset, partition.last_stable_offset, partition.log_start
            if self._is_committed and run is not None and run.size:
                aborted = [
                    AbortedTransaction(producer_id=one.producer_id, first_offset=one.first_offset)
                    for one in partition.transactions.aborted_between(wanted.offset, run.next_offset)
                ]
            partition.refresh_log_start_if_stale(wanted.offset)
            if self._context.session is not None:
                wanted.follow(partition)
        changed = (high_watermark, log_start) != (wanted.sent_high_watermark, wanted.sent_log_start)
        has_data = run is not None and run.size > 0
        if self._context.incremental and not (changed or has_data or error is not ErrorCode.NONE):
            return None
        # An error is repeated until it is gone, so what was sent before it does not count.
        sent = (high_watermark, log_start) if error is ErrorCode.NONE else (-2, -2)
        wanted.sent_high_watermark, wanted.sent_log_start = sent
        return PartitionData(
            partition_index=wanted.index,
            error_code=error,
            high_watermark=high_watermark,
            last_stable_offset=stable,
            log_start_offset=log_start,
            aborted_transactions=aborted if self._is_committed else None,
            records=run.parts if run is not None else (),
        )


def _elsewhere_answer(wanted: CachedPartition, elsewhere: _Elsewhere) -> PartitionData:
    wanted.sent_high_watermark = wanted.sent_log_start = -2  # if it comes back, all of it is sent again
    node = elsewhere.member.node_id
    is_replica = elsewhere.error is ErrorCode.NONE
    return PartitionData(
        partition_index=wanted.index,
        error_code=elsewhere.error,
        high_watermark=-1,
        log_start_offset=-1,
        aborted_transactions=None,
        current_leader=None if is_replica else LeaderIdAndEpoch(leader_id=node, leader_epoch=0),
        preferred_read_replica=node if is_replica else -1,
        records=(),
    )


def _topic_answer(topic: str | uuid.UUID | None, partitions: list[PartitionData]) -> FetchableTopicResponse:
    if isinstance(topic, str):
        return FetchableTopicResponse(topic=topic, partitions=partitions)
    return FetchableTopicResponse(topic_id=topic, partitions=partitions)


def handle(services: Services, call: Call, request: FetchRequest) -> Result:
    context = services.sessions.context(request, call.version, services.clock())
    if context.error is not ErrorCode.NONE:
        return FetchResponse(error_code=context.error, session_id=context.session_id)
    return _DelayedFetch(services, call.client, request, context).begin()


API: Final = Api(FetchRequest, FetchResponse, 4, 18, handle, needs=on_topic(AclOperation.READ), ends_with_client=True)
