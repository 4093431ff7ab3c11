"""AddPartitionsToTxn (24), versions 0 to 5.

v2  PRODUCER_FENCED (KIP-588)
v3  flexible (KIP-482)
v4  several transactions, and whether partitions are in them (KIP-890): between brokers. Sidecars ask each other by
    gRPC.
v5  TRANSACTION_ABORTABLE (KIP-890)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.topics import resolve
from kafka_sidecar.apis.needs import AclOperation, on_cluster, on_topic, on_transactional_id
from kafka_sidecar.apis.routing.to_coordinator import Coordinated, to_coordinator
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.topics.names import TopicName
from kafka_sidecar.transactions.machine import Producer
from kafka_sidecar.transactions.metadata import TopicPartition
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)

FENCED_SINCE: Final = 2
BATCHED_SINCE: Final = 4
# The version of transactions that goes with it: clients of version 2 add partitions by producing to them.
OF_CLIENTS: Final = 0
OF_BROKERS: Final = 2
# A request of several transactions is about no one coordinator: each that is not coordinated here is refused.
_OF_TRANSACTION: Final = Coordinated(
    lambda services: services.transactions, lambda request: request.v3_and_below_transactional_id
)

Topics = Sequence[AddPartitionsToTxnTopic]
ErrorOf = Callable[[str, int], ErrorCode]  # of a partition, by the name that the request has for its topic


async def _handle(services: Services, call: Call, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    if call.version >= BATCHED_SINCE:
        results = await asyncio.gather(*(_result(services, call, transaction) for transaction in request.transactions))
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    producer = Producer(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
    topics = request.v3_and_below_topics
    error_of = await _add(
        services, request.v3_and_below_transactional_id, producer, topics, OF_CLIENTS, is_certain=not call.by_0_2
    )
    return _response(call, request, error_of)


async def _result(
    services: Services, call: Call, transaction: AddPartitionsToTxnTransaction
) -> AddPartitionsToTxnResult:
    transactional_id = transaction.transactional_id
    producer = Producer(transaction.producer_id, transaction.producer_epoch)
    try:
        if not transactional_id:
            raise CoordinatorError(ErrorCode.INVALID_REQUEST)
        if not services.transactions.leaders.is_here(transactional_id):
            raise CoordinatorError(ErrorCode.NOT_COORDINATOR)
        if transaction.verify_only:
            error_of = await _verify(services, transactional_id, producer, transaction.topics)
        else:
            error_of = await _add(
                services, transactional_id, producer, transaction.topics, OF_BROKERS, is_certain=not call.by_0_2
            )
    except CoordinatorError as refused:
        error_of = _all(refused.error)
    return AddPartitionsToTxnResult(
        transactional_id=transactional_id, topic_results=_topic_results(call, transaction.topics, error_of)
    )


async def _add(
    services: Services,
    transactional_id: str,
    producer: Producer,
    topics: Topics,
    client_version: int,
    *,
    is_certain: bool,
) -> ErrorOf:
    known = await _canonical(services, topics)
    found = {partition for partition in known.values() if partition is not None}
    if None in known.values():  # a topic may be named twice, by two names
        return _missing(known)
    coordinator = services.transactions.coordinator
    return _all(
        await coordinator.add_partitions(transactional_id, producer, found, client_version, is_certain=is_certain)
    )


async def _verify(services: Services, transactional_id: str, producer: Producer, topics: Topics) -> ErrorOf:
    known = await _canonical(services, topics)
    errors: dict[TopicPartition, ErrorCode] = {}
    for asked, partition in known.items():
        if partition is None:
            return _missing(known)
        answer = await services.transactions.coordinator.verify(transactional_id, producer, partition, adds=False)
        errors[asked] = answer if isinstance(answer, ErrorCode) else ErrorCode.NONE
    return lambda *partition: errors[partition]


def _missing(known: Mapping[TopicPartition, TopicPartition | None]) -> ErrorOf:
    """Where a partition is missing nothing is done (KafkaApis.handleAddPartitionsToTxnRequest)."""
    return lambda *partition: (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if known[partition] is None else ErrorCode.OPERATION_NOT_ATTEMPTED
    )


async def _canonical(services: Services, topics: Topics) -> dict[TopicPartition, TopicPartition | None]:
    """The partitions by their topics' own names for Kafka; None for one that is not there, or can't be looked up
    now.
    """
    counts = await asyncio.gather(*(_partitions(services, topic.name) for topic in topics))
    return {
        (topic.name, index): (name, index) if 0 <= index < count else None
        for topic, (name, count) in zip(topics, counts, strict=True)
        for index in topic.partitions
    }


async def _partitions(services: Services, topic: str) -> tuple[str, int]:
    """A topic's own name, and how many partitions it has, or had where Pulsar can't say now. An unknown one has none:
    the producer asks again.
    """
    name = resolve(services, topic, None)
    if not isinstance(name, TopicName) or name.internal:
        return topic, 0
    try:
        return services.catalog.names.kafka(name), (await services.catalog.find(name)).partitions
    except PulsarError as error:
        known = services.catalog.remembered(name) if error.retriable else None
        return (topic, 0) if known is None else (services.catalog.names.kafka(name), known.partitions)


def _all(error: ErrorCode) -> ErrorOf:
    return lambda _topic, _index: error


def _refuse(call: Call, request: AddPartitionsToTxnRequest, error: ErrorCode) -> AddPartitionsToTxnResponse:
    if call.version >= BATCHED_SINCE:
        return AddPartitionsToTxnResponse(error_code=error)
    return _response(call, request, _all(error))


def _response(call: Call, request: AddPartitionsToTxnRequest, error_of: ErrorOf) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=_topic_results(call, request.v3_and_below_topics, error_of)
    )


def _topic_results(call: Call, topics: Topics, error_of: ErrorOf) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=_for_version(call, error_of(topic.name, index))
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]


def _for_version(call: Call, error: ErrorCode) -> ErrorCode:
    if error is ErrorCode.PRODUCER_FENCED and call.version < FENCED_SINCE:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


API: Final = Api(
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    0,
    5,
    to_coordinator(_handle, _refuse, _OF_TRANSACTION),
    needs=on_transactional_id(AclOperation.WRITE)
    + on_topic(AclOperation.WRITE)
    + on_cluster(AclOperation.CLUSTER_ACTION),
    is_passed_on=True,
)
