"""Every API says which rights its requests need, in Kafka's words."""

from __future__ import annotations

import pytest

from kafka_sidecar.apis import APIS
from kafka_sidecar.apis.api import AnyApi
from kafka_sidecar.apis.needs import AclOperation, ResourceType

# A client logs in by these, or learns what it may send. DescribeCluster needs a right for the rights themselves; tokens are their owner's.
NEED_NOTHING = {
    "ApiVersions", "SaslHandshake", "SaslAuthenticate", "DescribeCluster",
    "CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken", "DescribeDelegationToken",
}  # fmt: skip
# Kafka's AclEntry.supportedOperations, by the codes of operations.
SUPPORTED = {
    ResourceType.TOPIC: {3, 4, 5, 6, 7, 8, 10, 11},
    ResourceType.GROUP: {3, 6, 8, 10, 11},
    ResourceType.CLUSTER: {5, 7, 8, 9, 10, 11, 12},
    ResourceType.TRANSACTIONAL_ID: {4, 8},
}


def test_only_who_logs_in_needs_nothing() -> None:
    assert {api.name for api in APIS if not api.needs} == NEED_NOTHING


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_a_need_is_one_that_kafka_can_grant(api: AnyApi) -> None:
    for need in api.needs:
        assert need.operation.value in SUPPORTED[need.resource]
    assert len(set(api.needs)) == len(api.needs)


def test_what_no_api_needs_is_no_operation() -> None:
    assert {need.operation for api in APIS for need in api.needs} == set(AclOperation)
