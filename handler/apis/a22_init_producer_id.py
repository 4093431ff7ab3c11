"""InitProducerId (22), versions 0 to 5.

Without a transactional id every call gets a new producer id with epoch 0, as in Kafka. Ids are drawn
from 63 random bits: no two sidecars need to agree on anything, and a million producers meet with a
chance of one in ten million.
Not implemented: transactional ids, refused with TRANSACTIONAL_ID_AUTHORIZATION_FAILED.
"""

from __future__ import annotations

import secrets
from typing import Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Api, Call, Services


def handle(services: Services, call: Call) -> Answer:
    if call.request.transactional_id is not None:
        code = ErrorCode.invalid_request if call.request.transactional_id == "" else ErrorCode.transactional_id_authorization_failed
        return {"throttle_time": 0, "error_code": code, "producer_id": -1, "producer_epoch": -1}
    return {"throttle_time": 0, "error_code": ErrorCode.none, "producer_id": secrets.randbits(63), "producer_epoch": 0}


API: Final = Api(22, "InitProducerId", 0, 5, handle)
