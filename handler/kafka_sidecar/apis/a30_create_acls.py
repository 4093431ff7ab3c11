"""CreateAcls (30), versions 1 to 3: there is no authorizer, so each creation is SECURITY_DISABLED, as from a Kafka
broker without one.

v1  patterns of resources (KIP-290)
v2  flexible (KIP-482)
v3  users as resources (KIP-373)
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common import acls
from kafka_sidecar.apis.needs import AclOperation, on_cluster
from kafka_sidecar.wire.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse


def _handle(services: Services, call: Call, request: CreateAclsRequest) -> CreateAclsResponse:
    return CreateAclsResponse(
        results=[AclCreationResult(error_code=acls.CODE, error_message=acls.MESSAGE) for _ in request.creations]
    )


API: Final = Api(CreateAclsRequest, CreateAclsResponse, 1, 3, _handle, needs=on_cluster(AclOperation.ALTER))
