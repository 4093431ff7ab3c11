"""WriteTxnMarkers (27), versions 1 to 2.

v2  the version of the transaction (KIP-1228), of no account

Sidecars write their markers themselves; this is what `kafka-transactions abort` sends for a transaction that nobody
ends (KIP-664). It ends the transaction that a producer has open in a partition: the first of them, where one was left
open and the next has begun. Where it has none that is INVALID_TXN_STATE, and nothing is written.
"""

from __future__ import annotations

import asyncio
from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.topics import resolve
from kafka_sidecar.apis.needs import AclOperation, on_cluster
from kafka_sidecar.partition.log.errors import error_code
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.topics.names import TopicName
from kafka_sidecar.wire.control_records import EndTransactionMarker, write_marker
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopic,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

# As long as clients wait for an answer.
WRITE_SECONDS: Final = 25.0


async def _end(services: Services, marker: WritableTxnMarker, name: TopicName | ErrorCode, index: int) -> ErrorCode:
    if isinstance(name, ErrorCode):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    try:
        partition = services.partition(name, index)
        error = await partition.opened()
        if error is not ErrorCode.NONE:
            return error
        await partition.confirmed_end()
        transaction = partition.transactions.first_undecided(marker.producer_id)
        if transaction is None:
            return ErrorCode.INVALID_TXN_STATE
        known = (await partition.known_producers()).get(marker.producer_id)
        if known is not None and marker.producer_epoch < known.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        ends = EndTransactionMarker(marker.transaction_result, marker.coordinator_epoch)
        data = write_marker(marker.producer_id, marker.producer_epoch, ends, services.wall_clock())
        return await partition.end_transaction(data, transaction.number, services.clock() + WRITE_SECONDS)
    except PulsarError as failure:
        return error_code(failure)


async def _topic(
    services: Services, marker: WritableTxnMarker, topic: WritableTxnMarkerTopic
) -> WritableTxnMarkerTopicResult:
    name = resolve(services, topic.name, None)
    if isinstance(name, TopicName) and name.internal:
        name = ErrorCode.INVALID_TOPIC_EXCEPTION
    errors = await asyncio.gather(*(_end(services, marker, name, index) for index in topic.partition_indexes))
    return WritableTxnMarkerTopicResult(
        name=topic.name,
        partitions=[
            WritableTxnMarkerPartitionResult(partition_index=index, error_code=error)
            for index, error in zip(topic.partition_indexes, errors, strict=True)
        ],
    )


async def _handle(services: Services, call: Call, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=await asyncio.gather(*(_topic(services, marker, topic) for topic in marker.topics)),
            )
            for marker in request.markers
        ]
    )


API: Final = Api(
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
    1,
    2,
    _handle,
    needs=on_cluster(AclOperation.ALTER, AclOperation.CLUSTER_ACTION),
)
