"""TxnOffsetCommit (28), versions 0 to 5.

v2  leader epochs (KIP-320)
v3  flexible (KIP-482); the member says who it is (KIP-447)
v4  TRANSACTION_ABORTABLE (KIP-890)
v5  the group takes part in the transaction by this; before, AddOffsetsToTxn has said so (KIP-890)

The offsets are pending until the transaction has ended.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Final

from kafka_sidecar.apis.a08_offset_commit import KNOWN_SECONDS
from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.topics import RequestedTopic, committed_offsets, requested_topic, resolve
from kafka_sidecar.apis.needs import AclOperation, on_group, on_topic, on_transactional_id
from kafka_sidecar.apis.routing.to_coordinator import to_coordinator_in_turn
from kafka_sidecar.apis.routing.transactions import commit_offsets
from kafka_sidecar.groups.coordinator import Commit
from kafka_sidecar.groups.shard import TopicPartition
from kafka_sidecar.groups.vocabulary import Committer
from kafka_sidecar.topics.names import TopicName
from kafka_sidecar.transactions.machine import Producer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

ADDS_GROUP_SINCE: Final = 5
Topics = Sequence[tuple[RequestedTopic, Sequence[TxnOffsetCommitRequestPartition]]]
# A producer takes these differently than the transaction coordinator means them (TransactionManager).
_TOLD: Final = {
    ErrorCode.CONCURRENT_TRANSACTIONS: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
}


def _unknown(services: Services, request: TxnOffsetCommitRequest) -> list[TopicName | uuid.UUID]:
    catalog = services.catalog
    unknown: list[TopicName | uuid.UUID] = []
    for topic in request.topics:
        name = resolve(services, topic.name, None)
        if isinstance(name, TopicName) and not catalog.is_missing(name) and catalog.known(name, KNOWN_SECONDS) is None:
            unknown.append(name)
    return unknown


async def _handle(services: Services, call: Call, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    topics = [(requested_topic(services, topic.name, None), topic.partitions) for topic in request.topics]
    offsets, refused = committed_offsets(services, topics)
    committer = Committer(request.member_id, request.group_instance_id, request.generation_id)
    commit = Commit(request.group_id, committer, -1, offsets)
    producer = Producer(request.producer_id, request.producer_epoch)
    told = await commit_offsets(
        services, commit, request.transactional_id, producer, adds=call.version >= ADDS_GROUP_SINCE
    )
    if isinstance(told, ErrorCode):
        is_old = told is ErrorCode.TRANSACTION_ABORTABLE and call.version < ADDS_GROUP_SINCE - 1
        return _refuse(call, request, ErrorCode.INVALID_TXN_STATE if is_old else _TOLD.get(told, told))
    return _response(topics, told | refused)


def _response(topics: Topics, errors: Mapping[TopicPartition, ErrorCode]) -> TxnOffsetCommitResponse:
    responses = []
    for requested, partitions in topics:
        answers = []
        for partition in partitions:
            at = requested.partition(partition.partition_index)
            error = requested.error if at is None else errors[at]
            answers.append(
                TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
            )
        responses.append(TxnOffsetCommitResponseTopic(name=requested.name, partitions=answers))
    return TxnOffsetCommitResponse(topics=responses)


def _refuse(_: Call, request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


API: Final = Api(
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    0,
    5,
    to_coordinator_in_turn(_handle, _refuse, _unknown),
    needs=on_transactional_id(AclOperation.WRITE) + on_group(AclOperation.READ) + on_topic(AclOperation.READ),
    is_passed_on=True,
)
