"""Pulsar's own messages, single and batched, as a Kafka record batch.

key        partition key (decoded where the client marked it base64), else ordering key
value      payload; null where the message says null_value
headers    properties, in order, as the bytes they are
timestamp  event time where there is one, else the publish time
"""

from __future__ import annotations

import base64
import binascii
import struct
from collections.abc import Sequence

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from google.protobuf.message import DecodeError

from handler.errors import EntryUnreadable
from handler.partition.codecs import decompress
from handler.pulsar.pulsar_api_pb2 import MessageMetadata, SingleMessageMetadata
from handler.wire.records import with_last_offset

Headers = list[tuple[str, bytes]]


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


def _headers(message: MessageMetadata | SingleMessageMetadata) -> Headers:
    return [(pair.key.decode("utf-8", "replace"), pair.value) for pair in message.properties]


def _new_batch() -> DefaultRecordBatchBuilder:
    return DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=2**31 - 1,
    )  # fmt: skip


def kafka_batch(metadata: MessageMetadata, payload: memoryview) -> tuple[bytes, int]:
    """The Kafka batch of a native entry, base offset 0, and how many offsets it takes."""
    data = decompress(metadata.compression, payload, metadata.uncompressed_size)
    if metadata.HasField("num_messages_in_batch"):
        return _batched(metadata, data)
    builder = _new_batch()
    value = None if metadata.null_value else data
    builder.append(0, metadata.event_time or metadata.publish_time, _key(metadata), value, _headers(metadata))
    return bytes(builder.build()), 1


def _batched(metadata: MessageMetadata, data: bytes) -> tuple[bytes, int]:
    builder = _new_batch()
    count = metadata.num_messages_in_batch
    last = -1
    for delta, (message, value) in enumerate(_single_messages(data, count)):
        if message.compacted_out:
            continue
        timestamp = message.event_time or metadata.event_time or metadata.publish_time
        builder.append(delta, timestamp, _key(message), None if message.null_value else value, _headers(message))
        last = delta
    built = bytes(builder.build())
    return (built if last == count - 1 else with_last_offset(built, count - 1)), count


def _single_messages(data: bytes, count: int) -> Sequence[tuple[SingleMessageMetadata, bytes]]:
    messages = []
    at = 0
    try:
        for _ in range(count):
            (size,) = struct.unpack_from(">I", data, at)
            message = SingleMessageMetadata.FromString(data[at + 4 : at + 4 + size])
            at += 4 + size
            end = at + message.payload_size
            if message.payload_size < 0 or end > len(data):
                raise EntryUnreadable("a batched message is longer than its entry")
            messages.append((message, data[at:end]))
            at = end
    except (struct.error, DecodeError) as error:
        raise EntryUnreadable(f"a broken batch of {count} messages: {error}") from error
    return messages
