"""A Kafka cluster in memory, as far as a mirror asks one: a log a partition, transactions, groups; and faults at any
request.

`LOST` requests never arrive, of `UNANSWERED` ones the answer is lost, and late ones arrive behind the next ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from aiokafka.record.memory_records import MemoryRecords

from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kafka_sidecar.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from kafka_sidecar.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafka_sidecar.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from kafka_sidecar.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafka_sidecar.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from kafka_sidecar.wire.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from kafka_sidecar.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from kafka_sidecar.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kafka_sidecar.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kafka_sidecar.wire.records import read_produced

EARLIEST: Final = -2


class Fault(Enum):
    LOST = 1
    UNANSWERED = 2
    LATE = 3  # behind the next
    VERY_LATE = 4  # behind the next six


LATE_BY: Final = {Fault.LATE: 2, Fault.VERY_LATE: 7}


class State(Enum):
    OPEN = 1
    COMMITTED = 2
    ABORTED = 3


@dataclass(slots=True)
class Entry:
    """A record, or a marker where it has none."""

    offset: int
    producer_id: int
    record: tuple[bytes | None, bytes | None] | None
    state: State


@dataclass(slots=True)
class Transaction:
    producer_id: int
    epoch: int = 0
    is_open: bool = False
    partitions: set[tuple[str, int]] = field(default_factory=set)
    offsets: dict[tuple[str, str, int], tuple[int, str]] = field(default_factory=dict)  # not committed yet
    sequences: dict[tuple[str, int], int] = field(default_factory=dict)


class ModelKafka:
    """`log` is what a partition of a source has: bytes of batches, and its end."""

    any_node = 0

    def __init__(self, faults: Mapping[int, Fault], log: tuple[bytes, int] = (b"", 0)) -> None:
        self.faults = dict(faults)
        self.asked = 0
        self.source = log
        self.logs: dict[tuple[str, int], list[Entry]] = {}
        self.transactions: dict[str, Transaction] = {}
        self.committed: dict[tuple[str, str, int], tuple[int, str]] = {}
        self._late: list[tuple[int, Callable[[], Any]]] = []
        self._handlers: dict[type, Callable[[Any], Any]] = {
            ProduceRequest: self._produce,
            InitProducerIdRequest: self._init,
            AddPartitionsToTxnRequest: self._add,
            AddOffsetsToTxnRequest: self._add_offsets,
            TxnOffsetCommitRequest: self._commit_offsets,
            EndTxnRequest: self._end,
            OffsetFetchRequest: self._fetch_offsets,
            ListOffsetsRequest: self._list,
            FetchRequest: self._fetch,
        }

    # --- what a client of the cluster is

    async def leader(self, topic: str, partition: int) -> int:
        return 0

    async def coordinator(self, key: str, kind: int) -> int:
        return 0

    async def know(self, node: int) -> None:
        """All are known."""

    async def metadata(self, topics: list[str]) -> MetadataResponse:
        partitions = [MetadataResponsePartition(partition_index=0, leader_id=0)]
        return MetadataResponse(topics=[MetadataResponseTopic(name=topic, partitions=partitions) for topic in topics])

    async def ask(self, node: int, request: Any, response: type) -> Any:
        self.asked += 1
        for due, late in [one for one in self._late if one[0] <= self.asked]:
            self._late.remove((due, late))
            late()
        fault = self.faults.get(self.asked)
        if fault in LATE_BY:
            self._late.append((self.asked + LATE_BY[fault], lambda: self._handlers[type(request)](request)))
        if fault in LATE_BY or fault is Fault.LOST:
            raise ConnectionError("lost")
        answer = self._handlers[type(request)](request)
        if fault is Fault.UNANSWERED:
            raise ConnectionError("unanswered")
        return answer

    def settle(self) -> None:
        """All that is late arrives."""
        for _, late in self._late:
            late()
        self._late.clear()

    # --- transactions

    def _init(self, request: InitProducerIdRequest) -> InitProducerIdResponse:
        name = request.transactional_id or ""
        one = self.transactions.setdefault(name, Transaction(100 + len(self.transactions), epoch=-1))
        if one.is_open:
            self._finish(one, State.ABORTED)
        one.epoch += 1
        one.sequences.clear()
        return InitProducerIdResponse(producer_id=one.producer_id, producer_epoch=one.epoch)

    def _of(self, name: str, epoch: int) -> Transaction | None:
        one = self.transactions.get(name)
        return one if one is not None and one.epoch == epoch else None

    def _add(self, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
        one = self._of(request.v3_and_below_transactional_id, request.v3_and_below_producer_epoch)
        error = ErrorCode.PRODUCER_FENCED if one is None else ErrorCode.NONE
        if one is not None:
            one.is_open = True
            one.partitions |= {
                (topic.name, index) for topic in request.v3_and_below_topics for index in topic.partitions
            }
        results = [
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=error)
                    for index in topic.partitions
                ],
            )
            for topic in request.v3_and_below_topics
        ]
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results)

    def _add_offsets(self, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
        one = self._of(request.transactional_id, request.producer_epoch)
        return AddOffsetsToTxnResponse(error_code=ErrorCode.PRODUCER_FENCED if one is None else ErrorCode.NONE)

    def _commit_offsets(self, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
        one = self._of(request.transactional_id, request.producer_epoch)
        error = ErrorCode.NONE if one is not None and one.is_open else ErrorCode.INVALID_PRODUCER_EPOCH
        for topic in request.topics:
            for wanted in topic.partitions:
                if one is not None and one.is_open:
                    one.offsets[request.group_id, topic.name, wanted.partition_index] = (
                        wanted.committed_offset,
                        wanted.committed_metadata or "",
                    )
        partitions = [TxnOffsetCommitResponsePartition(partition_index=0, error_code=error)]
        return TxnOffsetCommitResponse(
            topics=[TxnOffsetCommitResponseTopic(name=topic.name, partitions=partitions) for topic in request.topics]
        )

    def _end(self, request: EndTxnRequest) -> EndTxnResponse:
        one = self._of(request.transactional_id, request.producer_epoch)
        if one is None:
            return EndTxnResponse(error_code=ErrorCode.PRODUCER_FENCED)
        if not one.is_open:
            return EndTxnResponse(error_code=ErrorCode.INVALID_TXN_STATE)
        self._finish(one, State.COMMITTED if request.committed else State.ABORTED)
        return EndTxnResponse()

    def _finish(self, one: Transaction, state: State) -> None:
        for at in one.partitions:
            log = self.logs.setdefault(at, [])
            for entry in log:
                if entry.producer_id == one.producer_id and entry.state is State.OPEN:
                    entry.state = state
            log.append(Entry(len(log), one.producer_id, None, state))
        if state is State.COMMITTED:
            self.committed.update(one.offsets)
        one.is_open = False
        one.partitions, one.offsets = set(), {}

    # --- logs

    def _produce(self, request: ProduceRequest) -> ProduceResponse:
        (topic,) = request.topic_data
        (wanted,) = topic.partition_data
        at = (topic.name, wanted.index)
        header = read_produced(wanted.records or b"")
        one = self._of(request.transactional_id or "", header.producer_epoch)
        answer = PartitionProduceResponse(index=wanted.index)
        if one is None:
            answer.error_code = ErrorCode.INVALID_PRODUCER_EPOCH
        elif at not in one.partitions and one.sequences.get(at) is None:
            answer.error_code = ErrorCode.INVALID_TXN_STATE
        elif header.base_sequence != one.sequences.get(at, 0):
            answer.error_code = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        else:
            # A broker before KIP-890 takes what is late into whatever transaction comes next.
            one.sequences[at] = header.base_sequence + header.record_count
            log = self.logs.setdefault(at, [])
            answer.base_offset = len(log)
            opened = MemoryRecords(wanted.records or b"").next_batch()
            assert opened is not None
            for record in opened:
                log.append(Entry(len(log), one.producer_id, (record.key, record.value), State.OPEN))
        return ProduceResponse(responses=[TopicProduceResponse(name=topic.name, partition_responses=[answer])])

    def _list(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        (topic,) = request.topics
        (wanted,) = topic.partitions
        end = self.source[1] or len(self.logs.get((topic.name, wanted.partition_index), ()))
        found = ListOffsetsPartitionResponse(partition_index=0, offset=0 if wanted.timestamp == EARLIEST else end)
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=topic.name, partitions=[found])])

    def _fetch(self, request: FetchRequest) -> FetchResponse:
        (topic,) = request.topics
        (wanted,) = topic.partitions
        records = self.source[0] if wanted.fetch_offset < self.source[1] else b""
        found = PartitionData(partition_index=0, records=[records], aborted_transactions=None)
        return FetchResponse(responses=[FetchableTopicResponse(topic=topic.topic, partitions=[found])])

    def _fetch_offsets(self, request: OffsetFetchRequest) -> OffsetFetchResponse:
        (topic,) = request.topics or ()
        offset, metadata = self.committed.get((request.group_id, topic.name, 0), (-1, ""))
        found = OffsetFetchResponsePartition(partition_index=0, committed_offset=offset, metadata=metadata)
        return OffsetFetchResponse(topics=[OffsetFetchResponseTopic(name=topic.name, partitions=[found])])

    # --- what committed readers see

    def readable(self, topic: str) -> list[Entry]:
        found = []
        for entry in self.logs.get((topic, 0), ()):
            if entry.state is State.OPEN:
                break  # the last stable offset
            if entry.state is State.COMMITTED and entry.record is not None:
                found.append(entry)
        return found
