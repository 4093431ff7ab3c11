"""ExpireDelegationToken (40), versions 1 to 2 (KIP-48): a listener without a login knows no tokens.

v2  flexible (KIP-482)

The answer is DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as from a PLAINTEXT listener of Kafka
(KafkaApis.allowTokenRequests).
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.needs import NOTHING
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

NO_TIME: Final = -1


def _handle(services: Services, call: Call, request: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=NO_TIME
    )


API: Final = Api(ExpireDelegationTokenRequest, ExpireDelegationTokenResponse, 1, 2, _handle, needs=NOTHING)
