"""One source partition's way into the target: batches, the runs of their offsets and the progress, all or nothing.

After any failure this object is done: a new one begins with InitProducerId, which ends what this one has left, and reads the progress.
Nothing is ever sent a second time by one producer, so no late request can land in a later transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from handler.pipelines.kafka.client import GROUP, TRANSACTION, KafkaClient, Refused, check, until_it_succeeds
from handler.pipelines.kafka.copied_batches import CopiedBatch, Span, with_producer
from handler.pipelines.mirror.names import MirrorName
from handler.pipelines.mirror.offset_runs import Copied, Run, encode, encode_key, joined
from handler.wire.error_code import ErrorCode
from handler.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from handler.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, AddPartitionsToTxnTopic
from handler.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from handler.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from handler.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from handler.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic, OffsetFetchResponse
from handler.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from handler.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from handler.wire.records import NO_PRODUCER_ID, NO_SEQUENCE, TRANSACTIONAL, next_sequence

# A task that is stopped leaves its transaction open for so long at most, and read_committed readers wait behind it.
TRANSACTION_TIMEOUT_MS: Final = 60_000
START_SECONDS: Final = 90.0
PRODUCE_TIMEOUT_MS: Final = 30_000
# With more than five in flight a broker may forget the sequence that a producer needs (KAFKA-5494).
IN_FLIGHT: Final = 5
_PROGRESS: Final = "source="


class Progress(NamedTuple):
    """How far the copy is: what is read next, and where the target ended then."""

    next_source: int
    target_end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A source partition and its place in the target, with the ids of both topics."""

    mirror: MirrorName
    topic: str
    target_topic: str
    partition: int
    source_id: str
    target_id: str


