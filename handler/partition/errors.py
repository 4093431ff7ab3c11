"""Kafka's codes for Pulsar's errors."""

from __future__ import annotations

from handler.errors import SidecarError
from handler.pulsar.errors import NotPermitted, Refused, TopicMissing
from handler.wire.error_code import ErrorCode


class PartitionEnded(SidecarError):
    """The partition serves no more, and what is being read is of no use to it."""


def error_code(error: SidecarError) -> ErrorCode:
    match error:
        case TopicMissing():
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        case NotPermitted():
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        case Refused():
            return ErrorCode.POLICY_VIOLATION
        case _:
            # Retriable, and makes a client refresh its metadata: the owner is moving or away.
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
