"""Errors between the sidecar and Pulsar, sorted by what a caller can do about them."""

from __future__ import annotations

from typing import Final

from kafka_sidecar.errors import SidecarError


class PulsarError(SidecarError):
    """Pulsar refused or failed."""


class Unavailable(PulsarError):
    """Look up again and try again: a lost connection, an unload, a broker that is not ready."""

    retriable = True


class Undescribed(Unavailable):
    """The topic exists, but Pulsar can't describe its log, or that of its first partition: it is being made, or was
    lost.
    """


class TopicMissing(PulsarError):
    """The topic does not exist (any more)."""


class NotPermitted(PulsarError):
    """Authentication or authorization failed."""


class Refused(PulsarError):
    """The broker says no for good: policy, size, a terminated topic."""


class Fenced(PulsarError):
    """Another producer has taken the topic exclusively."""


# PulsarApi.proto, enum ServerError.
CHECKSUM_ERROR: Final = 9
TOPIC_TERMINATED: Final = 15
NOT_ALLOWED: Final = 22

_KINDS: Final[dict[int, type[PulsarError]]] = {
    3: NotPermitted,  # AuthenticationError
    4: NotPermitted,  # AuthorizationError
    10: Refused,  # UnsupportedVersionError
    11: TopicMissing,  # TopicNotFound
    15: Refused,  # TopicTerminatedError
    17: Refused,  # InvalidTopicName
    18: Refused,  # IncompatibleSchema
    22: Refused,  # NotAllowedError
    25: Fenced,  # ProducerFenced
}


def from_code(code: int, message: str) -> PulsarError:
    """The exception for a ServerError code. Whatever is not known to be final is worth a retry."""
    # Pulsar 2.9 to 4.x report a missing topic in several ways: only the text distinguishes it from a transient fault.
    if (
        "TopicNotFound" in message
        or "Topic not found" in message
        or "does not exist" in message
        or ("not found" in message.lower() and "topic" in message.lower())
    ):
        return TopicMissing(message)
    return _KINDS.get(code, Unavailable)(message)
