"""How what a mirror writes becomes valid in the target: in transactions, exactly once, or when it is acknowledged, at
least once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, Protocol

from kafka_sidecar.errors import CommandFailed
from kafka_sidecar.kafka_client.client import TRANSACTION, KafkaClient, Refused, check, until_it_succeeds, until_ready
from kafka_sidecar.pipelines.copying.names import MirrorName
from kafka_sidecar.pipelines.copying.offset_runs import Copied
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kafka_sidecar.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from kafka_sidecar.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafka_sidecar.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafka_sidecar.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafka_sidecar.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from kafka_sidecar.wire.records import NO_PRODUCER_ID, TRANSACTIONAL

# The transaction of a task that was killed stays open for up to 60 s, and read_committed consumers wait behind it.
TRANSACTION_TIMEOUT_MS: Final = 60_000
START_SECONDS: Final = 90.0
# With more than five requests in flight a broker may no longer know the batch that an idempotent producer retries
# (KAFKA-5494).
IN_FLIGHT: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A source partition and its place in the target, with what tells that they are the same as before."""

    mirror: MirrorName
    topic: str
    target_topic: str
    partition: int
    source_cluster: str = ""
    source_id: str = ""
    target_id: str = ""

    def as_recorded(self, copied: Copied) -> Route:
        """The same as it was when that was copied."""
        return replace(
            self,
            target_topic=copied.target_topic,
            source_cluster=copied.source_cluster,
            source_id=copied.source_id,
            target_id=copied.target_id,
        )


def not_the_same(before: Route, now: Route) -> str:
    """Why a partition can't be gone on with; empty where it can. An id that is not known says nothing."""
    if before.target_topic and before.target_topic != now.target_topic:
        return (
            f"topic {now.topic} was copied to {before.target_topic} under this name: take that --prefix, or begin "
            "with another --name"
        )
    if before.source_cluster and now.source_cluster and before.source_cluster != now.source_cluster:
        return f"topic {now.topic} was copied from elsewhere under this name: begin with another --name"
    for which, old, new in (("source", before.source_id, now.source_id), ("target", before.target_id, now.target_id)):
        if old and new and old != new:
            return f"topic {now.topic} was made again in the {which} since it was copied: begin with another --name"
    return ""


