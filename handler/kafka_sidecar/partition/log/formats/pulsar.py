"""Format pulsar: a record is a message of an ordinary Pulsar batch, so that native consumers see what Kafka's producers
write.

record        message
key           partition key, in base64 (and marked so) where it is no UTF-8; none for null
value         payload; marked null_value for null
timestamp     event time
headers       properties, where they are text and no name stands twice; else those that are, and `kafka.headers` has all
              of them
compression   the same codec, over the whole batch, as Pulsar does it

Properties of the entry itself, which clients of a batch do not see, say what else a Kafka consumer is to get back
(`kafka.batch`): producer id, epoch, base sequence, the greatest timestamp, so that a fold need not open the records,
whether their time is the broker's, and whether they are of a transaction. Whatever has none was written by somebody
else: every native message, single or batched, is read here. Its key may be an ordering key, its time is the publish
time where it has no event time, and headers are its properties. Two more headers say what else Pulsar knows of it: the
version of its schema, and the cluster from which it was replicated.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from kafka_sidecar.loop.ids import OUR_WRITER
from kafka_sidecar.partition.log.formats.entry_format import FORMAT_PROPERTY, EncodedEntry
from kafka_sidecar.partition.log.opened_batch import MAX_BYTES, RecordsTooLarge, open_batch, reading_records
from kafka_sidecar.pulsar.codecs import compress, decompress
from kafka_sidecar.pulsar.messages import MAX_MESSAGES, Properties, key_of, properties_of, split_batch
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata, SingleMessageMetadata
from kafka_sidecar.wire.records import (
    CODEC_MASK,
    LOG_APPEND_TIME,
    NO_PRODUCER_ID,
    TRANSACTIONAL,
    BatchHeader,
    BatchInvalid,
    read_header,
    with_earlier_timestamps,
    with_last_offset,
    with_log_append_time,
    with_max_timestamp,
)

BATCH_PROPERTY: Final = b"kafka.batch"
HEADERS_PROPERTY: Final = b"kafka.headers"
SCHEMA_VERSION_HEADER: Final = "pulsar.schema.version"
REPLICATED_FROM_HEADER: Final = "pulsar.replicated.from"
# aiokafka's DefaultRecordBatchBuilder can still encode the difference of two timestamps up to this value, in ms.
_MAX_TIMESTAMP: Final = 2**60
# Kafka's codec → Pulsar's.
_COMPRESSION: Final = {0: 0, 1: 2, 2: 4, 3: 1, 4: 3}
_U32: Final = struct.Struct(">I")
_I32: Final = struct.Struct(">i")
_U64_MASK: Final = 2**64 - 1
_NULL: Final = -1


class _Facts(NamedTuple):
    producer_id: int
    epoch: int
    sequence: int
    max_timestamp: int
    attributes: int = 0  # Bits LOG_APPEND_TIME and TRANSACTIONAL of the batch attributes


_NO_FACTS: Final = _Facts(-1, -1, -1, -1)
# The least and the greatest valid value of each fact. −1 means that the batch has no such value. Sidecars of release
# 0.2 also accepted producer ids below −1.
_RANGES: Final = ((-(2**63), 2**63 - 1), (-1, 2**15 - 1), (-1, 2**31 - 1), (-1, _MAX_TIMESTAMP), (0, 2**15 - 1))

Headers = list[tuple[str, bytes | None]]


class PulsarFormat:
    name: Final = "pulsar"
    opens_records: Final = True

    def encode(self, data: bytes | bytearray, codec: int | None, *, log_append_time: bool) -> EncodedEntry:
        with reading_records():
            header, plain = open_batch(data)
            messages, max_timestamp = _messages(plain, header.record_count)
        compression = _COMPRESSION[header.attributes & CODEC_MASK if codec is None else codec]
        metadata = MessageMetadata(
            num_messages_in_batch=header.record_count, compression=compression, uncompressed_size=len(messages)
        )
        metadata.properties.add(key=FORMAT_PROPERTY, value=self.name.encode())
        producer = (
            (header.producer_id, header.producer_epoch, header.base_sequence) if header.has_producer else _NO_FACTS[:3]
        )
        facts = b"%d %d %d %d" % (*producer, max_timestamp)
        attributes = header.attributes & TRANSACTIONAL | (LOG_APPEND_TIME if log_append_time else 0)
        metadata.properties.add(key=BATCH_PROPERTY, value=facts + b" %d" % attributes if attributes else facts)
        batch = data if max_timestamp == header.max_timestamp else with_max_timestamp(data, max_timestamp)
        return EncodedEntry(
            metadata.SerializePartialToString(), compress(compression, messages), max_timestamp, batch, log_append_time
        )

    def headers(self, metadata: MessageMetadata, payload: memoryview) -> list[BatchHeader]:
        facts = _facts(metadata)
        count = _message_count(metadata)
        # Each native message has its own timestamp, so the greatest is known only after decompression.
        if facts is None:
            facts = _NO_FACTS._replace(max_timestamp=_greatest_time(metadata, payload))
        producer_id, epoch, sequence, max_timestamp, attributes = facts
        return [
            BatchHeader(
                0, 0, -1, 2, 0, attributes, count - 1, max_timestamp, max_timestamp, producer_id, epoch, sequence, count
            )
        ]

    def decode(self, metadata: MessageMetadata, payload: memoryview) -> bytes:
        facts = _facts(metadata)
        producer_id, epoch, sequence, max_timestamp, attributes = facts or _NO_FACTS
        data = decompress(metadata.compression, payload, metadata.uncompressed_size)
        origin = [] if facts is not None else origin_of(metadata)
        if not metadata.HasField("num_messages_in_batch"):
            return one_record(
                metadata, 0, key_of(metadata), None if metadata.null_value else data, properties_of(metadata) + origin
            )
        append, build = _builder(producer_id, epoch, sequence, bool(attributes & TRANSACTIONAL))
        unstamped = 0 if facts is not None else metadata.event_time or metadata.publish_time
        headers_of = properties_of if facts is None else _headers
        last = -1
        later = 0
        count = _message_count(metadata)
        for number, message, value in split_batch(data, count):
            timestamp = _signed(message.event_time or unstamped)
            if last < 0 and timestamp < 0:
                # The builder takes a first timestamp of −1 for a missing one, so negative timestamps are shifted here
                # and shifted back after the build.
                later = -timestamp
            headers = headers_of(message) if message.properties else []
            if origin:
                headers = headers + origin
            append(number, timestamp + later, key_of(message), None if message.null_value else value, headers)
            last = number
        built = bytes(build())
        if later:
            built = with_earlier_timestamps(built, later)
        if (
            facts is not None and read_header(built).max_timestamp != max_timestamp
        ):  # Compaction has removed the record with the greatest timestamp
            built = with_max_timestamp(built, max_timestamp)
        if attributes & LOG_APPEND_TIME:
            # Provisional: a reader replaces it with the broker timestamp of the entry.
            built = with_log_append_time(built, max_timestamp)
        return built if last == count - 1 else with_last_offset(built, count - 1)


def one_record(
    metadata: MessageMetadata, delta: int, key: bytes | None, value: bytes | None, headers: Headers | Properties
) -> bytes:
    """A native entry as a batch of one record, so many offsets behind the entry's first."""
    append, build = _builder(*_NO_FACTS[:3])
    timestamp = time_of(metadata)
    append(delta, max(0, timestamp), key, value, headers)
    built = bytes(build())
    return built if timestamp >= 0 else with_earlier_timestamps(built, -timestamp)