@dataclass(slots=True)
class _Producer:
    producer_id: int = NO_PRODUCER_ID
    epoch: int = -1
    sequence: int = NO_SEQUENCE  # of the copy
    runs_sequence: int = NO_SEQUENCE

    def has_id(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID


class Target:
    def __init__(self, kafka: KafkaClient, route: Route, leader: int, runs_leader: int) -> None:
        self._kafka = kafka
        self._route = route
        self._leader = leader
        self._runs_leader = runs_leader
        self._producer = _Producer()
        self._slots = asyncio.Semaphore(IN_FLIGHT)
        self._sent: list[tuple[asyncio.Task[int], tuple[Span, ...]]] = []
        self._failure: BaseException | None = None
        self._coordinator = -1
        self._group_coordinator = -1

    @classmethod
    async def open(cls, kafka: KafkaClient, route: Route) -> Target:
        """The producer of this partition's name; whoever had it before is fenced, and its transaction has ended."""
        leader = await kafka.leader(route.target_topic, route.partition)
        runs_leader = leader if not route.mirror.name else await kafka.leader(route.mirror.runs_topic, 0)
        target = cls(kafka, route, leader, runs_leader)
        await target._start()
        return target

    @property
    def _transactional_id(self) -> str | None:
        return self._route.mirror.transactional_id(self._route.topic, self._route.partition)

    @property
    def _attributes(self) -> int:
        return TRANSACTIONAL

    async def _start(self) -> None:
        async def begin() -> None:
            assert self._transactional_id is not None
            self._coordinator = await self._kafka.coordinator(self._transactional_id, TRANSACTION)
            await self._init(self._coordinator)

        await until_it_succeeds(begin, START_SECONDS)

    async def _init(self, node: int) -> None:
        request = InitProducerIdRequest(transactional_id=self._transactional_id, transaction_timeout_ms=TRANSACTION_TIMEOUT_MS)
        answer = await self._kafka.ask(node, request, InitProducerIdResponse)
        check(answer.error_code, f"a producer for partition {self._route.partition} of topic {self._route.topic}")
        self._producer = _Producer(answer.producer_id, answer.producer_epoch, 0, 0)

    # --- progress

    async def progress(self) -> Progress | None:
        """What is committed, once whoever wrote before has ended its transaction."""
        return await until_it_succeeds(self._ask_progress, START_SECONDS)

    async def _ask_progress(self) -> Progress | None:
        route = self._route
        self._group_coordinator = await self._kafka.coordinator(route.mirror.group, GROUP)
        topics = [OffsetFetchRequestTopic(name=route.target_topic, partition_indexes=[route.partition])]
        # Without require_stable (KIP-447) Kafka may tell what was committed before the transaction that InitProducerId has just ended.
        request = OffsetFetchRequest(group_id=route.mirror.group, topics=topics, require_stable=True)
        answer = await self._kafka.ask(self._group_coordinator, request, OffsetFetchResponse)
        check(answer.error_code, f"the offsets of group {route.mirror.group}")
        for topic in answer.topics:
            for one in topic.partitions:
                if topic.name == route.target_topic and one.partition_index == route.partition:
                    check(one.error_code, f"the offset of group {route.mirror.group}")
                    return read_progress(one.committed_offset, one.metadata)
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, f"the answer about group {route.mirror.group} has no offset of what was asked for")

    # --- writing

    async def begin(self) -> None:
        """A transaction. Only when there is something to write: an open one holds back readers."""
        route, producer = self._route, self._producer
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transactional_id or "",
            v3_and_below_producer_id=producer.producer_id, v3_and_below_producer_epoch=producer.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=route.target_topic, partitions=[route.partition]),
                AddPartitionsToTxnTopic(name=route.mirror.runs_topic, partitions=[0]),
            ],
        )  # fmt: skip

        async def add() -> None:
            answer = await self._kafka.ask(self._coordinator, request, AddPartitionsToTxnResponse)
            check(answer.error_code, "a transaction in the target")
            for topic in answer.results_by_topic_v3_and_below:
                for one in topic.results_by_partition:
                    check(one.partition_error_code, f"a transaction over topic {topic.name}")

        await until_it_succeeds(add, START_SECONDS)  # CONCURRENT_TRANSACTIONS: markers of the one before are being written

    async def produce(self, batch: CopiedBatch) -> None:
        """Returns when it is on its way, and there is room for another."""
        await self._slots.acquire()
        if self._failure is not None:
            raise self._failure
        producer = self._producer
        data = with_producer(batch, producer.producer_id, producer.epoch, producer.sequence, self._attributes)
        if producer.has_id():
            producer.sequence = next_sequence(producer.sequence, batch.record_count)
        task = asyncio.create_task(self._send(self._leader, self._route.target_topic, self._route.partition, data))
        task.add_done_callback(self._on_sent)
        self._sent.append((task, batch.spans))

    def _on_sent(self, task: asyncio.Task[int]) -> None:
        self._slots.release()
        if not task.cancelled() and task.exception() is not None and self._failure is None:
            self._failure = task.exception()

    async def _send(self, leader: int, topic: str, partition: int, data: bytes) -> int:
        """The offset that its first record has got."""
        records = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=data)])
        request = ProduceRequest(transactional_id=self._transactional_id, acks=-1, timeout_ms=PRODUCE_TIMEOUT_MS, topic_data=[records])
        answer = await self._kafka.ask(leader, request, ProduceResponse)
        ((one,),) = (found.partition_responses for found in answer.responses)
        check(one.error_code, f"writing {len(data)} bytes to partition {partition} of topic {topic}", one.error_message)
        return one.base_offset

    async def commit(self, next_source: int, target_end: int, repeats: tuple[int, int] | None = None) -> Copied:
        """Everything that was produced, where it has landed, and that `next_source` is read next: from now on, or not at all."""
        runs: list[Run] = []
        for task, spans in self._sent:
            base = await task
            for span in spans:
                runs.append(Run(span.source, base, span.length))
                base += span.length
            target_end = base
        self._sent = []
        route = self._route
        copied = Copied(
            next_source, target_end, joined(runs), target_topic=route.target_topic, source_id=route.source_id, target_id=route.target_id,
            repeats=repeats,
        )  # fmt: skip
        await self._write_runs(copied)
        await self._end(copied)
        return copied

    async def _write_runs(self, copied: Copied) -> None:
        producer = self._producer
        builder = DefaultRecordBatchBuilder(
            magic=2, compression_type=0, is_transactional=0, producer_id=NO_PRODUCER_ID, producer_epoch=-1, base_sequence=NO_SEQUENCE,
            batch_size=1 << 24,
        )  # fmt: skip
        builder.append(0, None, encode_key(self._route.topic, self._route.partition), encode(copied), [])
        batch = CopiedBatch(bytearray(builder.build()), (), 1)
        data = with_producer(batch, producer.producer_id, producer.epoch, producer.runs_sequence, self._attributes)
        if producer.has_id():
            producer.runs_sequence = next_sequence(producer.runs_sequence, 1)
        await self._send(self._runs_leader, self._route.mirror.runs_topic, 0, data)

    async def _end(self, copied: Copied) -> None:
        producer, group, transactional_id = self._producer, self._route.mirror.group, self._transactional_id or ""
        who = {"transactional_id": transactional_id, "producer_id": producer.producer_id, "producer_epoch": producer.epoch}
        added = await self._kafka.ask(self._coordinator, AddOffsetsToTxnRequest(group_id=group, **who), AddOffsetsToTxnResponse)  # type: ignore[arg-type]
        check(added.error_code, f"the offsets of group {group} in a transaction")
        offset = TxnOffsetCommitRequestPartition(
            partition_index=self._route.partition, committed_offset=copied.target_end, committed_metadata=write_progress(copied.next_source)
        )
        topics = [TxnOffsetCommitRequestTopic(name=self._route.target_topic, partitions=[offset])]
        request = TxnOffsetCommitRequest(group_id=group, generation_id=-1, member_id="", topics=topics, **who)  # type: ignore[arg-type]
        committed = await self._kafka.ask(self._group_coordinator, request, TxnOffsetCommitResponse)
        _check_all([one.error_code for topic in committed.topics for one in topic.partitions], group)
        ended = await self._kafka.ask(self._coordinator, EndTxnRequest(committed=True, **who), EndTxnResponse)  # type: ignore[arg-type]
        check(ended.error_code, "the end of a transaction in the target")

    async def abort(self) -> None:
        """End at once what would hold back readers until it times out. The next producer of the name does it too."""
        producer = self._producer
        request = EndTxnRequest(
            transactional_id=self._transactional_id or "", producer_id=producer.producer_id, producer_epoch=producer.epoch, committed=False
        )
        await self._kafka.ask(self._coordinator, request, EndTxnResponse)

    async def close(self) -> None:
        for task, _ in self._sent:
            task.cancel()
        await asyncio.gather(*(task for task, _ in self._sent), return_exceptions=True)


