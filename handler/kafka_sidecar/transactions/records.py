"""The records of `__transaction_state`: keys and values as Kafka has them (TransactionLogKey, TransactionLogValue).

Values are read in both versions and written in version 1, which is flexible. What numbers tell of transactions stands in tagged fields of
our own, which Kafka passes over.
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
from kafka_sidecar.wire.primitives import Reader, RecordUnreadable, compact_array, compact_text, text, varint

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


class TransactionRecord(NamedTuple):
    transactional_id: str
    metadata: TransactionMetadata | None  # None: the id is deleted


class _NoLegacy(LegacyReader):
    def records(self, value: bytes) -> list[Pair] | None:
        return None


class TransactionRecords(Codec[TransactionRecord]):
    def write(self, record: TransactionRecord) -> Pair:
        key = _I16.pack(KEY_VERSION) + text(record.transactional_id)
        return key, None if record.metadata is None else write_value(record.metadata)

    def read(self, key: bytes, value: bytes | None) -> TransactionRecord | None:
        reader = Reader(key)
        if reader.number(">h") != KEY_VERSION:
            return None
        transactional_id = reader.text()
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
    head = struct.pack(">hqhib", VERSION, metadata.producer_id, metadata.producer_epoch, metadata.timeout_ms, metadata.state)
    times = struct.pack(">qq", metadata.last_update_timestamp, metadata.start_timestamp)
    # A transaction without partitions has null in Kafka's records while it is empty.
    partitions = varint(0) if metadata.state is TransactionState.EMPTY else compact_array(topics)
    return head + partitions + times + _tags(metadata)


def _tags(metadata: TransactionMetadata) -> bytes:
    fields = [
        (_PREVIOUS_PRODUCER_ID, _I64.pack(metadata.previous_producer_id), metadata.previous_producer_id != NO_PRODUCER_ID),
        (_NEXT_PRODUCER_ID, _I64.pack(metadata.next_producer_id), metadata.next_producer_id != NO_PRODUCER_ID),
        (_CLIENT_VERSION, _I16.pack(metadata.client_version), metadata.client_version != 0),
        (_NUMBER, _I64.pack(metadata.number) + _I16.pack(metadata.last_producer_epoch), True),
        (_MARKED_FROM, _I64.pack(metadata.marked_from), metadata.marked_from != 0),
    ]
    there = [(tag, value) for tag, value, is_there in fields if is_there]
    return varint(len(there)) + b"".join(varint(tag) + varint(len(value)) + value for tag, value in there)


def read_value(transactional_id: str, data: bytes) -> TransactionMetadata:
    reader = Reader(data)
    version = reader.number(">h")
    reader.flexible = version >= FLEXIBLE_SINCE
    producer_id = reader.number(">q")
    epoch = reader.number(">h")
    timeout_ms = reader.number(">i")
    state = reader.number(">b")
    topics = reader.array(lambda: _topic(reader))
    last_update, start = reader.number(">q"), reader.number(">q")
    tags = reader.tags()
    number, last_epoch = struct.unpack(">qh", tags.get(_NUMBER, struct.pack(">qh", 0, -1)))
    try:
        return TransactionMetadata(
            transactional_id=transactional_id, producer_id=producer_id, producer_epoch=epoch, timeout_ms=timeout_ms,
            state=TransactionState(state), last_update_timestamp=last_update,
            previous_producer_id=_I64.unpack(tags.get(_PREVIOUS_PRODUCER_ID, _I64.pack(-1)))[0],
            next_producer_id=_I64.unpack(tags.get(_NEXT_PRODUCER_ID, _I64.pack(-1)))[0],
            last_producer_epoch=last_epoch, partitions=frozenset(one for topic in topics for one in topic), start_timestamp=start,
            client_version=_I16.unpack(tags.get(_CLIENT_VERSION, _I16.pack(0)))[0], number=number,
            marked_from=_I64.unpack(tags.get(_MARKED_FROM, _I64.pack(0)))[0],
        )  # fmt: skip
    except (ValueError, struct.error) as error:
        raise RecordUnreadable(f"the record of transactional id {transactional_id} can't be read: {error}") from error


def _topic(reader: Reader) -> list[tuple[str, int]]:
    name = reader.text()
    partitions = reader.array(lambda: reader.number(">i"))
    reader.tags()
    return [(name, partition) for partition in partitions]
