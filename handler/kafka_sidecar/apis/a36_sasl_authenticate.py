"""SaslAuthenticate (36), versions 0 to 2: no listener asks for a login.

v1  how long the login lasts (KIP-368)
v2  flexible (KIP-482)

The answer is ILLEGAL_SASL_STATE, as from a PLAINTEXT listener of Kafka (KafkaApis.handleSaslAuthenticateRequest).
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.needs import NOTHING
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse

MESSAGE: Final = "SaslAuthenticate request received on a listener that asks for no login"


def _handle(services: Services, call: Call, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=MESSAGE)


API: Final = Api(SaslAuthenticateRequest, SaslAuthenticateResponse, 0, 2, _handle, needs=NOTHING)