class TargetWithoutTransactions(Target):
    """At least once: what was produced counts as copied when the record of its runs is stored."""

    @property
    def _transactional_id(self) -> str | None:
        return None

    @property
    def _attributes(self) -> int:
        return 0

    async def _start(self) -> None:
        async def begin() -> None:
            try:
                await self._init(self._leader)
            except Refused as error:
                if error.code is not ErrorCode.UNSUPPORTED_VERSION:
                    raise
                # Nothing but one request at a time keeps the order of a producer without an id.
                self._slots = asyncio.Semaphore(1)

        await until_it_succeeds(begin, START_SECONDS)

    async def begin(self) -> None:
        pass

    async def abort(self) -> None:
        pass

    async def _end(self, copied: Copied) -> None:
        group = self._route.mirror.group
        offset = OffsetCommitRequestPartition(
            partition_index=self._route.partition, committed_offset=copied.target_end, committed_metadata=write_progress(copied.next_source)
        )
        topics = [OffsetCommitRequestTopic(name=self._route.target_topic, partitions=[offset])]
        request = OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, member_id="", topics=topics)
        answer = await self._kafka.ask(self._group_coordinator, request, OffsetCommitResponse)
        _check_all([one.error_code for topic in answer.topics for one in topic.partitions], group)


def _check_all(codes: Sequence[ErrorCode], group: str) -> None:
    for code in codes:
        check(code, f"the progress of group {group}")


def write_progress(next_source: int) -> str:
    return f"{_PROGRESS}{next_source}"


def read_progress(committed_offset: int, metadata: str | None) -> Progress | None:
    """None where nothing is committed; ValueError where somebody else has committed for the mirror's group."""
    if committed_offset < 0:
        return None
    if metadata is None or not metadata.startswith(_PROGRESS):
        raise ValueError(f"an offset that no mirror has committed ({committed_offset}, {metadata!r})")
    return Progress(int(metadata.removeprefix(_PROGRESS)), committed_offset)
