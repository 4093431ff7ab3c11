"""AlterClientQuotas (49), versions 0 to 1 (KIP-546): there are no quotas, and none can be set.

v1  flexible (KIP-482)

Each entry is INVALID_REQUEST with one sentence: a quota that was accepted and not enforced would be worse. What was
never set may be removed of an entity that makes sense, as with Kafka.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from kafka_sidecar.apis.a48_describe_client_quotas import ENTITY_TYPES
from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.needs import AclOperation, on_cluster
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityDataResult,
    EntryData,
    EntryDataResult,
)

MESSAGE: Final = "This cluster has no client quotas, so none can be set."


def _refusal(entity: Mapping[str, str | None], entry: EntryData, *, twice: bool) -> str | None:
    """ClientQuotaControlManager.validateEntity; the addresses of an ip are not looked up."""
    if twice or len({one.key for one in entry.ops}) < len(entry.ops):
        return "Ignoring duplicate entity"
    if not entity:
        return "Invalid empty client quota entity"
    for kind, name in entity.items():
        if kind not in ENTITY_TYPES:
            return f"Unhandled client quota entity type: {kind}"
        if name == "":
            return f"Empty {kind} not supported"
    if "ip" in entity and len(entity) > 1:
        return "Invalid quota entity combination: an ip stands alone"
    return None if all(one.remove for one in entry.ops) else MESSAGE


def _handle(services: Services, call: Call, request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    entities = [{one.entity_type: one.entity_name for one in entry.entity} for entry in request.entries]
    times = Counter(frozenset(entity.items()) for entity in entities)
    answered = {}
    for entity, entry in zip(entities, request.entries, strict=True):
        key = frozenset(entity.items())
        told = [EntityDataResult(entity_type=kind, entity_name=name) for kind, name in entity.items()]
        refusal = _refusal(entity, entry, twice=times[key] > 1)
        code = ErrorCode.NONE if refusal is None else ErrorCode.INVALID_REQUEST
        answered[key] = EntryDataResult(error_code=code, error_message=refusal, entity=told)
    return AlterClientQuotasResponse(entries=list(answered.values()))


API: Final = Api(
    AlterClientQuotasRequest, AlterClientQuotasResponse, 0, 1, _handle, needs=on_cluster(AclOperation.ALTER_CONFIGS)
)
