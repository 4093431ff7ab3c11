"""Kafka's codes for Pulsar's errors."""

from __future__ import annotations

from typing import Final

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.pulsar.errors import NotPermitted, Refused, TopicMissing
from kafka_sidecar.wire.error_code import ErrorCode

# Clients send a batch again that was refused with one of these (RetriableException of Kafka's clients).
SENT_AGAIN: Final = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    )
)


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
            # This error is retriable and makes a client refresh its metadata. The topic is being unloaded, or its owner
            # broker is down.
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
