"""A classic group: key kind 2. Read in every version, written in 3."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from kafka_sidecar.wire.buffers import Reader
from kafka_sidecar.wire.primitives import array, data, text, versioned

VERSION: Final = 3
FLEXIBLE_SINCE: Final = 4


class GroupMetadataKey(NamedTuple):
    group: str


class MemberValue(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int
    session_timeout: int
    subscription: bytes
    assignment: bytes


class GroupMetadataValue(NamedTuple):
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_since: int  # currentStateTimestamp in milliseconds; −1 in record versions before 2
    members: tuple[MemberValue, ...]


def read_group(value: bytes) -> GroupMetadataValue:
    version, reader = versioned(value, FLEXIBLE_SINCE)
    protocol_type = reader.string()
    generation = reader.int32()
    protocol, leader = reader.nullable_string(), reader.nullable_string()
    state_since = reader.int64() if version >= 2 else -1
    members = tuple(reader.array(_member_value, version))
    return GroupMetadataValue(protocol_type, generation, protocol, leader, state_since, members)


def _member_value(reader: Reader, version: int) -> MemberValue:
    member_id = reader.string()
    instance_id = reader.nullable_string() if version >= 3 else None
    client_id, client_host = reader.string(), reader.string()
    rebalance_timeout = reader.int32() if version >= 1 else -1
    session_timeout = reader.int32()
    subscription, assignment = reader.bytes_(), reader.bytes_()
    reader.skip_tagged_fields()
    if rebalance_timeout < 0:
        # As in Kafka, record version 0 has no rebalance time-out and uses the session time-out.
        rebalance_timeout = session_timeout
    return MemberValue(
        member_id, instance_id, client_id, client_host, rebalance_timeout, session_timeout, subscription, assignment
    )


def write_group(value: GroupMetadataValue) -> bytes:
    head = struct.pack(">h", VERSION) + text(value.protocol_type) + struct.pack(">i", value.generation)
    head += text(value.protocol) + text(value.leader) + struct.pack(">q", value.state_since)
    return head + array(map(_write_member, value.members))


def _write_member(member: MemberValue) -> bytes:
    return (
        text(member.member_id)
        + text(member.instance_id)
        + text(member.client_id)
        + text(member.client_host)
        + struct.pack(">ii", member.rebalance_timeout, member.session_timeout)
        + data(member.subscription)
        + data(member.assignment)
    )
