"""The records of `__consumer_offsets` as Kafka encodes them (group-coordinator/…/common/message).

A key begins with its kind as an int16, a value with its version. Values are read in every version
(4 and later are flexible, KIP-915) and written in 3, as Kafka 4 writes them; an offset with a time
of its own to expire at is version 1, the only one that has it.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from handler.errors import ProtocolError

OFFSET_VALUE_VERSION: Final = 3
GROUP_VALUE_VERSION: Final = 3
FLEXIBLE_SINCE: Final = 4


class RecordUnreadable(ProtocolError):
    """Not a record that Kafka would write."""


class OffsetKey(NamedTuple):
    group: str
    topic: str
    partition: int


class GroupKey(NamedTuple):
    group: str


class OffsetValue(NamedTuple):
    offset: int
    leader_epoch: int  # −1 for none
    metadata: str
    committed_at: int
    expires_at: int  # −1: by the coordinator's retention


class MemberValue(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int
    session_timeout: int
    subscription: bytes
    assignment: bytes


class GroupValue(NamedTuple):
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_since: int  # −1 where the version has none
    members: tuple[MemberValue, ...]


Key = OffsetKey | GroupKey
Value = OffsetValue | GroupValue


class Record(NamedTuple):
    key: Key
    value: Value | None  # None deletes


# --- reading


class _Reader:
    """Kafka's primitive types, with compact lengths where the version is flexible."""

    __slots__ = ("_at", "_data", "flexible")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0
        self.flexible = False

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise RecordUnreadable("a record of __consumer_offsets is shorter than it says")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def number(self, layout: str) -> int:
        return int(struct.unpack(layout, self._take(struct.calcsize(layout)))[0])

    def varint(self) -> int:
        value = shift = 0
        while True:
            (byte,) = self._take(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 28:
                raise RecordUnreadable("a varint is too long")

    def nullable_text(self) -> str | None:
        size = self.varint() - 1 if self.flexible else self.number(">h")
        return None if size < 0 else self._take(size).decode()

    def text(self) -> str:
        return self.nullable_text() or ""

    def data(self) -> bytes:
        size = self.varint() - 1 if self.flexible else self.number(">i")
        return b"" if size < 0 else self._take(size)

    def count(self) -> int:
        size = self.varint() - 1 if self.flexible else self.number(">i")
        if size > len(self._data):
            raise RecordUnreadable("an array is longer than its record")
        return max(size, 0)

    def tags(self) -> None:
        if self.flexible:
            for _ in range(self.varint()):
                self.varint()
                self._take(self.varint())


def read_key(data: bytes) -> Key | None:
    """The key, or None for a kind that is not one of these."""
    reader = _Reader(data)
    match reader.number(">h"):
        case 0 | 1:
            return OffsetKey(reader.text(), reader.text(), reader.number(">i"))
        case 2:
            return GroupKey(reader.text())
        case _:
            return None


def read_record(key_data: bytes, value_data: bytes | None) -> Record | None:
    """A record, None for a kind of key that is not known; RecordUnreadable for bytes that make no sense."""
    try:
        key = read_key(key_data)
        if key is None or value_data is None:
            return None if key is None else Record(key, None)
        return Record(key, _offset_value(value_data) if isinstance(key, OffsetKey) else _group_value(value_data))
    except UnicodeDecodeError as error:
        raise RecordUnreadable(f"a record of __consumer_offsets is not text: {error}") from error


def _offset_value(data: bytes) -> OffsetValue:
    reader = _Reader(data)
    version = reader.number(">h")
    reader.flexible = version >= FLEXIBLE_SINCE
    offset = reader.number(">q")
    leader_epoch = reader.number(">i") if version >= 3 else -1
    metadata = reader.text()
    committed_at = reader.number(">q")
    expires_at = reader.number(">q") if version == 1 else -1
    return OffsetValue(offset, leader_epoch, metadata, committed_at, expires_at)


def _group_value(data: bytes) -> GroupValue:
    reader = _Reader(data)
    version = reader.number(">h")
    reader.flexible = version >= FLEXIBLE_SINCE
    protocol_type = reader.text()
    generation = reader.number(">i")
    protocol, leader = reader.nullable_text(), reader.nullable_text()
    state_since = reader.number(">q") if version >= 2 else -1
    members = tuple(_member_value(reader, version) for _ in range(reader.count()))
    return GroupValue(protocol_type, generation, protocol, leader, state_since, members)


def _member_value(reader: _Reader, version: int) -> MemberValue:
    member_id = reader.text()
    instance_id = reader.nullable_text() if version >= 3 else None
    client_id, client_host = reader.text(), reader.text()
    rebalance_timeout = reader.number(">i") if version >= 1 else -1
    session_timeout = reader.number(">i")
    subscription, assignment = reader.data(), reader.data()
    reader.tags()
    if rebalance_timeout < 0:
        rebalance_timeout = session_timeout  # as Kafka takes version 0
    return MemberValue(member_id, instance_id, client_id, client_host, rebalance_timeout, session_timeout, subscription, assignment)


# --- writing


def _text(value: str | None) -> bytes:
    if value is None:
        return b"\xff\xff"
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def _data(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def write_key(key: Key) -> bytes:
    if isinstance(key, OffsetKey):
        return struct.pack(">h", 1) + _text(key.group) + _text(key.topic) + struct.pack(">i", key.partition)
    return struct.pack(">h", 2) + _text(key.group)


def write_value(value: Value) -> bytes:
    if isinstance(value, OffsetValue):
        if value.expires_at >= 0:
            return struct.pack(">hq", 1, value.offset) + _text(value.metadata) + struct.pack(">qq", value.committed_at, value.expires_at)
        head = struct.pack(">hqi", OFFSET_VALUE_VERSION, value.offset, value.leader_epoch)
        return head + _text(value.metadata) + struct.pack(">q", value.committed_at)
    out = struct.pack(">h", GROUP_VALUE_VERSION) + _text(value.protocol_type) + struct.pack(">i", value.generation)
    out += _text(value.protocol) + _text(value.leader) + struct.pack(">qi", value.state_since, len(value.members))
    return out + b"".join(map(_write_member, value.members))


def _write_member(member: MemberValue) -> bytes:
    return (
        _text(member.member_id) + _text(member.instance_id) + _text(member.client_id) + _text(member.client_host)
        + struct.pack(">ii", member.rebalance_timeout, member.session_timeout) + _data(member.subscription) + _data(member.assignment)
    )  # fmt: skip


def partition_of(group: str, partitions: int) -> int:
    """The partition of a group: Java's hash of its id, modulo the count and never negative.

    As in Kafka-on-Pulsar (`MathUtils.signSafeMod`), whose topics are taken over. Kafka itself takes the
    absolute value of the hash; clients never compute it.
    """
    data = group.encode("utf-16-be", "surrogatepass")
    result = 0
    for (unit,) in struct.iter_unpack(">H", data):
        result = (31 * result + unit) & 0xFFFFFFFF
    return (result - 2**32 if result >= 2**31 else result) % partitions


def subscribed_topics(subscription: bytes) -> list[str]:
    """The topics in a member's metadata (ConsumerProtocolSubscription, of which version 0 is the beginning of all)."""
    reader = _Reader(subscription)
    reader.number(">h")
    try:
        return [reader.text() for _ in range(reader.count())]
    except UnicodeDecodeError as error:
        raise RecordUnreadable(f"a subscription is not text: {error}") from error
