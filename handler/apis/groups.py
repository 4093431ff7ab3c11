"""What the handlers of group APIs share."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Call, Services
from handler.apis.promise import Promise
from handler.apis.topics import resolve
from handler.groups.coordinator import Coordinator
from handler.groups.shard import NotLeading, TopicPartition
from handler.topics.names import TopicName

T = TypeVar("T")


def ask(
    services: Services, question: Callable[[Coordinator, Callable[[T], None]], None], answer: Callable[[T], Answer],
    refuse: Callable[[ErrorCode], Answer],
) -> Answer | Promise[Answer | None]:  # fmt: skip
    """Ask the coordinator; its answer comes later, or it is not the coordinator."""
    promise: Promise[Answer | None] = Promise()
    try:
        question(services.groups.asked(), lambda told: promise.resolve(answer(told)))
    except NotLeading as refused:
        return refuse(refused.error)
    return promise


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


def place(asked: Asked, index: int) -> TopicPartition | None:
    return None if asked.name is None else (asked.name, index)
