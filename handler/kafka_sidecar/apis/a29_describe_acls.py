"""DescribeAcls (29), versions 1 to 3: there is no authorizer, so the answer is SECURITY_DISABLED, as from a Kafka
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
from kafka_sidecar.wire.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse


def _handle(services: Services, call: Call, request: DescribeAclsRequest) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=acls.CODE, error_message=acls.DESCRIBE_MESSAGE)


API: Final = Api(DescribeAclsRequest, DescribeAclsResponse, 1, 3, _handle, needs=on_cluster(AclOperation.DESCRIBE))
