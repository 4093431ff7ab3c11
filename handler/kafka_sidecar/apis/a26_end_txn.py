"""EndTxn (26), versions 0 to 5.

v2  PRODUCER_FENCED (KIP-588)
v3  flexible (KIP-482)
v4  TRANSACTION_ABORTABLE (KIP-890)
v5  transactions of version 2 (KIP-890): each bumps the epoch, and the response has it

Answered when the decision is stored; the markers are written after that.
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.needs import AclOperation, on_transactional_id
from kafka_sidecar.apis.routing.to_coordinator import TRANSACTIONS, to_coordinator
from kafka_sidecar.transactions.machine import Producer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.end_txn import EndTxnRequest, EndTxnResponse

FENCED_SINCE: Final = 2
BUMPS_EPOCH_SINCE: Final = 5


async def _handle(services: Services, call: Call, request: EndTxnRequest) -> EndTxnResponse:
    producer = Producer(request.producer_id, request.producer_epoch)
    version = 2 if call.version >= BUMPS_EPOCH_SINCE else 0
    ended = await services.transactions.coordinator.end(request.transactional_id, producer, request.committed, version)
    if ended.error is not ErrorCode.NONE:
        return _refuse(call, request, ended.error)
    return EndTxnResponse(producer_id=ended.producer_id, producer_epoch=ended.epoch)


def _refuse(call: Call, _: EndTxnRequest, error: ErrorCode) -> EndTxnResponse:
    if error is ErrorCode.PRODUCER_FENCED and call.version < FENCED_SINCE:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return EndTxnResponse(error_code=error)


API: Final = Api(
    EndTxnRequest,
    EndTxnResponse,
    0,
    5,
    to_coordinator(_handle, _refuse, TRANSACTIONS),
    needs=on_transactional_id(AclOperation.WRITE),
    is_passed_on=True,
)
