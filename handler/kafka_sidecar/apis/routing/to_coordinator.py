"""Requests about one group or transactional id: handled here, or by the sidecar that coordinates it.

Clients get the coordinator's own address where they can reach it. Else, and while they have not
heard of a new one, a sidecar passes their requests on as they came, and the answers back as they are.

A coordinator that is still loading refuses most requests, as Kafka's does, and clients ask again. Those that keep their
order wait, as long as a question may take: librdkafka sends an OffsetCommit three times within half a second, then its
error reaches the application.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Awaitable, Callable, Sequence
from functools import partial, wraps
from typing import Any, Final, NamedTuple, TypeVar

from kafka_sidecar.apis.api import Call, Response, Services
from kafka_sidecar.apis.common.late import LATE_AFTER_SECONDS
from kafka_sidecar.apis.common.topics import learn
from kafka_sidecar.apis.routing.in_full import exchange
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.coordination.runtime import CoordinatorRuntime
from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.fleet.peers import PeerUnavailable
from kafka_sidecar.loop.waiting import in_a_thread
from kafka_sidecar.model.sidecar import SidecarInfo
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.topics.names import TopicName
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.headers import response_header
from kafka_sidecar.wire.message import Message
from kafka_sidecar.wire.messages.join_group import JoinGroupRequest
from kafka_sidecar.wire.messages.sync_group import SyncGroupRequest

log = logging.getLogger(__name__)
limited = RateLimitedLog(log)


# The coordinator answers these when all members of the group have sent theirs.
WAIT_FOR_MEMBERS: Final = (JoinGroupRequest, SyncGroupRequest)

G = TypeVar("G", bound=Message)  # a request about one key
M = TypeVar("M", bound=Message)


class Coordinated(NamedTuple):
    """What coordinates the keys of a kind, and where they are in requests."""

    runtime: Callable[[Services], CoordinatorRuntime[Any]]
    key_of: Callable[[Any], str]


GROUPS: Final = Coordinated(lambda services: services.groups, lambda request: request.group_id)
TRANSACTIONS: Final = Coordinated(
    lambda services: services.transactions, lambda request: request.transactional_id or ""
)

Handler = Callable[[Services, Call, G], Awaitable[Response]]
Refuse = Callable[[Call, G, ErrorCode], Response]
UnknownTopics = Callable[[Services, G], Sequence[TopicName | uuid.UUID]]


def to_coordinator(handle: Handler[G], refuse: Refuse[G], kind: Coordinated = GROUPS) -> Handler[G]:
    """A handler of requests about one key, wherever that is coordinated. It may raise CoordinatorError."""

    async def routed(services: Services, call: Call, request: G) -> Response:
        key = kind.key_of(request)
        if not _is_led_here(services, call, kind, key):
            return await _find_and_forward(services, call, request, handle, kind)
        return await handle(services, call, request)

    return _with_error_response(handle, routed, refuse, kind)


def _no_topics(_: Services, __: object) -> Sequence[TopicName | uuid.UUID]:
    return ()


def to_coordinator_in_turn(handle: Handler[G], refuse: Refuse[G], unknown: UnknownTopics[G] = _no_topics) -> Handler[G]:
    """The same for requests that must keep the order in which one client sent them, whichever way they take.

    `unknown`: what has to be looked up of topics before the coordinator handles the request. A turn ends when the
    coordinator has loaded and the topics are looked up: what `handle` does before its first pause keeps the order too,
    and nothing that it does after that.
    """

    async def prepare(services: Services, call: Call, request: G) -> None:
        await services.groups.leaders.loaded(GROUPS.key_of(request), call.loaded_by)
        await learn(services, unknown(services, request))

    async def when_prepared(services: Services, call: Call, request: G) -> Response:
        await prepare(services, call, request)
        return await handle(services, call, request)

    async def routed(services: Services, call: Call, request: G) -> Response:
        key = GROUPS.key_of(request)
        subject = call.client, key
        if not _is_led_here(services, call, GROUPS, key):
            async with services.in_turn.turn(subject):
                return await _find_and_forward(services, call, request, when_prepared, GROUPS)
        if services.in_turn.waiting(subject) or services.groups.leaders.is_loading(key) or unknown(services, request):
            async with services.in_turn.turn(subject):
                await prepare(services, call, request)
        return await handle(services, call, request)

    return _with_error_response(handle, routed, refuse, GROUPS)


def _with_error_response(handle: Handler[G], routed: Handler[G], refuse: Refuse[G], kind: Coordinated) -> Handler[G]:
    """Turn CoordinatorError, and any exception of the sidecar, into an error response. The client's connection stays
    open.
    """

    @wraps(handle)
    async def with_error_response(services: Services, call: Call, request: G) -> Response:
        kind.runtime(services).ensure_candidate()
        try:
            return await routed(services, call, request)
        except CoordinatorError as refused:
            return refuse(call, request, refused.error)
        except Exception:
            metrics.INTERNAL_ERRORS.labels("groups").inc()
            limited.exception("a request about %s failed", kind.key_of(request))
            return refuse(call, request, ErrorCode.UNKNOWN_SERVER_ERROR)

    return with_error_response


def _is_led_here(services: Services, call: Call, kind: Coordinated, key: str) -> bool:
    return call.forwarded or not key or kind.runtime(services).leaders.is_here(key)


async def _find_and_forward(
    services: Services, call: Call, request: G, handle: Handler[G], kind: Coordinated
) -> Response:
    """Forward the request to its coordinator. If this sidecar was elected meanwhile, call `handle`."""
    leader = await kind.runtime(services).leaders.leader(kind.key_of(request))
    if leader is None:
        return await handle(services, call, request)
    passed_on = pass_on(services, call, leader, request, bytes(call.frame))
    return await (services.waits_elsewhere.wait(passed_on) if isinstance(request, WAIT_FOR_MEMBERS) else passed_on)


async def pass_on(services: Services, call: Call, leader: SidecarInfo, request: Message, frame: bytes) -> bytes:
    """The answer of another sidecar to a request, which `frame` has too; CoordinatorError where it can't be asked."""
    own = services.names
    theirs = own.of(leader.namespace)
    in_full = None if theirs is own else await in_a_thread(partial(exchange, request, call.version, own, theirs))
    if in_full is None:
        return await forward(services, call, leader, frame)
    answer = await forward(services, call, leader, bytes(call.frame[: call.body_at]) + in_full.body)
    try:
        return await in_a_thread(partial(in_full.answer_in_own, answer))
    except ProtocolError as error:
        log.warning("the answer of sidecar %s can't be read: %s", leader.name, error)
        raise CoordinatorError(ErrorCode.COORDINATOR_NOT_AVAILABLE) from error


