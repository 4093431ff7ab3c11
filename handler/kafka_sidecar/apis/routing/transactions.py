"""Which transaction a batch or an offset belongs to: asked of the sidecar that coordinates its transactional id."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from kafka_sidecar.apis.api import Services
from kafka_sidecar.control.v1.control_pb2 import EndedTransactions as Ended
from kafka_sidecar.control.v1.control_pb2 import (
    EndedTransactionsRequest,
    EndedTransactionsResponse,
    EndOffsetsRequest,
    EndOffsetsResponse,
    VerifyTransactionRequest,
    VerifyTransactionResponse,
)
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.coordination.shards import shard_of
from kafka_sidecar.errors import SidecarError
from kafka_sidecar.fleet.peers import Peers
from kafka_sidecar.fleet.server import TransactionService
from kafka_sidecar.groups.coordinator import Commit
from kafka_sidecar.groups.service import OFFSETS_TOPIC, GroupRuntime
from kafka_sidecar.partition.follow.late_transactions import AskEnded, EndedTransactions
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.topics.names import TopicNames
from kafka_sidecar.transactions.machine import Producer
from kafka_sidecar.transactions.metadata import TopicPartition
from kafka_sidecar.transactions.service import TransactionRuntime
from kafka_sidecar.wire.error_code import ErrorCode

limited = RateLimitedLog(logging.getLogger(__name__))

# After a start many partitions are opened within a second.
TOGETHER_SECONDS: Final = 0.5
# Since when a batch adds its partition to the transaction (KIP-890).
ADDS_PARTITION_SINCE: Final = 12
ABORTABLE_SINCE: Final = 11
# The error that a producer gets: one after which it sends the batch again, or that of Kafka's brokers
# (AddPartitionsToTxnManager).
_TOLD: Final = {
    ErrorCode.CONCURRENT_TRANSACTIONS: ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_COORDINATOR: ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
}


async def verify(
    services: Services, version: int, transactional_id: str, producer: Producer, partition: TopicPartition
) -> int | ErrorCode:
    """The number of a batch's transaction, or the producer's error. May raise SidecarError."""
    answer = await number_of(services, transactional_id, producer, partition, adds=version >= ADDS_PARTITION_SINCE)
    if not isinstance(answer, ErrorCode):
        return answer
    if answer is ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_SINCE:
        answer = ErrorCode.INVALID_TXN_STATE
    limited.info("a batch of transaction %s for %s-%d is refused: %s", transactional_id, *partition, answer.name)
    return _TOLD.get(answer, answer)


class Coordinators(Protocol):
    """A sidecar's own coordinators, and its peers."""

    @property
    def transactions(self) -> TransactionRuntime: ...
    @property
    def groups(self) -> GroupRuntime: ...
    @property
    def peers(self) -> Peers: ...
    @property
    def names(self) -> TopicNames: ...


async def number_of(
    services: Coordinators, transactional_id: str, producer: Producer, partition: TopicPartition, *, adds: bool
) -> int | ErrorCode:
    """The same in the coordinator's words."""
    leaders = services.transactions.leaders
    try:
        leader = None if leaders.is_here(transactional_id) else await leaders.leader(transactional_id)
        if leader is None:
            return await services.transactions.coordinator.verify(transactional_id, producer, partition, adds=adds)
    except CoordinatorError as refused:
        return refused.error
    topic = services.names.translated(partition[0], services.names.of(leader.namespace))
    request = VerifyTransactionRequest(
        to=leader.name,
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        topic=topic,
        partition=partition[1],
        adds_partition=adds,
        namespace=services.names.default_namespace,
    )
    response = await services.peers.verify_transaction(leader.control, request)
    error = ErrorCode(response.error_code)
    return response.number if error is ErrorCode.NONE else error


