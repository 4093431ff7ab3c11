"""Format kafka: the payload is record batches as their producers sent them, one or several.

What is set on an entry, the property `entry.format=kafka`, is Kafka-on-Pulsar's, so that both read each other's. A
native consumer sees one message.
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.partition.log.formats.entry_format import FORMAT_PROPERTY, EncodedEntry
from kafka_sidecar.partition.log.opened_batch import MAX_BYTES, reading_records
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.compression import with_compression, without_compression
from kafka_sidecar.wire.records import CODEC_MASK, BatchHeader, read_header, split_batches, with_log_append_time


class KafkaFormat:
    name: Final = "kafka"
    opens_records: Final = False

    def __init__(self) -> None:
        metadata = MessageMetadata()
        metadata.properties.add(key=FORMAT_PROPERTY, value=self.name.encode())
        self.fields: Final = metadata.SerializePartialToString()

    def encode(self, data: bytes | bytearray, codec: int | None, *, log_append_time: bool) -> EncodedEntry:
        header = read_header(data)
        if codec is not None and codec != header.attributes & CODEC_MASK:
            with reading_records():
                data = with_compression(without_compression(header, data, MAX_BYTES), codec)
        if log_append_time:
            data = with_log_append_time(data, header.max_timestamp)
        return EncodedEntry(self.fields, data, header.max_timestamp, data, log_append_time)

    def headers(self, _: MessageMetadata, payload: memoryview) -> list[BatchHeader]:
        return [header for header, _ in split_batches(payload)]

    def decode(self, _: MessageMetadata, payload: memoryview) -> bytearray:
        # A copy: the view would keep the whole network chunk alive for as long as this is cached. It gets its offsets
        # in place.
        return bytearray(payload)


KAFKA: Final = KafkaFormat()
