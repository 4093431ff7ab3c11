"""The records of `__consumer_offsets` as the log has them: ours, and what Kafka-on-Pulsar has left."""

from __future__ import annotations

from handler.coordination.codec import Codec, LegacyReader, Pair
from handler.coordination.home import Translation
from handler.groups.legacy import LegacyBatches
from handler.groups.records import Record, read_record, write_key, write_value
from handler.groups.records.translated import translated


class GroupRecords(Codec[Record]):
    def write(self, record: Record) -> Pair:
        return write_key(record.key), None if record.value is None else write_value(record.value)

    def read(self, key: bytes, value: bytes | None) -> Record | None:
        return read_record(key, value)

    def translated(self, record: Record, names: Translation) -> Record:
        return translated(record, names)

    def legacy_reader(self) -> LegacyReader:
        return LegacyBatches()
