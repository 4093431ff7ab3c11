"""Requests about many groups, which may be coordinated by many sidecars: asked of each, and put together again."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

from kio.index import load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from handler.apis.api import Answer, Call, Services
from handler.apis.groups import forward
from handler.groups.directory import Leader
from handler.groups.shard import NotLeading
from handler.wire.headers import read_header, response_header

Items = list[dict[str, Any]]


async def spread(
    services: Services, call: Call, field: str, asked: Sequence[Any], id_of: Callable[[Any], str],
    here: Callable[[Sequence[Any]], Awaitable[Items]], refuse: Callable[[Any, ErrorCode], dict[str, Any]],
) -> Items:  # fmt: skip
    """Items of an answer, one for each of `asked`, which is the request's `field`."""
    if call.forwarded:
        return await here(asked)
    leaders = await asyncio.gather(*(_leader(services, id_of(one)) for one in asked))
    parts: dict[Leader | ErrorCode | None, list[int]] = {}
    for place, leader in enumerate(leaders):
        parts.setdefault(leader, []).append(place)
    answers = await asyncio.gather(*(_part(services, call, field, leader, [asked[at] for at in places], here, refuse)
                                     for leader, places in parts.items()))  # fmt: skip
    found: list[dict[str, Any] | None] = [None] * len(asked)
    for places, items in zip(parts.values(), answers, strict=True):
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


async def _part(
    services: Services, call: Call, field: str, leader: Leader | ErrorCode | None, asked: Sequence[Any],
    here: Callable[[Sequence[Any]], Awaitable[Items]], refuse: Callable[[Any, ErrorCode], dict[str, Any]],
) -> Items:  # fmt: skip
    if leader is None:
        return await here(asked)
    if isinstance(leader, ErrorCode):
        return [refuse(one, leader) for one in asked]
    try:
        answer = await ask_peer(services, call, leader, replace(call.request, **{field: tuple(asked)}))
    except NotLeading as refused:
        return [refuse(one, refused.error) for one in asked]
    items = next(value for value in answer.values() if isinstance(value, list | tuple))
    return list(items)


async def ask_peer(services: Services, call: Call, leader: Leader, request: Any) -> Answer:
    """The answer of another sidecar to `request`, which is like the call's own."""
    body = io.BytesIO()
    entity_writer(type(request))(body, request)
    head = bytes(call.frame[: read_header(call.frame).body_at])
    raw = await forward(services, call, leader, head + body.getvalue())
    skip = len(response_header(call.key, call.version, 0))
    read: Callable[[memoryview, int], tuple[Any, int]] = entity_reader(load_response_schema(call.key, call.version))
    return asdict(read(memoryview(raw)[skip:], 0)[0])
