"""Pulsar's own messages: an entry holds one, or a batch of them.

A batch is, for each message, [size u32][SingleMessageMetadata][payload], all of it compressed together.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from kafka_sidecar.errors import EntryUnreadable
from kafka_sidecar.pulsar.codecs import decompress
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata, SingleMessageMetadata

# Parsing 250,000 batched messages takes 0.5 s without a pause. A small compressed entry can expand a thousandfold;
# Pulsar's producers put at most 1,000 messages in a batch by default (batchingMaxMessages).
MAX_MESSAGES: Final = 250_000
# Limits of message properties. A property of six bytes becomes a Python object of many times that size, and protobuf
# holds the GIL while it parses a message.
MAX_PROPERTIES: Final = 1_000_000
MAX_PROPERTIES_OF_ONE: Final = 100_000
MAX_FIELDS: Final = MAX_PROPERTIES_OF_ONE + 1_000  # properties and all other metadata fields of one message
_PROPERTIES: Final = SingleMessageMetadata.PROPERTIES_FIELD_NUMBER
LARGE_SINGLE: Final = 512 * 1024
_U32: Final = struct.Struct(">I")

Properties = list[tuple[str, bytes]]


class Message(NamedTuple):
    number: int  # batch index of the message in its entry
    timestamp: int  # milliseconds: event time if set, else publish time
    key: bytes | None
    value: bytes | None
    properties: Properties


def read_messages(metadata: MessageMetadata, payload: memoryview) -> list[Message]:
    """The messages of an entry, without those that compaction took out."""
    data = decompress(metadata.compression, payload, metadata.uncompressed_size)
    if not metadata.HasField("num_messages_in_batch"):
        value = None if metadata.null_value else data
        return [
            Message(0, metadata.event_time or metadata.publish_time, key_of(metadata), value, properties_of(metadata))
        ]
    messages = []
    for number, single, value in split_batch(data, metadata.num_messages_in_batch):
        timestamp = single.event_time or metadata.event_time or metadata.publish_time
        messages.append(
            Message(number, timestamp, key_of(single), None if single.null_value else value, properties_of(single))
        )
    return messages


def write_batch(
    messages: Iterable[tuple[bytes, bytes | None]], event_time: int, of_each: tuple[str, bytes] | None = None
) -> bytes:
    """The payload of a batch of keyed messages; one without a value is a tombstone to Pulsar's compaction. `of_each`: a
    property.
    """
    out = bytearray()
    for key, value in messages:
        single = SingleMessageMetadata(payload_size=len(value or b""), event_time=event_time, null_value=value is None)
        single.partition_key = base64.b64encode(key)
        single.partition_key_b64_encoded = True
        if of_each is not None:
            single.properties.add(key=of_each[0].encode(), value=of_each[1])
        head = single.SerializeToString()
        out += _U32.pack(len(head))
        out += head
        out += value or b""
    return bytes(out)


def split_batch(data: bytes, count: int) -> Iterator[tuple[int, SingleMessageMetadata, bytes]]:
    """The messages of a batch, without those that compaction took out: number, metadata, payload."""
    if count > MAX_MESSAGES:
        raise EntryUnreadable(f"a batch of {count} messages: no more than {MAX_MESSAGES} are opened")
    at = properties = 0
    size_at, parse = _U32.unpack_from, SingleMessageMetadata.FromString
    try:
        for number in range(count):
            (size,) = size_at(data, at)
            at += 4 + size
            if size > LARGE_SINGLE:
                _check_fields(data, at - size, at)
            single = parse(data[at - size : at])
            properties += len(single.properties)
            if properties > MAX_PROPERTIES:
                raise EntryUnreadable(f"a batch with more than {MAX_PROPERTIES} properties")
            end = at + single.payload_size
            if end < at or end > len(data):
                raise EntryUnreadable("a batched message is longer than its entry")
            if not single.compacted_out:
                yield number, single, data[at:end]
            at = end
    except (struct.error, IndexError, DecodeError) as error:
        raise EntryUnreadable(f"a broken batch of {count} messages: {error}") from error


def metadata_size(data: memoryview, count: int, most: int) -> int | None:
    """Of all messages of a batch that is not compressed, up to where it is broken; None where it is more than so many
    bytes.
    """
    at = total = 0
    try:
        for _ in range(count):
            (size,) = _U32.unpack_from(data, at)
            total += size
            if total > most:
                return None
            at += 4 + size
            at += SingleMessageMetadata.FromString(bytes(data[at - size : at])).payload_size
    except (struct.error, DecodeError):
        pass
    return total


def _check_fields(data: bytes, at: int, end: int) -> None:
    """Before the metadata of a message is parsed in one piece."""
    fields = properties = 0
    while at < end:
        tag, at = _varint(data, at, end)
        fields += 1
        properties += tag >> 3 == _PROPERTIES
        if properties > MAX_PROPERTIES_OF_ONE or fields > MAX_FIELDS:
            raise EntryUnreadable(f"a batched message with more than {MAX_PROPERTIES_OF_ONE} properties")
        match tag & 7:
            case 0:
                _, at = _varint(data, at, end)
            case 1:
                at += 8
            case 2:
                size, at = _varint(data, at, end)
                at += size
            case 5:
                at += 4
            case _:  # protobuf group: no Pulsar client writes one, and it may nest any number of fields
                raise EntryUnreadable("the metadata of a batched message has fields that are not of Pulsar")


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80 or shift > 63:
            return value, at
    return value, end


def key_of(message: MessageMetadata | SingleMessageMetadata) -> bytes | None:
    if message.null_partition_key:
        return None
    if message.HasField("partition_key"):
        key = message.partition_key
        if message.partition_key_b64_encoded:
            try:
                return base64.b64decode(key, validate=True)
            except binascii.Error:
                return key
        return key
    return message.ordering_key if message.HasField("ordering_key") else None


def properties_of(message: MessageMetadata | SingleMessageMetadata) -> Properties:
    return [(pair.key.decode("utf-8", "replace"), pair.value) for pair in message.properties]
