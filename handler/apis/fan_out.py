"""Requests about many groups, which may be coordinated by many sidecars: asked of each, and put together again."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple, TypeVar

from kio.index import load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from handler.apis.api import Answer, Call, Services
from handler.apis.groups import forward
from handler.apis.late import LATE_GROUP, in_time
from handler.coordination.directory import Leader
from handler.coordination.errors import NotLeading
from handler.wire.headers import read_header, response_header

log = logging.getLogger(__name__)

T = TypeVar("T")
L = TypeVar("L")

Items = list[dict[str, Any]]


class Parts(NamedTuple):
    """How a request and its answer are made of parts, one for each group."""

    request_field: str
    response_field: str
    id_of: Callable[[Any], str]
    here: Callable[[Sequence[Any]], Awaitable[Items]]
    refuse: Callable[[Any, ErrorCode], dict[str, Any]]
    is_question: bool = True


async def fan_out(services: Services, call: Call, parts: Parts) -> Items:
    """The answer's items, in the order in which they were asked for."""
    asked = getattr(call.request, parts.request_field)
    if call.forwarded:
        return await parts.here(asked)
    leaders = await asyncio.gather(*(_in_time(call, parts, _leader(services, parts.id_of(one)), LATE_GROUP) for one in asked))
    places_of: dict[Leader | ErrorCode | None, list[int]] = {}
    for place, leader in enumerate(leaders):
        places_of.setdefault(leader, []).append(place)
    answers = await asyncio.gather(
        *(_part_in_time(services, call, parts, leader, [asked[at] for at in places]) for leader, places in places_of.items())
    )
    found: list[dict[str, Any] | None] = [None] * len(asked)
    for places, items in zip(places_of.values(), answers, strict=True):
        for at, item in zip(places, items, strict=True):
            found[at] = item
    return [item for item in found if item is not None]


async def _leader(services: Services, group_id: str) -> Leader | ErrorCode | None:
    if not group_id or services.groups.leads(group_id):
        return None
    try:
        return await services.groups.leader(group_id)
    except NotLeading as refused:
        return refused.error


async def _part_in_time(services: Services, call: Call, parts: Parts, leader: Leader | ErrorCode | None, asked: Sequence[Any]) -> Items:
    work = _part(services, call, parts, leader, asked)
    return await _in_time(call, parts, work, [parts.refuse(one, LATE_GROUP) for one in asked])


async def _in_time(call: Call, parts: Parts, work: Awaitable[T], late: L) -> T | L:
    return await in_time(call, work, late) if parts.is_question else await work


async def _part(services: Services, call: Call, parts: Parts, leader: Leader | ErrorCode | None, asked: Sequence[Any]) -> Items:
    if leader is None:
        return await parts.here(asked)
    if isinstance(leader, ErrorCode):
        return [parts.refuse(one, leader) for one in asked]
    try:
        answer = await ask_peer(services, call, leader, replace(call.request, **{parts.request_field: tuple(asked)}))
    except NotLeading as refused:
        return [parts.refuse(one, refused.error) for one in asked]
    items = list(answer[parts.response_field])
    if len(items) != len(asked):
        log.warning("sidecar %s answered %d of %d that it was asked for", leader.name, len(items), len(asked))
        return [parts.refuse(one, ErrorCode.coordinator_not_available) for one in asked]
    return items


async def ask_peer(services: Services, call: Call, leader: Leader, request: Any) -> Answer:
    """The answer of another sidecar to `request`, which is like the call's own."""
    body = io.BytesIO()
    entity_writer(type(request))(body, request)
    head = bytes(call.frame[: read_header(call.frame).body_at])
    raw = await forward(services, call, leader, head + body.getvalue())
    skip = len(response_header(call.key, call.version, 0))
    read: Callable[[memoryview, int], tuple[Any, int]] = entity_reader(load_response_schema(call.key, call.version))
    return asdict(read(memoryview(raw)[skip:], 0)[0])
