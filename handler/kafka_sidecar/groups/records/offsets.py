"""Committed offsets: key kinds 0 and 1.

Values are read in every version (4 and later are flexible, KIP-915). They are written as Kafka 4.2 writes
them: version 4, which has the topic's id as a tagged field, and version 1 for an offset with a time of its
own to expire at, for no other has that. Without an id it is version 3, which every Kafka reads.
"""

from __future__ import annotations

import struct
import uuid
from functools import lru_cache
from typing import Final, NamedTuple

from kafka_sidecar.wire.primitives import compact_text, tagged, text, versioned

VERSION: Final = 3
VERSION_WITH_EXPIRY: Final = 1
VERSION_WITH_TOPIC_ID: Final = 4
FLEXIBLE_SINCE: Final = 4
TOPIC_ID_TAG: Final = 0
# Cached topic ids: as many topics as one partition of `__consumer_offsets` is likely to have offsets of.
REMEMBERED_IDS: Final = 10_000


class OffsetCommitKey(NamedTuple):
    group: str
    topic: str
    partition: int


class OffsetCommitValue(NamedTuple):
    offset: int
    leader_epoch: int  # −1: no leader epoch
    metadata: str
    committed_at: int
    expires_at: int  # in milliseconds; −1: offsets.retention.minutes of the coordinator applies
    topic_id: uuid.UUID | None = None  # None if the topic id was unknown when the offset was committed

    def counts_for(self, topic_id: uuid.UUID) -> bool:
        """Whether this was committed of the topic with this id, and not of another that had its name."""
        return self.topic_id is None or self.topic_id == topic_id


def read_offset(data: bytes) -> OffsetCommitValue:
    version, reader = versioned(data, FLEXIBLE_SINCE)
    offset = reader.int64()
    leader_epoch = reader.int32() if version >= 3 else -1
    metadata = reader.string()
    committed_at = reader.int64()
    expires_at = reader.int64() if version == 1 else -1
    topic_id = None
    for tag, content in reader.tagged_fields():
        if tag == TOPIC_ID_TAG:
            topic_id = _topic_id(content.rest())
    return OffsetCommitValue(offset, leader_epoch, metadata, committed_at, expires_at, topic_id)


@lru_cache(maxsize=REMEMBERED_IDS)
def _topic_id(data: bytes) -> uuid.UUID | None:
    """One object for each topic, whose offsets may be many."""
    return uuid.UUID(bytes=data) if len(data) == 16 and any(data) else None


def write_offset(value: OffsetCommitValue) -> bytes:
    if value.expires_at >= 0:
        head = struct.pack(">hq", VERSION_WITH_EXPIRY, value.offset)
        return head + text(value.metadata) + struct.pack(">qq", value.committed_at, value.expires_at)
    if value.topic_id is not None:
        head = struct.pack(">hqi", VERSION_WITH_TOPIC_ID, value.offset, value.leader_epoch) + compact_text(
            value.metadata
        )
        return head + struct.pack(">q", value.committed_at) + tagged(TOPIC_ID_TAG, value.topic_id.bytes)
    return (
        struct.pack(">hqi", VERSION, value.offset, value.leader_epoch)
        + text(value.metadata)
        + struct.pack(">q", value.committed_at)
    )
