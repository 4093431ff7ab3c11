"""Pulsar's own messages: an entry holds one, or a batch of them.

A batch is, for each message, [size u32][SingleMessageMetadata][payload], all of it compressed together.
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Iterable
from typing import NamedTuple

from google.protobuf.message import DecodeError

from handler.errors import EntryUnreadable
from handler.pulsar.codecs import decompress
from handler.pulsar.pulsar_api_pb2 import MessageMetadata, SingleMessageMetadata

Properties = list[tuple[str, bytes]]


class Message(NamedTuple):
    number: int  # in its entry
    timestamp: int  # event time where there is one, else the publish time
    key: bytes | None
    value: bytes | None
    properties: Properties


def read_messages(metadata: MessageMetadata, payload: memoryview) -> tuple[list[Message], int]:
    """The messages of an entry, without those that compaction took out, and how many it was written with."""
    data = decompress(metadata.compression, payload, metadata.uncompressed_size)
    if not metadata.HasField("num_messages_in_batch"):
        value = None if metadata.null_value else data
        return [Message(0, metadata.event_time or metadata.publish_time, _key(metadata), value, _properties(metadata))], 1
    count = metadata.num_messages_in_batch
    messages = []
    for index, (single, value) in enumerate(_split(data, count)):
        if not single.compacted_out:
            timestamp = single.event_time or metadata.event_time or metadata.publish_time
            messages.append(Message(index, timestamp, _key(single), None if single.null_value else value, _properties(single)))
    return messages, count


def write_batch(messages: Iterable[tuple[bytes, bytes | None]], event_time: int) -> bytes:
    """The payload of a batch of keyed messages; one without a value is a tombstone to Pulsar's compaction."""
    out = bytearray()
    for key, value in messages:
        single = SingleMessageMetadata(payload_size=len(value or b""), event_time=event_time, null_value=value is None)
        single.partition_key = base64.b64encode(key)
        single.partition_key_b64_encoded = True
        head = single.SerializeToString()
        out += struct.pack(">I", len(head))
        out += head
        out += value or b""
    return bytes(out)


def _split(data: bytes, count: int) -> list[tuple[SingleMessageMetadata, bytes]]:
    messages = []
    at = 0
    try:
        for _ in range(count):
            (size,) = struct.unpack_from(">I", data, at)
            single = SingleMessageMetadata.FromString(data[at + 4 : at + 4 + size])
            at += 4 + size
            end = at + single.payload_size
            if single.payload_size < 0 or end > len(data):
                raise EntryUnreadable("a batched message is longer than its entry")
            messages.append((single, data[at:end]))
            at = end
    except (struct.error, DecodeError) as error:
        raise EntryUnreadable(f"a broken batch of {count} messages: {error}") from error
    return messages


def _key(message: MessageMetadata | SingleMessageMetadata) -> bytes | None:
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


def _properties(message: MessageMetadata | SingleMessageMetadata) -> Properties:
    return [(pair.key.decode("utf-8", "replace"), pair.value) for pair in message.properties]