@dataclass(frozen=True, slots=True)
class ProducerId:
    producer_id: int = NO_PRODUCER_ID
    epoch: int = -1

    @property
    def is_given(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the copy is: what is read next, and where the target ended then."""

    next_source: int
    target_end: int


_PROGRESS: Final = "source="


def write_progress(next_source: int) -> str:
    """The metadata of the committed offset, which is the target's end."""
    return f"{_PROGRESS}{next_source}"


def read_progress(committed_offset: int, metadata: str | None) -> Progress | None:
    """None where nothing is committed."""
    if committed_offset < 0:
        return None
    if metadata is None or not metadata.startswith(_PROGRESS):
        raise CommandFailed(
            f"the mirror's group has an offset that no mirror has committed ({committed_offset}, {metadata!r}): delete "
            "the group's offsets of this topic, the record of runs has the progress too"
        )
    return Progress(int(metadata.removeprefix(_PROGRESS)), committed_offset)


class Delivery(Protocol):
    """Writes of one partition, by one producer. After any failure another one begins."""

    @property
    def attributes(self) -> int:
        """What its batches carry."""

    @property
    def transactional_id(self) -> str | None: ...

    @property
    def in_flight(self) -> int:
        """How many requests may be on their way."""

    async def start(self) -> ProducerId:
        """An earlier writer for this partition is fenced, if that can be, and what it began has ended."""

    async def begin(self, with_copies: bool) -> None:
        """Before the first write of a few that are valid together; whether any of them is a copy, and not a record of
        runs alone.
        """

    async def end(self, progress: Progress, group_coordinator: int) -> None:
        """What was written since `begin`, and the progress, are valid: wholly or not at all, if that can be."""

    async def abort(self) -> None:
        """What was written since `begin` is not valid."""


class Transactions:
    """Of version 1 (KIP-890): an epoch stays with its producer from transaction to transaction."""

    attributes = TRANSACTIONAL
    in_flight = IN_FLIGHT

    def __init__(self, kafka: KafkaClient, route: Route) -> None:
        self._kafka = kafka
        self._route = route
        self.transactional_id: str = route.mirror.transactional_id(route.topic, route.partition)
        self._coordinator = -1
        self._producer = ProducerId()

    async def start(self) -> ProducerId:
        self._producer = await until_it_succeeds(self._init, START_SECONDS)
        return self._producer

    async def _init(self) -> ProducerId:
        self._coordinator = await self._kafka.coordinator(self.transactional_id, TRANSACTION)
        return await _producer_id(self._kafka, self._coordinator, self._route, self.transactional_id)

    async def begin(self, with_copies: bool) -> None:
        # Aborting a transaction writes a marker to each of its partitions. The target partition is added only with
        # copies, so that it gets no needless marker.
        copies = [(self._route.target_topic, self._route.partition)] if with_copies else []
        await until_ready(lambda: self._add_partitions([*copies, (self._route.mirror.runs_topic, 0)]), START_SECONDS)

    async def _add_partitions(self, topics: Iterable[tuple[str, int]]) -> None:
        producer = self._producer
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[index]) for name, index in topics],
        )
        answer = await self._kafka.ask(self._coordinator, request, AddPartitionsToTxnResponse)
        check(answer.error_code, "a transaction in the target")
        for topic in answer.results_by_topic_v3_and_below:
            for one in topic.results_by_partition:
                check(one.partition_error_code, f"a transaction over topic {topic.name}")

    async def end(self, progress: Progress, group_coordinator: int) -> None:
        producer, group = self._producer, self._route.mirror.group
        add = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            group_id=group,
        )
        added = await self._kafka.ask(self._coordinator, add, AddOffsetsToTxnResponse)
        check(added.error_code, f"the offsets of group {group} in a transaction")
        offset = TxnOffsetCommitRequestPartition(
            partition_index=self._route.partition,
            committed_offset=progress.target_end,
            committed_metadata=write_progress(progress.next_source),
        )
        commit = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            generation_id=-1,
            member_id="",
            topics=[TxnOffsetCommitRequestTopic(name=self._route.target_topic, partitions=[offset])],
        )
        committed = await self._kafka.ask(group_coordinator, commit, TxnOffsetCommitResponse)
        _check_all((one.error_code for topic in committed.topics for one in topic.partitions), group)
        await self._end(committed=True)

    async def abort(self) -> None:
        await self._end(committed=False)

    async def _end(self, committed: bool) -> None:
        producer = self._producer
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            committed=committed,
        )
        answer = await self._kafka.ask(self._coordinator, request, EndTxnResponse)
        check(answer.error_code, "the end of a transaction in the target")


class Acknowledgements:
    """Without transactions: what was written counts when the record of its runs is stored, which is the last of it."""

    attributes = 0
    transactional_id = None

    def __init__(self, kafka: KafkaClient, route: Route, leader: int) -> None:
        self._kafka = kafka
        self._route = route
        self._leader = leader
        self.in_flight = IN_FLIGHT

    async def start(self) -> ProducerId:
        try:
            return await _producer_id(self._kafka, self._leader, self._route, None)
        except Refused as error:
            if error.code is not ErrorCode.UNSUPPORTED_VERSION:
                raise
            self.in_flight = 1  # without a producer id only one request in flight at a time keeps the order
            return ProducerId()

    async def begin(self, with_copies: bool) -> None:
        """Nothing to do."""

    async def end(self, progress: Progress, group_coordinator: int) -> None:
        group = self._route.mirror.group
        offset = OffsetCommitRequestPartition(
            partition_index=self._route.partition,
            committed_offset=progress.target_end,
            committed_metadata=write_progress(progress.next_source),
        )
        topics = [OffsetCommitRequestTopic(name=self._route.target_topic, partitions=[offset])]
        request = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=topics)
        answer = await self._kafka.ask(group_coordinator, request, OffsetCommitResponse)
        _check_all((one.error_code for topic in answer.topics for one in topic.partitions), group)

    async def abort(self) -> None:
        """Nothing can be taken back."""


async def _producer_id(kafka: KafkaClient, node: int, route: Route, transactional_id: str | None) -> ProducerId:
    request = InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS)
    answer = await kafka.ask(node, request, InitProducerIdResponse)
    check(answer.error_code, f"a producer for partition {route.partition} of topic {route.topic}")
    return ProducerId(answer.producer_id, answer.producer_epoch)


def _check_all(codes: Iterable[ErrorCode], group: str) -> None:
    for code in codes:
        check(code, f"the progress of group {group}")
