"""InitProducerId (22), versions 0 to 5.

v2  flexible (KIP-482)
v3  a producer may say which id it had (KIP-360)
v4  PRODUCER_FENCED (KIP-588)
v5  transactions of version 2 (KIP-890), as v4

Without a transactional id every call gets a new producer id with epoch 0, as in Kafka. Ids are drawn
from 63 random bits: no two sidecars need to agree on anything, and a million producers meet with a
chance of one in ten million.
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Result, Services
from kafka_sidecar.apis.needs import AclOperation, on_cluster, on_topic, on_transactional_id
from kafka_sidecar.apis.routing.to_coordinator import TRANSACTIONS, to_coordinator
from kafka_sidecar.transactions.machine import Producer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse

FENCED_SINCE: Final = 4


async def _of_transactional_id(
    services: Services, call: Call, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    expected = Producer(request.producer_id, request.producer_epoch)
    found = await services.transactions.coordinator.init_producer_id(
        request.transactional_id or "", request.transaction_timeout_ms, expected
    )
    if found.error is not ErrorCode.NONE:
        return _refuse(call, request, found.error)
    return InitProducerIdResponse(producer_id=found.producer_id, producer_epoch=found.epoch)


def _refuse(call: Call, _: InitProducerIdRequest, error: ErrorCode) -> InitProducerIdResponse:
    if error is ErrorCode.PRODUCER_FENCED and call.version < FENCED_SINCE:
        error = ErrorCode.INVALID_PRODUCER_EPOCH
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)


_handle_transactional: Final = to_coordinator(_of_transactional_id, _refuse, TRANSACTIONS)


def handle(services: Services, call: Call, request: InitProducerIdRequest) -> Result:
    if request.transactional_id is None:
        return InitProducerIdResponse(producer_id=services.new_producer_id(), producer_epoch=0)
    if (request.producer_id < 0) != (request.producer_epoch < 0):
        return _refuse(call, request, ErrorCode.INVALID_REQUEST)
    return _handle_transactional(services, call, request)


API: Final = Api(
    InitProducerIdRequest,
    InitProducerIdResponse,
    0,
    5,
    handle,
    needs=on_transactional_id(AclOperation.WRITE)
    + on_cluster(AclOperation.IDEMPOTENT_WRITE)
    + on_topic(AclOperation.WRITE),
    is_passed_on=True,
)
