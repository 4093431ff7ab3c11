"""ListTransactions (66), versions 0 to 2 (KIP-664).

v1  those that have lasted for so long (KIP-994)
v2  transactional ids by a pattern (KIP-1152)

Those of sidecars that Metadata does not name are asked for and listed here.
"""

from __future__ import annotations

import asyncio
from typing import Final

import re2

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.late import LATE_GROUP, in_time
from kafka_sidecar.apis.needs import AclOperation, on_transactional_id
from kafka_sidecar.apis.routing.fan_out import ask_peer
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.transactions.metadata import TransactionMetadata
from kafka_sidecar.transactions.metadata import TransactionState as State
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)

_STATES: Final = {state.title for state in State}


async def _handle(services: Services, call: Call, request: ListTransactionsRequest) -> ListTransactionsResponse:
    try:
        return await in_time(call, _list(services, call, request), ListTransactionsResponse(error_code=LATE_GROUP))
    except CoordinatorError as refused:
        return ListTransactionsResponse(error_code=refused.error)
    except re2.error:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)


async def _list(services: Services, call: Call, request: ListTransactionsRequest) -> ListTransactionsResponse:
    pattern = re2.compile(request.transactional_id_pattern) if request.transactional_id_pattern else None
    leaders = services.transactions.leaders
    others = [] if call.forwarded else await leaders.all()
    now = services.wall_clock()

    def is_wanted(metadata: TransactionMetadata) -> bool:
        return (
            (not request.state_filters or metadata.state.title in request.state_filters)
            and (not request.producer_id_filters or metadata.producer_id in request.producer_id_filters)
            and (request.duration_filter < 0 or now - metadata.start_timestamp > request.duration_filter)
            and (pattern is None or bool(pattern.fullmatch(metadata.transactional_id)))
        )

    listed = [
        TransactionState(
            transactional_id=metadata.transactional_id,
            producer_id=metadata.producer_id,
            transaction_state=metadata.state.title,
        )
        for metadata in services.transactions.coordinator.all_transactions()
        if is_wanted(metadata)
    ]
    unreachable = [leader for leader in others if not leaders.is_reachable(leader, call.client.is_external)]
    for answer in await asyncio.gather(
        *(ask_peer(services, call, leader, request, ListTransactionsResponse) for leader in unreachable)
    ):
        if answer.error_code is not ErrorCode.NONE:
            raise CoordinatorError(answer.error_code)
        listed += answer.transaction_states
    unknown = [state for state in request.state_filters if state not in _STATES]
    return ListTransactionsResponse(transaction_states=listed, unknown_state_filters=unknown)


API: Final = Api(
    ListTransactionsRequest,
    ListTransactionsResponse,
    0,
    2,
    _handle,
    needs=on_transactional_id(AclOperation.DESCRIBE),
    ends_with_client=True,
    is_passed_on=True,
)
