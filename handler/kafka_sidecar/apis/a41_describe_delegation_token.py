"""DescribeDelegationToken (41), versions 1 to 3 (KIP-48): a listener without a login knows no tokens.

v2  flexible (KIP-482)
v3  the requester of a token (KIP-373)

The answer is DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as from a PLAINTEXT listener of Kafka
(KafkaApis.allowTokenRequests).
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.needs import NOTHING
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


def _handle(services: Services, call: Call, request: DescribeDelegationTokenRequest) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


API: Final = Api(DescribeDelegationTokenRequest, DescribeDelegationTokenResponse, 1, 3, _handle, needs=NOTHING)
