"""AlterUserScramCredentials (51), version 0 (KIP-554): no listener takes a login, so no credentials are kept.

Each user is UNSUPPORTED_SASL_MECHANISM with one sentence: credentials that were accepted and let nobody in would be
worse.
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.needs import AclOperation, on_cluster
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)

CODE: Final = ErrorCode.UNSUPPORTED_SASL_MECHANISM
MESSAGE: Final = "This cluster keeps no SCRAM credentials, because its listeners take no login."


def _handle(
    services: Services, call: Call, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    users = dict.fromkeys([*(one.name for one in request.deletions), *(one.name for one in request.upsertions)])
    results = [AlterUserScramCredentialsResult(user=user, error_code=CODE, error_message=MESSAGE) for user in users]
    return AlterUserScramCredentialsResponse(results=results)


API: Final = Api(
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    0,
    0,
    _handle,
    needs=on_cluster(AclOperation.ALTER),
)
