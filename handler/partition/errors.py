"""What Pulsar's troubles are called in Kafka."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from handler.errors import SidecarError
from handler.pulsar.errors import NotPermitted, Refused, TopicMissing


def error_code(error: SidecarError) -> ErrorCode:
    match error:
        case TopicMissing():
            return ErrorCode.unknown_topic_or_partition
        case NotPermitted():
            return ErrorCode.topic_authorization_failed
        case Refused():
            return ErrorCode.policy_violation
        case _:
            # Retriable, and makes a client refresh its metadata: the owner is moving or away.
            return ErrorCode.not_leader_or_follower
