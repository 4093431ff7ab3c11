"""Requests to the coordinator of a sidecar that has another `kafka.namespace`: a short name means another topic there.

So what is passed on names topics in full, as every release understands it, and the answer gets the names that the
client knows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

from kafka_sidecar.topics.names import InvalidTopicName, TopicNames
from kafka_sidecar.wire.headers import response_header
from kafka_sidecar.wire.message import Message, Struct
from kafka_sidecar.wire.messages import (
    add_partitions_to_txn,
    consumer_group_describe,
    consumer_group_heartbeat,
    describe_transactions,
    offset_commit,
    offset_delete,
    offset_fetch,
    txn_offset_commit,
)

# The answers in which coordinators name topics, or repeat the names of the request.
ANSWERS: Final[Mapping[type[Message], type[Message]]] = {
    add_partitions_to_txn.AddPartitionsToTxnRequest: add_partitions_to_txn.AddPartitionsToTxnResponse,
    consumer_group_describe.ConsumerGroupDescribeRequest: consumer_group_describe.ConsumerGroupDescribeResponse,
    consumer_group_heartbeat.ConsumerGroupHeartbeatRequest: consumer_group_heartbeat.ConsumerGroupHeartbeatResponse,
    describe_transactions.DescribeTransactionsRequest: describe_transactions.DescribeTransactionsResponse,
    offset_commit.OffsetCommitRequest: offset_commit.OffsetCommitResponse,
    offset_delete.OffsetDeleteRequest: offset_delete.OffsetDeleteResponse,
    offset_fetch.OffsetFetchRequest: offset_fetch.OffsetFetchResponse,
    txn_offset_commit.TxnOffsetCommitRequest: txn_offset_commit.TxnOffsetCommitResponse,
}
# Where names of topics are.
_NAMES: Final[Mapping[type[Struct], str]] = {
    add_partitions_to_txn.AddPartitionsToTxnTopic: "name",
    add_partitions_to_txn.AddPartitionsToTxnTopicResult: "name",
    consumer_group_describe.Member: "subscribed_topic_names",
    consumer_group_describe.TopicPartitions: "topic_name",
    consumer_group_heartbeat.ConsumerGroupHeartbeatRequest: "subscribed_topic_names",
    describe_transactions.TopicData: "topic",
    offset_commit.OffsetCommitRequestTopic: "name",
    offset_commit.OffsetCommitResponseTopic: "name",
    offset_delete.OffsetDeleteRequestTopic: "name",
    offset_delete.OffsetDeleteResponseTopic: "name",
    offset_fetch.OffsetFetchRequestTopic: "name",
    offset_fetch.OffsetFetchRequestTopics: "name",
    offset_fetch.OffsetFetchResponseTopic: "name",
    offset_fetch.OffsetFetchResponseTopics: "name",
    txn_offset_commit.TxnOffsetCommitRequestTopic: "name",
    txn_offset_commit.TxnOffsetCommitResponseTopic: "name",
}
# Where regular expressions for such names are.
_EXPRESSIONS: Final[Mapping[type[Struct], str]] = {
    consumer_group_describe.Member: "subscribed_topic_regex",
    consumer_group_heartbeat.ConsumerGroupHeartbeatRequest: "subscribed_topic_regex",
}


R = TypeVar("R", bound=Message)


# Names are asked for and answered one by one: a refused group has none in the answer.
_SUBJECTS: Final[Mapping[type[Struct], str]] = {
    offset_fetch.OffsetFetchRequestGroup: "group_id",
    offset_fetch.OffsetFetchResponseGroup: "group_id",
}


class _Renaming(NamedTuple):
    name: Callable[[str], str]
    expression: Callable[[str], str]
    begin: Callable[[str], None]  # a subject


class Exchange(NamedTuple):
    """A request as the other sidecar is to have it, and how its answer comes back."""

    body: bytes
    answer_in_own: Callable[[bytes], bytes]


def exchange(request: Message, version: int, own: TopicNames, theirs: TopicNames) -> Exchange | None:
    """None where nothing in the request, nor in its answer, is the name of a topic."""
    response = ANSWERS.get(type(request))
    if response is None:
        return None
    asked: dict[
        tuple[str, str], list[str]
    ] = {}  # by subject and the name that is passed on: several may ask for a topic
    subject = ""
    said: dict[str, str] = {}  # what the other may repeat in a sentence

    def begin(next_subject: str) -> None:
        nonlocal subject
        subject = next_subject

    def in_full(name: str) -> str:
        try:
            full = own.parse(name).pulsar
        except InvalidTopicName:
            return name
        asked.setdefault((subject, full), []).append(name)
        return full

    def expression_in_full(expression: str) -> str:
        full = own.translated_expression(expression, theirs)
        said[full] = expression
        return full

    def in_own(name: str) -> str:
        names = asked.get((subject, name))
        if names is None:
            return theirs.translated(name, own)
        return names.pop(0) if len(names) > 1 else names[0]

    def answer_in_own(answer: bytes) -> bytes:
        head = len(response_header(response, version, 0))
        told: Any = response.read(version, memoryview(answer)[head:], max_elements=len(answer))
        _rename(told, _Renaming(in_own, lambda expression: theirs.translated_expression(expression, own), begin))
        if isinstance(told, consumer_group_heartbeat.ConsumerGroupHeartbeatResponse) and told.error_message:
            for full, expression in said.items():
                told.error_message = told.error_message.replace(full, expression)
        return answer[:head] + _written(told, version)

    copy = copied(request, version)
    _rename(copy, _Renaming(in_full, expression_in_full, begin))
    return Exchange(_written(copy, version), answer_in_own)


def copied(request: R, version: int) -> R:
    """Another one with the same words."""
    written = _written(request, version)
    return type(request).read(version, memoryview(written), max_elements=len(written))


def _written(message: Message, version: int) -> bytes:
    body = bytearray()
    message.write(version, body)
    return bytes(body)


def _rename(part: Any, to: _Renaming) -> None:
    """Give the topics in a message, or in a part of one, other names."""
    subject = _SUBJECTS.get(type(part))
    if subject is not None:
        to.begin(getattr(part, subject))
    for places, rename in ((_NAMES, to.name), (_EXPRESSIONS, to.expression)):
        where = places.get(type(part))
        if where is not None:
            setattr(part, where, _renamed(getattr(part, where), rename))
    for _, value in part.fields():
        if isinstance(value, Struct):
            _rename(value, to)
        elif isinstance(value, list | tuple):
            for one in value:
                if isinstance(one, Struct):
                    _rename(one, to)


def _renamed(value: Any, rename: Callable[[str], str]) -> Any:
    if isinstance(value, list | tuple):
        return [rename(one) for one in value]
    return rename(value) if value else value  # topics that are asked for by their ids have no name
