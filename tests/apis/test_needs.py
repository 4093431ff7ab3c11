"""Every API says which rights its requests need, in Kafka's words."""

from __future__ import annotations

import pytest

from kafka_sidecar.apis import APIS
from kafka_sidecar.apis.api import AnyApi
from kafka_sidecar.apis.needs import AclOperation, ResourceType

# Kafka's AclEntry.supportedOperations, by the codes of operations.
SUPPORTED = {
    ResourceType.TOPIC: {3, 4, 5, 6, 7, 8, 10, 11},
    ResourceType.GROUP: {3, 6, 8, 10, 11},
    ResourceType.CLUSTER: {5, 7, 8, 9, 10, 11, 12},
    ResourceType.TRANSACTIONAL_ID: {4, 8},
}


# Of KafkaApis. Where a row has several kinds of resources, some requests need one of them, others all: that depends on
# their fields.
NEEDS = {
    "Produce": "TOPIC WRITE; TRANSACTIONAL_ID WRITE",
    "Fetch": "TOPIC READ",
    "ListOffsets": "TOPIC DESCRIBE",
    "Metadata": "TOPIC DESCRIBE, CREATE; CLUSTER CREATE",
    "OffsetCommit": "GROUP READ; TOPIC READ",
    "OffsetFetch": "GROUP DESCRIBE; TOPIC DESCRIBE",
    "FindCoordinator": "GROUP DESCRIBE; TRANSACTIONAL_ID DESCRIBE",
    "JoinGroup": "GROUP READ",
    "Heartbeat": "GROUP READ",
    "LeaveGroup": "GROUP READ",
    "SyncGroup": "GROUP READ",
    "DescribeGroups": "GROUP DESCRIBE",
    "ListGroups": "GROUP DESCRIBE; CLUSTER DESCRIBE",
    "SaslHandshake": "",
    "ApiVersions": "",
    "CreateTopics": "TOPIC CREATE, DESCRIBE_CONFIGS; CLUSTER CREATE",
    "DeleteTopics": "TOPIC DELETE, DESCRIBE",
    "DeleteRecords": "TOPIC DELETE",
    "InitProducerId": "TRANSACTIONAL_ID WRITE; CLUSTER IDEMPOTENT_WRITE; TOPIC WRITE",
    "OffsetForLeaderEpoch": "TOPIC DESCRIBE; CLUSTER CLUSTER_ACTION",
    "AddPartitionsToTxn": "TRANSACTIONAL_ID WRITE; TOPIC WRITE; CLUSTER CLUSTER_ACTION",
    "AddOffsetsToTxn": "TRANSACTIONAL_ID WRITE; GROUP READ",
    "EndTxn": "TRANSACTIONAL_ID WRITE",
    "WriteTxnMarkers": "CLUSTER ALTER, CLUSTER_ACTION",
    "TxnOffsetCommit": "TRANSACTIONAL_ID WRITE; GROUP READ; TOPIC READ",
    "DescribeAcls": "CLUSTER DESCRIBE",
    "CreateAcls": "CLUSTER ALTER",
    "DeleteAcls": "CLUSTER ALTER",
    "DescribeConfigs": "TOPIC DESCRIBE_CONFIGS; GROUP DESCRIBE_CONFIGS; CLUSTER DESCRIBE_CONFIGS",
    "AlterConfigs": "TOPIC ALTER_CONFIGS; GROUP ALTER_CONFIGS; CLUSTER ALTER_CONFIGS",
    "AlterReplicaLogDirs": "CLUSTER ALTER",
    "DescribeLogDirs": "CLUSTER DESCRIBE",
    "SaslAuthenticate": "",
    "CreatePartitions": "TOPIC ALTER",
    "CreateDelegationToken": "",
    "RenewDelegationToken": "",
    "ExpireDelegationToken": "",
    "DescribeDelegationToken": "",
    "DeleteGroups": "GROUP DELETE",
    "ElectLeaders": "CLUSTER ALTER",
    "IncrementalAlterConfigs": "TOPIC ALTER_CONFIGS; GROUP ALTER_CONFIGS; CLUSTER ALTER_CONFIGS",
    "AlterPartitionReassignments": "CLUSTER ALTER",
    "ListPartitionReassignments": "CLUSTER DESCRIBE",
    "OffsetDelete": "GROUP DELETE; TOPIC READ",
    "DescribeClientQuotas": "CLUSTER DESCRIBE_CONFIGS",
    "AlterClientQuotas": "CLUSTER ALTER_CONFIGS",
    "DescribeUserScramCredentials": "CLUSTER DESCRIBE",
    "AlterUserScramCredentials": "CLUSTER ALTER",
    "DescribeQuorum": "CLUSTER DESCRIBE",
    "UpdateFeatures": "CLUSTER ALTER",
    "DescribeCluster": "",
    "DescribeProducers": "TOPIC READ",
    "DescribeTransactions": "TRANSACTIONAL_ID DESCRIBE; TOPIC DESCRIBE",
    "ListTransactions": "TRANSACTIONAL_ID DESCRIBE",
    "ConsumerGroupHeartbeat": "GROUP READ; TOPIC DESCRIBE",
    "ConsumerGroupDescribe": "GROUP DESCRIBE; TOPIC DESCRIBE",
    "ListConfigResources": "CLUSTER DESCRIBE_CONFIGS",
    "DescribeTopicPartitions": "TOPIC DESCRIBE",
}


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_an_api_needs_what_it_needs_in_kafka(api: AnyApi) -> None:
    needed: dict[str, list[str]] = {}
    for need in api.needs:
        needed.setdefault(need.resource.name, []).append(need.operation.name)
    assert (
        "; ".join(f"{resource} {', '.join(operations)}" for resource, operations in needed.items()) == NEEDS[api.name]
    )


@pytest.mark.parametrize("api", APIS, ids=lambda api: api.name)
def test_a_need_is_one_that_kafka_can_grant(api: AnyApi) -> None:
    for need in api.needs:
        assert need.operation.value in SUPPORTED[need.resource]
    assert len(set(api.needs)) == len(api.needs)


def test_what_no_api_needs_is_no_operation() -> None:
    assert {need.operation for api in APIS for need in api.needs} == set(AclOperation)