def read_answer(answer: Response, response: type[M], version: int) -> M:
    """An answer that another sidecar has given is bytes yet. CoordinatorError where these can't be read."""
    if isinstance(answer, response):
        return answer
    assert isinstance(answer, bytes)
    skip = len(response_header(response, version, 0))
    try:  # of a fellow sidecar as many elements are taken as it sends
        return response.read(version, memoryview(answer)[skip:], max_elements=len(answer))
    except ProtocolError as error:
        log.warning("the answer of another sidecar can't be read: %s", error)
        raise CoordinatorError(ErrorCode.COORDINATOR_NOT_AVAILABLE) from error


async def forward(services: Services, call: Call, leader: SidecarInfo, frame: bytes) -> bytes:
    """The answer of another sidecar; CoordinatorError where it can't be asked."""
    if not leader.control:
        log.warning(
            "what a request is about is coordinated by sidecar %s, which tells no address for other sidecars",
            leader.name,
        )
        raise CoordinatorError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    try:
        answer = await services.peers.forward(
            leader.control, leader.name, frame, call.client.peer, _load_wait_ms(services, call)
        )
        metrics.FORWARDED.labels("answered").inc()
        return answer
    except PeerUnavailable as error:
        metrics.FORWARDED.labels("failed").inc()
        log.info("a request could not be passed on: %s", error)
        raise CoordinatorError(ErrorCode.NOT_COORDINATOR) from error


def _load_wait_ms(services: Services, call: Call) -> int:
    """What is left of the time that a request may wait, here and there together."""
    left = LATE_AFTER_SECONDS if call.loaded_by is None else call.loaded_by - services.clock()
    return max(0, round(left * 1000))


def client_host(call: Call) -> str:
    """As Kafka writes it, an address behind a slash."""
    return "/" + call.client.peer.rpartition(":")[0]
