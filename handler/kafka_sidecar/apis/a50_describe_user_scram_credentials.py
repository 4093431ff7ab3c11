"""DescribeUserScramCredentials (50), version 0 (KIP-554): no user has credentials.

Users that are named are RESOURCE_NOT_FOUND, and one that is named twice is DUPLICATE_RESOURCE (ScramImage.describe).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.needs import AclOperation, on_cluster
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


def _result(user: str, times: int) -> DescribeUserScramCredentialsResult:
    if times > 1:
        code, message = (
            ErrorCode.DUPLICATE_RESOURCE,
            "Cannot describe SCRAM credentials for the same user twice in a single request",
        )
    else:
        code, message = ErrorCode.RESOURCE_NOT_FOUND, "Attempt to describe a user credential that does not exist"
    return DescribeUserScramCredentialsResult(user=user, error_code=code, error_message=f"{message}: {user}")


def _handle(
    services: Services, call: Call, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    named = Counter(user.name for user in request.users or ())
    return DescribeUserScramCredentialsResponse(results=[_result(user, times) for user, times in named.items()])


API: Final = Api(
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    0,
    0,
    _handle,
    needs=on_cluster(AclOperation.DESCRIBE),
)
