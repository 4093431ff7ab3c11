"""AlterClientQuotas (49), versions 0 to 1 (KIP-546): there are no quotas, and none can be set.

v1  flexible (KIP-482)

Each entry is INVALID_REQUEST with one sentence: a quota that was accepted and not enforced would be worse. What was never set may be
removed, as with Kafka.
"""

from __future__ import annotations

from typing import Final

from handler.apis.api import Api, Call, Services
from handler.wire.error_code import ErrorCode
from handler.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityDataResult,
    EntryData,
    EntryDataResult,
)

MESSAGE: Final = "This cluster has no client quotas, so none can be set."


def _result(entry: EntryData) -> EntryDataResult:
    entity = [EntityDataResult(entity_type=one.entity_type, entity_name=one.entity_name) for one in entry.entity]
    if all(one.remove for one in entry.ops):
        return EntryDataResult(entity=entity)
    return EntryDataResult(error_code=ErrorCode.INVALID_REQUEST, error_message=MESSAGE, entity=entity)


def _handle(services: Services, call: Call, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    return AlterClientQuotasResponse(entries=[_result(entry) for entry in request.entries])


API: Final = Api("AlterClientQuotas", AlterClientQuotasRequest, AlterClientQuotasResponse, 0, 1, _handle)
