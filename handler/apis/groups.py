"""What the handlers of group APIs share: the coordinator's answer, here or from the sidecar that leads the group.

Clients are told the coordinator's own address where they can reach it. Else, and while they have not
heard of a new one, a sidecar passes their requests on as they came, and the answers back as they are.
"""

from __future__ import annotations

import asyncio
import datetime
import logging
import uuid
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import wraps
from typing import Any, NamedTuple, TypeVar

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Call, Handler, Result, Services, Told
from handler.apis.promise import Promise
from handler.apis.topics import learn, resolve
from handler.coordination.directory import Leader
from handler.coordination.errors import NotLeading
from handler.fleet.peers import PeerUnavailable
from handler.groups.coordinator import Coordinator
from handler.groups.shard import TopicPartition
from handler.telemetry import metrics
from handler.topics.names import TopicName

log = logging.getLogger(__name__)

T = TypeVar("T")
Refuse = Callable[[Call, ErrorCode], Answer]


# --- here


def ask(
    services: Services, question: Callable[[Coordinator, Callable[[T], None]], None], answer: Callable[[T], Answer],
    refuse: Callable[[ErrorCode], Answer],
) -> Answer | Promise[Told]:  # fmt: skip
    """Ask the coordinator; its answer comes later, or it is not the coordinator."""
    promise: Promise[Told] = Promise()
    try:
        question(services.groups.join_elections(), lambda told: promise.resolve(answer(told)))
    except NotLeading as refused:
        return refuse(refused.error)
    return promise


async def settled(result: Result) -> Told:
    """The answer of a handler, whichever way it comes."""
    if isinstance(result, Promise):
        told: asyncio.Future[Told] = asyncio.get_running_loop().create_future()
        result.then(lambda answer: None if told.done() else told.set_result(answer))
        return await told
    return await result if isinstance(result, Awaitable) else result


# --- elsewhere


def coordinated(handle: Handler, refuse: Refuse) -> Handler:
    """A handler of requests about one group, wherever that group is coordinated."""

    @wraps(handle)
    def routed(services: Services, call: Call) -> Result:
        group_id = call.request.group_id
        if call.forwarded or not group_id or services.groups.leads(group_id):
            return handle(services, call)
        return _elsewhere(services, call, handle, refuse)

    return routed


Unknown = Callable[[Services, Call], Sequence[TopicName | uuid.UUID]]


def _nothing(_: Services, __: Call) -> Sequence[TopicName | uuid.UUID]:
    return ()


def coordinated_in_order(handle: Handler, refuse: Refuse, unknown: Unknown = _nothing) -> Handler:
    """The same for requests of which one client's do not overtake each other, whichever way they take.

    `unknown`: what has to be looked up of topics before the coordinator handles the request.
    """

    async def informed(services: Services, call: Call) -> Told:
        await learn(services, unknown(services, call))
        return await settled(handle(services, call))

    @wraps(handle)
    def routed(services: Services, call: Call) -> Result:
        group_id, order = call.request.group_id, services.order
        here = call.forwarded or not group_id or services.groups.leads(group_id)
        if not here:
            return order.run(call.client, group_id, lambda: _elsewhere(services, call, informed, refuse))
        if order.is_waiting(call.client, group_id) or unknown(services, call):
            return order.run(call.client, group_id, lambda: informed(services, call))
        return handle(services, call)

    return routed


async def _elsewhere(services: Services, call: Call, handle: Handler, refuse: Refuse) -> Told:
    try:
        leader = await services.groups.leader(call.request.group_id)
        if leader is None:
            return await settled(handle(services, call))
        return await forward(services, call, leader, bytes(call.frame))
    except NotLeading as refused:
        return refuse(call, refused.error)


async def forward(services: Services, call: Call, leader: Leader, frame: bytes) -> bytes:
    """The answer of another sidecar; NotLeading where it can't be asked."""
    if not leader.control:
        log.warning("a group is coordinated by sidecar %s, which tells no address for other sidecars", leader.name)
        raise NotLeading(ErrorCode.coordinator_not_available)
    try:
        answer = await services.peers.forward(leader.control, leader.name, frame, call.client.peer)
        metrics.FORWARDED.labels("answered").inc()
        return answer
    except PeerUnavailable as error:
        metrics.FORWARDED.labels("failed").inc()
        log.info("a request could not be passed on: %s", error)
        raise NotLeading(ErrorCode.not_coordinator) from error


# --- words


def milliseconds(value: datetime.timedelta | int) -> int:
    return value if isinstance(value, int) else round(value.total_seconds() * 1000)


def client_host(call: Call) -> str:
    """As Kafka writes it, an address behind a slash."""
    return "/" + call.client.peer.rpartition(":")[0]


class Asked(NamedTuple):
    """A topic of a request about offsets."""

    identity: dict[str, Any]  # name or id, as it goes back to the client
    name: str | None  # under which its offsets are kept, None where there is no such topic
    topic: TopicName | None
    error: ErrorCode  # of all its partitions


def asked_topic(services: Services, topic: Any) -> Asked:
    by_id = getattr(topic, "topic_id", None)
    identity = {"name": getattr(topic, "name", ""), "topic_id": by_id}
    found = resolve(services, topic)
    if isinstance(found, TopicName):
        return Asked(identity, services.catalog.names.kafka(found), found, ErrorCode.none)
    error = ErrorCode.unknown_topic_id if by_id is not None else ErrorCode.unknown_topic_or_partition
    return Asked(identity, None, None, error)


def pulsar_partitions(services: Services, places: Iterable[TopicPartition]) -> list[str]:
    """Pulsar's names of partitions whose offsets are kept."""
    return [services.catalog.names.parse(topic).partition(index) for topic, index in places]


def place(asked: Asked, index: int) -> TopicPartition | None:
    return None if asked.name is None else (asked.name, index)
