"""DescribeClientQuotas (48), versions 0 to 1 (KIP-546): there are no quotas, so nothing matches.

v1  flexible (KIP-482)

A filter that makes no sense is refused as Kafka refuses it (ClientQuotasImage.describe).
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.needs import AclOperation, on_cluster
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

ENTITY_TYPES: Final = frozenset(("user", "client-id", "ip"))
EXACT, DEFAULT, ANY = 0, 1, 2


class _NoFilter(Exception):
    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def _check(components: list[ComponentData]) -> None:
    seen: set[str] = set()
    for one in components:
        if not one.entity_type:
            raise _NoFilter(ErrorCode.INVALID_REQUEST, "Invalid empty entity type.")
        if one.entity_type in seen:
            raise _NoFilter(
                ErrorCode.INVALID_REQUEST, f"Entity type {one.entity_type} cannot appear more than once in the filter."
            )
        if one.entity_type not in ENTITY_TYPES:
            raise _NoFilter(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {one.entity_type}")
        if one.match_type not in (EXACT, DEFAULT, ANY):
            raise _NoFilter(ErrorCode.INVALID_REQUEST, f"Unknown match type {one.match_type}")
        if (one.match is None) == (one.match_type == EXACT):
            raise _NoFilter(
                ErrorCode.INVALID_REQUEST, "A match string is given for an exact match, and for no other match type."
            )
        seen.add(one.entity_type)
    if "ip" in seen and len(seen) > 1:
        raise _NoFilter(
            ErrorCode.INVALID_REQUEST, "An ip filter component can't be used with those of users and client ids."
        )


def _handle(services: Services, call: Call, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    try:
        _check(list(request.components))
    except _NoFilter as refused:
        return DescribeClientQuotasResponse(error_code=refused.code, error_message=str(refused), entries=None)
    return DescribeClientQuotasResponse(entries=())


API: Final = Api(
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    0,
    1,
    _handle,
    needs=on_cluster(AclOperation.DESCRIBE_CONFIGS),
)