async def ended_transactions(services: Coordinators, producer_ids: Sequence[int]) -> Mapping[int, EndedTransactions]:
    """What the coordinators say of these producers, those that can be asked now. May raise SidecarError."""
    leaders = await services.transactions.leaders.known_leaders()
    own = PeerTransactions(services.transactions, services.groups).ended(
        EndedTransactionsRequest(producer_ids=producer_ids)
    )
    asked = [
        services.peers.ended_transactions(
            leader.control, EndedTransactionsRequest(to=leader.name, producer_ids=producer_ids)
        )
        for leader in leaders
    ]
    answers = await asyncio.gather(own, *asked, return_exceptions=True)
    for failure in answers:
        if isinstance(failure, BaseException) and not isinstance(failure, SidecarError):
            raise failure
    told = [one for answer in answers if not isinstance(answer, BaseException) for one in answer.producers]
    # Where it is not known from which number on, it is none.
    return {one.producer_id: EndedTransactions(one.number, one.marked_from or one.number + 1) for one in told}


class EndedTogether:
    """Partitions that ask at about the same time ask together."""

    def __init__(self, ask: AskEnded) -> None:
        self._ask = ask
        self._wanted: set[int] = set()
        self._asking: asyncio.Task[Mapping[int, EndedTransactions]] | None = None

    async def ended(self, producer_ids: Sequence[int]) -> Mapping[int, EndedTransactions]:
        self._wanted.update(producer_ids)
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask_soon())
            self._asking.add_done_callback(
                lambda task: task.cancelled() or task.exception()
            )  # also where nobody waits any more
        return await asyncio.shield(self._asking)

    async def _ask_soon(self) -> Mapping[int, EndedTransactions]:
        await asyncio.sleep(TOGETHER_SECONDS)
        wanted, self._wanted, self._asking = sorted(self._wanted), set(), None
        return await self._ask(wanted)


async def commit_offsets(
    services: Coordinators, commit: Commit, transactional_id: str, producer: Producer, *, adds: bool
) -> dict[TopicPartition, ErrorCode] | ErrorCode:
    """Store offsets that count when their transaction commits, of a group that is coordinated here. `adds`: the group
    takes part in the transaction by this. An error alone is the coordinator's of transactions. May raise
    CoordinatorError.
    """
    term = services.groups.coordinator.term_of(commit.group_id)
    partition = await offsets_partition(services, commit.group_id)
    try:
        number = await number_of(services, transactional_id, producer, partition, adds=adds)
    except SidecarError:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if isinstance(number, ErrorCode):
        return number
    return await services.groups.coordinator.commit_in_transaction(commit, producer.producer_id, number, term)


async def offsets_partition(services: Coordinators, group_id: str) -> TopicPartition:
    """The partition of `__consumer_offsets` that a group belongs to. CoordinatorError while that is not known."""
    await services.groups.candidate()
    return OFFSETS_TOPIC, shard_of(group_id, len(services.groups.coordinator.shards))


@dataclass(frozen=True, slots=True)
class PeerTransactions(TransactionService):
    """The answers to other sidecars."""

    transactions: TransactionRuntime
    groups: GroupRuntime

    async def verify(self, request: VerifyTransactionRequest) -> VerifyTransactionResponse:
        producer = Producer(request.producer_id, request.producer_epoch)
        partition = request.topic, request.partition
        try:
            answer = await self.transactions.coordinator.verify(
                request.transactional_id,
                producer,
                partition,
                adds=request.adds_partition,
                is_certain=bool(request.namespace),
            )
        except CoordinatorError as refused:
            answer = refused.error
        if isinstance(answer, ErrorCode):
            return VerifyTransactionResponse(error_code=answer)
        return VerifyTransactionResponse(number=answer)

    async def ended(self, request: EndedTransactionsRequest) -> EndedTransactionsResponse:
        found = self.transactions.coordinator.of_producers(frozenset(request.producer_ids))
        return EndedTransactionsResponse(
            producers=[
                Ended(producer_id=producer_id, number=metadata.ended_number, marked_from=metadata.marked_from)
                for producer_id, metadata in found.items()
            ]
        )

    async def end_offsets(self, request: EndOffsetsRequest) -> EndOffsetsResponse:
        try:
            await self.groups.coordinator.end_transaction(
                request.partition, request.producer_id, request.number, request.committed
            )
        except CoordinatorError as refused:
            return EndOffsetsResponse(error_code=refused.error)
        return EndOffsetsResponse()
