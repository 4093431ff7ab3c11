"""Committed offsets: key kinds 0 and 1.

Values are read in every version (4 and later are flexible, KIP-915) and written in 3, as Kafka 4 writes
them; an offset with a time of its own to expire at is version 1, the only one that has it.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from handler.groups.records.primitives import Reader, text

VERSION: Final = 3
VERSION_WITH_EXPIRY: Final = 1
FLEXIBLE_SINCE: Final = 4


class OffsetKey(NamedTuple):
    group: str
    topic: str
    partition: int


class OffsetValue(NamedTuple):
    offset: int
    leader_epoch: int  # −1 for none
    metadata: str
    committed_at: int
    expires_at: int  # −1: by the coordinator's retention


def read_offset(data: bytes) -> OffsetValue:
    reader = Reader(data)
    version = reader.number(">h")
    reader.flexible = version >= FLEXIBLE_SINCE
    offset = reader.number(">q")
    leader_epoch = reader.number(">i") if version >= 3 else -1
    metadata = reader.text()
    committed_at = reader.number(">q")
    expires_at = reader.number(">q") if version == 1 else -1
    return OffsetValue(offset, leader_epoch, metadata, committed_at, expires_at)


def write_offset(value: OffsetValue) -> bytes:
    if value.expires_at >= 0:
        head = struct.pack(">hq", VERSION_WITH_EXPIRY, value.offset)
        return head + text(value.metadata) + struct.pack(">qq", value.committed_at, value.expires_at)
    return struct.pack(">hqi", VERSION, value.offset, value.leader_epoch) + text(value.metadata) + struct.pack(">q", value.committed_at)
