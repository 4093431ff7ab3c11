"""What members of classic groups say to each other, where sidecars of several `kafka.namespace` share the groups.

Subscriptions and assignments are bytes that name topics, and `orders` is another topic for members at another sidecar.
So the sidecar of a client writes short names in full in what its client says. The bytes of a coordinator, of whichever
release, are the same for all.

    client ──▶ short names in full, where namespaces share groups ──▶ coordinator
    client ◀── full names in the form that the client has used ◀── coordinator

Sidecars learn at different times that namespaces share the groups. A sidecar that does not know it yet translates what
its client gets all the same, for another sidecar may know it. Where a member has written a short name, its sidecar did
not know it, or is of 0.2. The short name stays as it is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial, wraps
from typing import Final

from kafka_sidecar.apis.api import Call, Response, Services
from kafka_sidecar.apis.routing.in_full import copied
from kafka_sidecar.apis.routing.to_coordinator import read_answer
from kafka_sidecar.apis.state.member_forms import Forms, Joined
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.groups.records.subscription import renamed_parts, renamed_subscription
from kafka_sidecar.groups.vocabulary import CONSUMER_PROTOCOL
from kafka_sidecar.loop.waiting import in_a_thread
from kafka_sidecar.topics.names import InvalidTopicName, TopicNames
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message
from kafka_sidecar.wire.messages.describe_groups import DescribedGroup
from kafka_sidecar.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kafka_sidecar.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

_FULL: Final = b"persistent://"
_SLASH: Final = b"/"

JoinHandler = Callable[[Services, Call, JoinGroupRequest], Awaitable[Response]]
SyncHandler = Callable[[Services, Call, SyncGroupRequest], Awaitable[Response]]


def joining_in_full(handle: JoinHandler) -> JoinHandler:
    @wraps(handle)
    async def in_full(services: Services, call: Call, request: JoinGroupRequest) -> Response:
        if call.forwarded or request.protocol_type != CONSUMER_PROTOCOL:
            return await handle(services, call, request)
        own, forms = services.names, dict[str, str]()
        if await services.groups.leaders.know_whether_they_are_shared():
            call, request = await in_a_thread(partial(_join_in_full, call, request, own, forms))
        elif any(_SLASH in protocol.metadata for protocol in request.protocols):
            await in_a_thread(partial(_note_forms, request, own, forms))
        try:
            answer = read_answer(await handle(services, call, request), JoinGroupResponse, call.version)
        except CoordinatorError as refused:
            return JoinGroupResponse(error_code=refused.error, member_id=request.member_id)
        if answer.error_code is not ErrorCode.NONE:
            return answer
        in_short = {}
        if forms or services.names_in_full or any(_FULL in member.metadata for member in answer.members):
            in_short = await in_a_thread(partial(_joined_in_own, answer, own, forms))
        services.member_forms.remember(request.group_id, answer.member_id, Joined(forms, in_short))
        return answer

    return in_full


def syncing_in_full(handle: SyncHandler) -> SyncHandler:
    @wraps(handle)
    async def in_full(services: Services, call: Call, request: SyncGroupRequest) -> Response:
        if call.forwarded or request.protocol_type not in (None, CONSUMER_PROTOCOL):
            return await handle(services, call, request)
        own, joined = services.names, services.member_forms.of(request.group_id, request.member_id)
        if request.assignments and services.names_in_full:  # the leader's
            call, request = await in_a_thread(partial(_sync_in_full, call, request, own, joined.in_short))
        try:
            answer = read_answer(await handle(services, call, request), SyncGroupResponse, call.version)
        except CoordinatorError as refused:
            return SyncGroupResponse(error_code=refused.error)
        if answer.protocol_type in (None, CONSUMER_PROTOCOL) and (joined.forms or _FULL in answer.assignment):
            answer.assignment = await in_a_thread(
                partial(renamed_parts, answer.assignment, partial(_in_own, own, joined.forms))
            )
        return answer

    return in_full


async def described_in_own(
    services: Services, call: Call, groups: Sequence[DescribedGroup]
) -> Sequence[DescribedGroup]:
    said = (
        words for group in groups for one in group.members for words in (one.member_metadata, one.member_assignment)
    )
    is_translated = not call.forwarded and (services.names_in_full or any(_FULL in words for words in said))
    return await in_a_thread(partial(_described, groups, services.names)) if is_translated else groups


def _join_in_full(
    call: Call, request: JoinGroupRequest, own: TopicNames, forms: dict[str, str]
) -> tuple[Call, JoinGroupRequest]:
    copy = copied(request, call.version)
    for protocol in copy.protocols:
        protocol.metadata = renamed_subscription(protocol.metadata, partial(_in_full, own, forms))
    return _with_body(call, copy), copy


def _note_forms(request: JoinGroupRequest, own: TopicNames, forms: dict[str, str]) -> None:
    for protocol in request.protocols:
        renamed_subscription(protocol.metadata, partial(_in_full, own, forms))


def _joined_in_own(answer: JoinGroupResponse, own: TopicNames, forms: Forms) -> dict[str, frozenset[str]]:
    """What members have named in short."""
    in_short: dict[str, frozenset[str]] = {}
    for member in answer.members:
        short: set[str] = set()
        member.metadata = renamed_subscription(member.metadata, partial(_noted_in_own, own, forms, short))
        if short:
            in_short[member.member_id] = frozenset(short)
    return in_short


def _noted_in_own(own: TopicNames, forms: Forms, short: set[str], name: str) -> str:
    if "/" not in name:
        short.add(name)
    return _in_own(own, forms, name)


def _sync_in_full(
    call: Call, request: SyncGroupRequest, own: TopicNames, in_short: Mapping[str, Collection[str]]
) -> tuple[Call, SyncGroupRequest]:
    copy = copied(request, call.version)
    for one in copy.assignments:
        short = in_short.get(one.member_id, ())
        one.assignment = renamed_parts(one.assignment, partial(_in_full_unless, own, short))
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


def _in_full_unless(own: TopicNames, short: Collection[str], name: str) -> str:
    return name if name in short else _in_full(own, {}, name)


def _in_own(own: TopicNames, forms: Forms, name: str) -> str:
    """A long name as the client has it. A short one too, if the client has said another form of that."""
    try:
        full = own.parse(name).pulsar
    except InvalidTopicName:
        return name
    return forms.get(full) or (own.canonical(name) if "/" in name else name)


def _with_body(call: Call, request: Message) -> Call:
    frame = bytearray(call.frame[: call.body_at])
    request.write(call.version, frame)
    return call._replace(frame=memoryview(bytes(frame)))
