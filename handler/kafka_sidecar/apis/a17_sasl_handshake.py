"""SaslHandshake (17), versions 0 to 1: no listener asks for a login, so no mechanism is offered.

v1  SaslAuthenticate follows (KIP-152)

A client that asks for a login here gets ILLEGAL_SASL_STATE, as from a PLAINTEXT listener of Kafka
(KafkaApis.handleSaslHandshakeRequest).
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.needs import NOTHING
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def _handle(services: Services, call: Call, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)


API: Final = Api(SaslHandshakeRequest, SaslHandshakeResponse, 0, 1, _handle, needs=NOTHING)
