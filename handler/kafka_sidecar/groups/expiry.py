"""Which committed offsets have outlived their group (offsets.retention.minutes, KIP-211)."""

from __future__ import annotations

from collections.abc import Callable

from kafka_sidecar.groups.classic.members import State
from kafka_sidecar.groups.consumer.machine import ConsumerGroup
from kafka_sidecar.groups.effects import Group
from kafka_sidecar.groups.records import OffsetCommitValue
from kafka_sidecar.groups.shard import Offsets, TopicPartition
from kafka_sidecar.groups.vocabulary import CONSUMER_PROTOCOL


def expired(group: Group, subscribed: frozenset[str] | None, offsets: Offsets, now: int, retention: int) -> list[TopicPartition]:
    """The offsets that may go. `subscribed` are the topics of the group's members, None if they do not say.
    `now` and `retention` are milliseconds.
    """
    since = _since(group, subscribed)
    if since is None:
        return []
    gone = []
    for partition, value in offsets.items():
        if subscribed is not None and partition[0] in subscribed:
            continue
        until = value.expires_at if value.expires_at >= 0 else since(value) + retention
        if until <= now:
            gone.append(partition)
    return gone


def _since(group: Group, subscribed: frozenset[str] | None) -> Callable[[OffsetCommitValue], int] | None:
    """From when the retention of an offset counts; None while none of the group's may expire."""
    if isinstance(group, ConsumerGroup):
        return lambda value: value.committed_at
    if group.protocol_type is None:  # never had members: it commits on its own
        return lambda value: value.committed_at
    if group.state is State.EMPTY:
        state_since = group.state_since
        return lambda value: state_since if state_since >= 0 else value.committed_at
    if group.protocol_type == CONSUMER_PROTOCOL and group.state is State.STABLE and subscribed is not None:
        return lambda value: value.committed_at
    return None
