"""DescribeTransactions (65), version 0 (KIP-664)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.needs import AclOperation, on_topic, on_transactional_id
from kafka_sidecar.apis.routing.fan_out import Parts, ask_peer, fan_out
from kafka_sidecar.apis.routing.to_coordinator import TRANSACTIONS
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.model.sidecar import SidecarInfo
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)


async def _handle(services: Services, call: Call, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    async def here(ids: Sequence[str]) -> list[TransactionState]:
        return [_describe(services, transactional_id) for transactional_id in ids]

    async def elsewhere(leader: SidecarInfo, ids: Sequence[str]) -> Sequence[TransactionState]:
        part = DescribeTransactionsRequest(transactional_ids=ids)
        return (await ask_peer(services, call, leader, part, DescribeTransactionsResponse)).transaction_states

    parts = Parts(group_of=str, here=here, elsewhere=elsewhere, refuse=_refused, kind=TRANSACTIONS)
    return DescribeTransactionsResponse(
        transaction_states=await fan_out(services, call, parts, request.transactional_ids)
    )


def _describe(services: Services, transactional_id: str) -> TransactionState:
    try:
        metadata = services.transactions.coordinator.describe(transactional_id)
    except CoordinatorError as refused:
        return _refused(transactional_id, refused.error)
    if metadata is None:
        return _refused(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(metadata.partitions):
        by_topic.setdefault(topic, []).append(partition)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=metadata.state.title,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=metadata.start_timestamp,
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        topics=[TopicData(topic=topic, partitions=partitions) for topic, partitions in by_topic.items()],
    )


def _refused(transactional_id: str, error: ErrorCode) -> TransactionState:
    return TransactionState(transactional_id=transactional_id, error_code=error)


API: Final = Api(
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    0,
    0,
    _handle,
    needs=on_transactional_id(AclOperation.DESCRIBE) + on_topic(AclOperation.DESCRIBE),
    ends_with_client=True,
    is_passed_on=True,
)