def time_of(metadata: MessageMetadata) -> int:
    """Of what a native producer wrote."""
    return _signed(metadata.event_time or metadata.publish_time)


def _builder(
    producer_id: int, epoch: int, sequence: int, is_transactional: bool = False
) -> tuple[Callable[..., object], Callable[[], bytearray]]:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=is_transactional,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        batch_size=2**31 - 1,
    )
    return builder.append, builder.build


def origin_of(metadata: MessageMetadata) -> Properties:
    """What Pulsar knows of a native message beside what is in it, as headers."""
    origin: Properties = []
    if metadata.schema_version:
        origin.append((SCHEMA_VERSION_HEADER, metadata.schema_version))
    if metadata.replicated_from:
        origin.append((REPLICATED_FROM_HEADER, metadata.replicated_from))
    return origin


def _greatest_time(metadata: MessageMetadata, payload: memoryview) -> int:
    """Of native messages."""
    unstamped = metadata.event_time or metadata.publish_time
    if not metadata.HasField("num_messages_in_batch"):
        return time_of(metadata)
    data = decompress(metadata.compression, payload, metadata.uncompressed_size)
    times = (
        _signed(message.event_time or unstamped) for _, message, _ in split_batch(data, metadata.num_messages_in_batch)
    )
    return max(times, default=-1)


def has_facts(metadata: MessageMetadata) -> bool:
    """Whether the headers of an entry can be known without its messages, or nobody can read it."""
    try:
        return _facts(metadata) is not None
    except ValueError:
        return True


