"""AddOffsetsToTxn (25), versions 0 to 4.

v2  PRODUCER_FENCED (KIP-588)
v3  flexible (KIP-482)
v4  TRANSACTION_ABORTABLE (KIP-890)

The partition of `__consumer_offsets` that the group belongs to takes part in the transaction.
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.needs import AclOperation, on_group, on_transactional_id
from kafka_sidecar.apis.routing.to_coordinator import TRANSACTIONS, to_coordinator
from kafka_sidecar.apis.routing.transactions import offsets_partition
from kafka_sidecar.transactions.machine import Producer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

FENCED_SINCE: Final = 2


async def _handle(services: Services, call: Call, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    if not request.group_id:
        return AddOffsetsToTxnResponse(error_code=ErrorCode.INVALID_GROUP_ID)
    partition = await offsets_partition(services, request.group_id)
    producer = Producer(request.producer_id, request.producer_epoch)
    error = await services.transactions.coordinator.add_partitions(request.transactional_id, producer, {partition}, 0)
    return _refuse(call, request, error)


def _refuse(call: Call, _: AddOffsetsToTxnRequest, error: ErrorCode) -> AddOffsetsToTxnResponse:
    if error is ErrorCode.PRODUCER_FENCED and call.version < FENCED_SINCE:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return AddOffsetsToTxnResponse(error_code=error)


API: Final = Api(
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    0,
    4,
    to_coordinator(_handle, _refuse, TRANSACTIONS),
    needs=on_transactional_id(AclOperation.WRITE) + on_group(AclOperation.READ),
    is_passed_on=True,
)
