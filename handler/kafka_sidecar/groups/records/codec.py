"""The records of `__consumer_offsets` as the log has them: ours, and what Kafka-on-Pulsar has left."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from kafka_sidecar.coordination.codec import Codec, LegacyReader, Pair
from kafka_sidecar.coordination.home import Translation
from kafka_sidecar.groups.legacy import LegacyBatches
from kafka_sidecar.groups.records import (
    OffsetCommitKey,
    OffsetCommitValue,
    PendingOffsetKey,
    PendingOffsetValue,
    Record,
    read_record,
    write_key,
    write_value,
)
from kafka_sidecar.groups.records.translated import translated


class GroupRecords(Codec[Record]):
    def write(self, record: Record) -> Pair:
        return write_key(record.key), None if record.value is None else write_value(record.value)

    def read(self, key: bytes, value: bytes | None) -> Record | None:
        return read_record(key, value)

    def translated(self, record: Record, names: Translation) -> Record:
        return translated(record, names)

    def topics_of(self, record: Record) -> Iterable[tuple[str, uuid.UUID | None]]:
        """Those of committed offsets: only these records say ids."""
        key, value = record
        if isinstance(key, OffsetCommitKey) and isinstance(value, OffsetCommitValue):
            yield key.topic, value.topic_id
        elif isinstance(key, PendingOffsetKey) and isinstance(value, PendingOffsetValue):
            yield key.topic, value.value.topic_id

    def legacy_reader(self) -> LegacyReader:
        return LegacyBatches()
