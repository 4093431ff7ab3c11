"""Requests about many groups, which may be coordinated by many sidecars: asked of each, and put together again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from kafka_sidecar.apis.api import Call, Services
from kafka_sidecar.apis.common.late import LATE_GROUP, in_time
from kafka_sidecar.apis.routing.to_coordinator import GROUPS, Coordinated, pass_on, read_answer
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.model.sidecar import SidecarInfo
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message

log = logging.getLogger(__name__)

T = TypeVar("T")
L = TypeVar("L")
Part = TypeVar("Part")  # of the request: one group's
Item = TypeVar("Item")  # of the response
M = TypeVar("M", bound=Message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts(Generic[Part, Item]):
    """How a request and its answer are made of parts, one for each group."""

    group_of: Callable[[Part], str]
    here: Callable[[Sequence[Part]], Awaitable[Sequence[Item]]]
    elsewhere: Callable[[SidecarInfo, Sequence[Part]], Awaitable[Sequence[Item]]]
    refuse: Callable[[Part, ErrorCode], Item]
    is_question: bool = True
    kind: Coordinated = GROUPS


async def fan_out(services: Services, call: Call, parts: Parts[Part, Item], wanted: Sequence[Part]) -> Sequence[Item]:
    """The answer's items, in the order in which they were asked for."""
    parts.kind.runtime(services).ensure_candidate()
    if call.forwarded:
        return await parts.here(wanted)
    leaders = await asyncio.gather(
        *(_in_time(call, parts, _leader(services, parts.kind, parts.group_of(part)), LATE_GROUP) for part in wanted)
    )
    numbers_of: dict[SidecarInfo | ErrorCode | None, list[int]] = {}
    for number, leader in enumerate(leaders):
        numbers_of.setdefault(leader, []).append(number)
    answers = await asyncio.gather(
        *(
            _of_leader(call, parts, leader, [wanted[number] for number in numbers])
            for leader, numbers in numbers_of.items()
        )
    )
    items: dict[int, Item] = {}
    for numbers, answer in zip(numbers_of.values(), answers, strict=True):
        items.update(zip(numbers, answer, strict=True))
    return [items[number] for number in range(len(wanted))]


async def _leader(services: Services, kind: Coordinated, key: str) -> SidecarInfo | ErrorCode | None:
    leaders = kind.runtime(services).leaders
    if not key or leaders.is_here(key):
        return None
    try:
        return await leaders.leader(key)
    except CoordinatorError as refused:
        return refused.error


async def _of_leader(
    call: Call, parts: Parts[Part, Item], leader: SidecarInfo | ErrorCode | None, wanted: Sequence[Part]
) -> Sequence[Item]:
    return await _in_time(call, parts, _ask(parts, leader, wanted), [parts.refuse(part, LATE_GROUP) for part in wanted])


async def _in_time(call: Call, parts: Parts[Part, Item], work: Awaitable[T], late: L) -> T | L:
    return await in_time(call, work, late) if parts.is_question else await work


async def _ask(
    parts: Parts[Part, Item], leader: SidecarInfo | ErrorCode | None, wanted: Sequence[Part]
) -> Sequence[Item]:
    if leader is None:
        return await parts.here(wanted)
    if isinstance(leader, ErrorCode):
        return [parts.refuse(part, leader) for part in wanted]
    try:
        items = await parts.elsewhere(leader, wanted)
    except CoordinatorError as refused:
        return [parts.refuse(part, refused.error) for part in wanted]
    if len(items) != len(wanted):
        log.warning("sidecar %s answered %d of %d that it was asked for", leader.name, len(items), len(wanted))
        return [parts.refuse(part, ErrorCode.COORDINATOR_NOT_AVAILABLE) for part in wanted]
    return items


async def ask_peer(services: Services, call: Call, leader: SidecarInfo, request: Message, response: type[M]) -> M:
    """The answer of another sidecar to `request`, which is like the call's own."""
    frame = bytearray(call.frame[: call.body_at])
    request.write(call.version, frame)
    return read_answer(await pass_on(services, call, leader, request, bytes(frame)), response, call.version)
