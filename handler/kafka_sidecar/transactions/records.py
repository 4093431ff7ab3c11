"""The records of `__transaction_state`: keys and values as Kafka has them (TransactionLogKey, TransactionLogValue).

Values are read in both versions and written in version 1, which is flexible. What numbers tell of transactions stands
in tagged fields of our own, which Kafka passes over.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, NamedTuple

from kafka_sidecar.coordination.codec import Codec, LegacyReader, Pair
from kafka_sidecar.coordination.home import Translation
from kafka_sidecar.transactions.metadata import NO_PRODUCER_ID, TransactionMetadata, TransactionState
from kafka_sidecar.wire.buffers import Reader
from kafka_sidecar.wire.primitives import NEVER_FLEXIBLE, compact_array, compact_text, reading, text, varint, versioned

KEY_VERSION: Final = 0
VERSION: Final = 1
FLEXIBLE_SINCE: Final = 1
_PREVIOUS_PRODUCER_ID: Final = 0
_NEXT_PRODUCER_ID: Final = 1
_CLIENT_VERSION: Final = 2
_NUMBER: Final = 10_000
_MARKED_FROM: Final = 10_001
_I64: Final = struct.Struct(">q")
_I16: Final = struct.Struct(">h")
_HEAD: Final = struct.Struct(">qhib")
_TIMES: Final = struct.Struct(">qq")
_NUMBERS: Final = struct.Struct(">qh")


class TransactionRecord(NamedTuple):
    transactional_id: str
    metadata: TransactionMetadata | None  # None for a tombstone: the transactional id is deleted


class _NoLegacy(LegacyReader):
    def records(self, value: bytes) -> list[Pair] | None:
        return None


class TransactionRecords(Codec[TransactionRecord]):
    def write(self, record: TransactionRecord) -> Pair:
        key = _I16.pack(KEY_VERSION) + text(record.transactional_id)
        return key, None if record.metadata is None else write_value(record.metadata)

    def read(self, key: bytes, value: bytes | None) -> TransactionRecord | None:
        with reading("a key of __transaction_state"):
            version, reader = versioned(key, NEVER_FLEXIBLE)
            if version != KEY_VERSION:
                return None
            transactional_id = reader.string()
        return TransactionRecord(transactional_id, None if value is None else read_value(transactional_id, value))

    def translated(self, record: TransactionRecord, names: Translation) -> TransactionRecord:
        metadata = record.metadata
        if metadata is None or not metadata.partitions:
            return record
        partitions = frozenset((names.name(topic), partition) for topic, partition in metadata.partitions)
        return record._replace(metadata=replace(metadata, partitions=partitions))

    def topics_of(self, record: TransactionRecord) -> Iterable[tuple[str, uuid.UUID | None]]:
        return [] if record.metadata is None else [(topic, None) for topic, _ in record.metadata.partitions]

    def legacy_reader(self) -> LegacyReader:
        return _NoLegacy()


def write_value(metadata: TransactionMetadata) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(metadata.partitions):
        by_topic.setdefault(topic, []).append(partition)
    topics = (
        compact_text(topic) + compact_array(struct.pack(">i", partition) for partition in partitions) + varint(0)
        for topic, partitions in by_topic.items()
    )
    head = _I16.pack(VERSION) + _HEAD.pack(
        metadata.producer_id, metadata.producer_epoch, metadata.timeout_ms, metadata.state
    )
    times = _TIMES.pack(metadata.last_update_timestamp, metadata.start_timestamp)
    # Kafka's TransactionLogValue has null partitions in the state Empty.
    partitions = varint(0) if metadata.state is TransactionState.EMPTY else compact_array(topics)
    return head + partitions + times + _tags(metadata)


def _tags(metadata: TransactionMetadata) -> bytes:
    fields = [
        (
            _PREVIOUS_PRODUCER_ID,
            _I64.pack(metadata.previous_producer_id),
            metadata.previous_producer_id != NO_PRODUCER_ID,
        ),
        (_NEXT_PRODUCER_ID, _I64.pack(metadata.next_producer_id), metadata.next_producer_id != NO_PRODUCER_ID),
        (_CLIENT_VERSION, _I16.pack(metadata.client_version), metadata.client_version != 0),
        (_NUMBER, _NUMBERS.pack(metadata.number, metadata.last_producer_epoch), True),
        (_MARKED_FROM, _I64.pack(metadata.marked_from), metadata.marked_from != 0),
    ]
    there = [(tag, value) for tag, value, is_there in fields if is_there]
    return varint(len(there)) + b"".join(varint(tag) + varint(len(value)) + value for tag, value in there)


def read_value(transactional_id: str, data: bytes) -> TransactionMetadata:
    with reading(f"the record of transactional id {transactional_id}"):
        return _metadata(transactional_id, *versioned(data, FLEXIBLE_SINCE))


def _metadata(transactional_id: str, version: int, reader: Reader) -> TransactionMetadata:
    producer_id, epoch, timeout_ms, state = reader.unpack(_HEAD)
    topics = reader.nullable_array(_topic, version) or []
    last_update, start = reader.unpack(_TIMES)
    tags = dict(reader.tagged_fields())
    number, last_epoch = tags[_NUMBER].unpack(_NUMBERS) if _NUMBER in tags else (0, -1)

    def number_in(tag: int, layout: struct.Struct, default: int) -> int:
        return int(tags[tag].unpack(layout)[0]) if tag in tags else default

    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=epoch,
        timeout_ms=timeout_ms,
        state=TransactionState(state),
        last_update_timestamp=last_update,
        previous_producer_id=number_in(_PREVIOUS_PRODUCER_ID, _I64, NO_PRODUCER_ID),
        next_producer_id=number_in(_NEXT_PRODUCER_ID, _I64, NO_PRODUCER_ID),
        last_producer_epoch=last_epoch,
        partitions=frozenset((topic, partition) for topic, partitions in topics for partition in partitions),
        start_timestamp=start,
        client_version=number_in(_CLIENT_VERSION, _I16, 0),
        number=number,
        marked_from=number_in(_MARKED_FROM, _I64, 0),
    )


def _topic(reader: Reader, _: int) -> tuple[str, list[int]]:
    topic = reader.string(), reader.int32_array()
    reader.skip_tagged_fields()
    return topic
