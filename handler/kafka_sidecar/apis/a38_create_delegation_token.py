"""CreateDelegationToken (38), versions 1 to 3 (KIP-48): a listener without a login gives no tokens.

v2  flexible (KIP-482)
v3  a token for somebody else (KIP-373)

The answer is DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as from a PLAINTEXT listener of Kafka
(KafkaApis.allowTokenRequests).
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.needs import NOTHING
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

NO_TIME: Final = -1


def _handle(services: Services, call: Call, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    requester = services.principal
    return CreateDelegationTokenResponse(
        error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        principal_type=request.owner_principal_type or requester.kind,
        principal_name=request.owner_principal_name or requester.name,
        token_requester_principal_type=requester.kind,
        token_requester_principal_name=requester.name,
        issue_timestamp_ms=NO_TIME,
        expiry_timestamp_ms=NO_TIME,
        max_timestamp_ms=NO_TIME,
    )


API: Final = Api(CreateDelegationTokenRequest, CreateDelegationTokenResponse, 1, 3, _handle, needs=NOTHING)
