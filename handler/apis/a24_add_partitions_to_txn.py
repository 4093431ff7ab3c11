"""AddPartitionsToTxn (24), versions 0 to 3.

v2  PRODUCER_FENCED (KIP-588)
v3  flexible (KIP-482)
Versions 4 and 5 are for brokers, which ask each other in them whether a batch may be appended; sidecars ask by gRPC.
"""

from __future__ import annotations

from typing import Final

from handler.apis.api import Api, Call, Services
from handler.apis.routing.to_coordinator import Coordinated, to_coordinator
from handler.apis.topics import resolve
from handler.pulsar.errors import PulsarError, TopicMissing
from handler.topics.names import TopicName
from handler.transactions.machine import Producer
from handler.transactions.metadata import TopicPartition
from handler.wire.error_code import ErrorCode
from handler.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)

FENCED_SINCE: Final = 2
_OF_TRANSACTION: Final = Coordinated(lambda services: services.transactions, lambda request: request.v3_and_below_transactional_id)


async def _handle(services: Services, call: Call, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    known: set[TopicPartition] = set()
    missing: set[TopicPartition] = set()
    for topic in request.v3_and_below_topics:
        name = resolve(services, topic.name, None)
        count = await _partitions(services, name) if isinstance(name, TopicName) and not name.internal else 0
        for index in topic.partitions:
            if isinstance(name, TopicName) and 0 <= index < count:
                known.add((services.catalog.names.kafka(name), index))
            else:
                missing.add((topic.name, index))
    if missing:  # then nothing is added (KafkaApis.handleAddPartitionsToTxnRequest)
        return _response(request, ErrorCode.OPERATION_NOT_ATTEMPTED, missing)
    producer = Producer(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
    error = await services.transactions.coordinator.add_partitions(request.v3_and_below_transactional_id, producer, known, 0)
    return _refuse(call, request, error)


async def _partitions(services: Services, name: TopicName) -> int:
    """How many there are; none where that can't be told now, and the producer asks again."""
    try:
        return (await services.catalog.find(name)).partitions
    except TopicMissing:
        return 0
    except PulsarError:
        return 0


def _refuse(call: Call, request: AddPartitionsToTxnRequest, error: ErrorCode) -> AddPartitionsToTxnResponse:
    if error is ErrorCode.PRODUCER_FENCED and call.version < FENCED_SINCE:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return _response(request, error, set())


def _response(request: AddPartitionsToTxnRequest, error: ErrorCode, missing: set[TopicPartition]) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index,
                        partition_error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if (topic.name, index) in missing else error,
                    )
                    for index in topic.partitions
                ],
            )
            for topic in request.v3_and_below_topics
        ]
    )


API: Final = Api(
    "AddPartitionsToTxn", AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, 0, 3, to_coordinator(_handle, _refuse, _OF_TRANSACTION)
)
