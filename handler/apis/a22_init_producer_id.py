"""InitProducerId (22), versions 0 to 5.

v2  flexible (KIP-482)
v3  a producer may say which id it had (KIP-360)
v4  PRODUCER_FENCED (KIP-588)
v5  transactions of version 2 (KIP-890), as v4

Without a transactional id every call gets a new producer id with epoch 0, as in Kafka. Ids are drawn
from 63 random bits: no two sidecars need to agree on anything, and a million producers meet with a
chance of one in ten million.
Not implemented: transactional ids, refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

import secrets
from typing import Final

from handler.apis.api import Api, Call, Services
from handler.wire.error_code import ErrorCode
from handler.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse


def handle(services: Services, call: Call, request: InitProducerIdRequest) -> InitProducerIdResponse:
    if request.transactional_id is None:
        return InitProducerIdResponse(producer_id=secrets.randbits(63), producer_epoch=0)
    error = ErrorCode.INVALID_REQUEST if request.transactional_id == "" else ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    return InitProducerIdResponse(error_code=error, producer_id=-1, producer_epoch=-1)


API: Final = Api("InitProducerId", InitProducerIdRequest, InitProducerIdResponse, 0, 5, handle)