def _facts(metadata: MessageMetadata) -> _Facts | None:
    """What a sidecar has written beside the messages of a batch; None where it is somebody else's.

    ValueError where no sidecar writes such facts. A sidecar that reads the headers alone would believe them, and others
    could not decode the entry.
    """
    if not metadata.producer_name.startswith(OUR_WRITER) or not metadata.HasField("num_messages_in_batch"):
        return None
    for pair in metadata.properties:
        if pair.key == BATCH_PROPERTY:
            facts = _Facts(*map(int, pair.value.split()))
            # Without a producer id, epoch and sequence mean nothing, and clients send any value there.
            if facts.producer_id == NO_PRODUCER_ID:
                facts = _NO_FACTS._replace(max_timestamp=facts.max_timestamp, attributes=facts.attributes)
            if not all(least <= number <= most for number, (least, most) in zip(facts, _RANGES, strict=True)):
                raise ValueError(f"{pair.value!r} is of no batch")
            if facts.attributes & ~(TRANSACTIONAL | LOG_APPEND_TIME):
                raise ValueError(f"{pair.value!r} has attributes that no sidecar writes")
            return facts
    return None


def _message_count(metadata: MessageMetadata) -> int:
    """ValueError where nobody can open so many messages, or no record would stand at the entry's offsets."""
    if not 1 <= metadata.num_messages_in_batch <= MAX_MESSAGES:
        raise ValueError(
            f"it says that it has {metadata.num_messages_in_batch} messages, and 1 to {MAX_MESSAGES} can be opened"
        )
    return metadata.num_messages_in_batch


def _messages(data: bytes | bytearray, count: int) -> tuple[bytes, int]:
    """The payload of a Pulsar batch, not compressed yet, and the greatest timestamp."""
    parts: list[bytes] = []
    number = -1
    size = 0
    max_timestamp = -1
    for number, record in enumerate(DefaultRecordBatch(data)):
        if record.offset != number:
            raise BatchInvalid(f"record {number} of the batch has the offset {record.offset}")
        key, value, timestamp = record.key, record.value, record.timestamp
        if not -1 <= timestamp <= _MAX_TIMESTAMP:
            raise BatchInvalid(f"record {number} of the batch has the timestamp {timestamp}")
        max_timestamp = max(max_timestamp, timestamp)
        message = SingleMessageMetadata(
            payload_size=0 if value is None else len(value), event_time=timestamp & _U64_MASK
        )
        if value is None:
            message.null_value = True
        if key is not None:
            _set_key(message, key)
        if record.headers:
            _set_properties(message, record.headers)
        head = message.SerializeToString()
        parts += (_U32.pack(len(head)), head, value or b"")
        size += 4 + len(head) + message.payload_size
        # Twice the limit, because base64 enlarges binary keys and headers, and text headers may be stored in both forms
        if size > 2 * MAX_BYTES:
            raise RecordsTooLarge(f"the batch unfolds to more than {MAX_BYTES} bytes")
    if number + 1 != count:
        raise BatchInvalid(f"the batch says {count} records and has {number + 1}")
    return b"".join(parts), max_timestamp


def _set_key(message: SingleMessageMetadata, key: bytes) -> None:
    if _is_text(key):
        message.partition_key = key
    else:
        message.partition_key = base64.b64encode(key)
        message.partition_key_b64_encoded = True


def _set_properties(message: SingleMessageMetadata, headers: Headers) -> None:
    texts = {
        name: value for name, value in headers if value is not None and _is_text(value)
    }  # If two headers have the same name, the last one counts, as in Pulsar's clients
    texts.pop(HEADERS_PROPERTY.decode(), None)
    for name, value in texts.items():
        message.properties.add(key=name.encode(), value=value)
    if len(texts) != len(headers):
        message.properties.add(key=HEADERS_PROPERTY, value=base64.b64encode(_packed(headers)))


def _is_text(value: bytes) -> bool:
    if value.isascii():
        return True
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _packed(headers: Headers) -> bytes:
    """Each header as the length of its name, the name, the length of its value (−1 for null) and the value."""
    parts = []
    for name, value in headers:
        encoded = name.encode()
        parts += [_I32.pack(len(encoded)), encoded, _I32.pack(_NULL if value is None else len(value)), value or b""]
    return b"".join(parts)


def _unpacked(packed: bytes) -> Headers:
    headers: Headers = []
    at = 0
    while at < len(packed):
        (size,) = _I32.unpack_from(packed, at)
        name = packed[at + 4 : at + 4 + size].decode()
        at += 4 + size
        (size,) = _I32.unpack_from(packed, at)
        at += 4
        headers.append((name, None if size == _NULL else packed[at : at + size]))
        at += max(size, 0)
    return headers


def _headers(message: SingleMessageMetadata) -> Headers | Properties:
    """The headers of a record that a Kafka producer wrote."""
    last = message.properties[-1]
    return _unpacked(base64.b64decode(last.value)) if last.key == HEADERS_PROPERTY else properties_of(message)


def _signed(unsigned: int) -> int:
    return unsigned if unsigned < 2**63 else unsigned - 2**64


PULSAR: Final = PulsarFormat()
