"""Which committed offsets have outlived their group (offsets.retention.minutes, KIP-211)."""

from __future__ import annotations

from kafka_sidecar.groups.effects import Group
from kafka_sidecar.groups.shard import Offsets, TopicPartition


def expired(
    group: Group, subscribed: frozenset[str] | None, offsets: Offsets, now: int, retention: int
) -> list[TopicPartition]:
    """The offsets that may go. `subscribed` are the topics of the group's members, None if they do not say.
    `now` and `retention` are milliseconds.
    """
    since = group.expires_since(subscribed)
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
