"""What members of classic groups say to each other, where sidecars of several `kafka.namespace` share the groups.

Subscriptions and assignments are bytes that name topics, and `orders` is another topic for members at another sidecar. So the sidecar of
a client writes short names in full in what its client says, and gives it its own names in what it is told. The bytes of a coordinator,
of whichever release, are the same for all.

A short name that comes back was said at a sidecar of an older release, or before there was another namespace. It stays as it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial, wraps
from typing import Any, Final

from handler.apis.api import Call, Response, Services
from handler.apis.member_forms import Forms, Joined
from handler.apis.routing.to_coordinator import read_answer
from handler.groups.records.subscription import renamed_parts, renamed_subscription
from handler.groups.vocabulary import CONSUMER_PROTOCOL
from handler.tasks import in_a_thread
from handler.topics.names import InvalidTopicName, TopicNames
from handler.wire.messages.describe_groups import DescribedGroup
from handler.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from handler.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_FULL: Final = "persistent://"

JoinHandler = Callable[[Services, Call, JoinGroupRequest], Awaitable[Response]]
SyncHandler = Callable[[Services, Call, SyncGroupRequest], Awaitable[Response]]


def joining_in_full(handle: JoinHandler) -> JoinHandler:
    @wraps(handle)
    async def in_full(services: Services, call: Call, request: JoinGroupRequest) -> Response:
        if request.protocol_type != CONSUMER_PROTOCOL or not _is_shared(services, call):
            return await handle(services, call, request)
        own, forms = services.names, dict[str, str]()
        call, request = await in_a_thread(partial(_join_in_full, call, request, own, forms))
        answer = read_answer(await handle(services, call, request), JoinGroupResponse, call.version)
        in_short = await in_a_thread(partial(_joined_in_own, answer, own, forms))
        services.member_forms.remember(request.group_id, answer.member_id, Joined(forms, in_short))
        return answer

    return in_full


def syncing_in_full(handle: SyncHandler) -> SyncHandler:
    @wraps(handle)
    async def in_full(services: Services, call: Call, request: SyncGroupRequest) -> Response:
        if request.protocol_type not in (None, CONSUMER_PROTOCOL) or not _is_shared(services, call):
            return await handle(services, call, request)
        own, joined = services.names, services.member_forms.of(request.group_id, request.member_id)
        if request.assignments:  # the leader's
            call, request = await in_a_thread(partial(_sync_in_full, call, request, own, joined.in_short))
        answer = read_answer(await handle(services, call, request), SyncGroupResponse, call.version)
        if answer.protocol_type in (None, CONSUMER_PROTOCOL):
            answer.assignment = renamed_parts(answer.assignment, partial(_in_own, own, joined.forms))
        return answer

    return in_full


async def described_in_own(services: Services, call: Call, groups: Sequence[DescribedGroup]) -> Sequence[DescribedGroup]:
    return await in_a_thread(partial(_described, groups, services.names)) if _is_shared(services, call) else groups


def _is_shared(services: Services, call: Call) -> bool:
    """Whether this is the sidecar of the client, and clients of others mean other topics."""
    return not call.forwarded and services.names_in_full


def _join_in_full(call: Call, request: JoinGroupRequest, own: TopicNames, forms: dict[str, str]) -> tuple[Call, JoinGroupRequest]:
    copy = _copy(request, call.version)
    for protocol in copy.protocols:
        protocol.metadata = renamed_subscription(protocol.metadata, partial(_in_full, own, forms))
    return _with_body(call, copy), copy


def _joined_in_own(answer: JoinGroupResponse, own: TopicNames, forms: Forms) -> frozenset[str]:
    """The members that have named topics in short."""
    in_short: set[str] = set()
    for member in answer.members:

        def renamed(name: str, member_id: str = member.member_id) -> str:
            if "/" not in name:
                in_short.add(member_id)
            return _in_own(own, forms, name)

        member.metadata = renamed_subscription(member.metadata, renamed)
    return frozenset(in_short)


def _sync_in_full(call: Call, request: SyncGroupRequest, own: TopicNames, in_short: Collection[str]) -> tuple[Call, SyncGroupRequest]:
    copy = _copy(request, call.version)
    for one in copy.assignments:
        if one.member_id in in_short:
            continue
        one.assignment = renamed_parts(one.assignment, partial(_in_full, own, {}))
    return _with_body(call, copy), copy


def _described(groups: Sequence[DescribedGroup], own: TopicNames) -> Sequence[DescribedGroup]:
    for group in groups:
        for member in group.members if group.protocol_type == CONSUMER_PROTOCOL else ():
            member.member_metadata = renamed_subscription(member.member_metadata, partial(_in_own, own, {}))
            member.member_assignment = renamed_parts(member.member_assignment, partial(_in_own, own, {}))
    return groups


def _in_full(own: TopicNames, forms: dict[str, str], name: str) -> str:
    try:
        topic = own.parse(name)
    except InvalidTopicName:
        return name
    if own.kafka(topic) != name:
        forms[topic.pulsar] = name
    return topic.pulsar


def _in_own(own: TopicNames, forms: Forms, name: str) -> str:
    return forms.get(name) or (own.canonical(name) if name.startswith(_FULL) else name)


def _copy(request: Any, version: int) -> Any:
    body = bytearray()
    request.write(version, body)
    return type(request).read(version, memoryview(bytes(body)), max_elements=len(body))


def _with_body(call: Call, request: Any) -> Call:
    frame = bytearray(call.frame[: call.body_at])
    request.write(call.version, frame)
    return call._replace(frame=memoryview(bytes(frame)))
