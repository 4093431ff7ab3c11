"""Format kafka: the payload is record batches as their producers sent them, one or several.

What is set on an entry, the property `entry.format=kafka`, is Kafka-on-Pulsar's, so that both read each other's. A native consumer
sees one message.
"""

from __future__ import annotations

from typing import Final

from handler.partition.log.formats.entry_format import FORMAT_PROPERTY, EncodedEntry
from handler.pulsar.pulsar_api_pb2 import MessageMetadata
from handler.wire.records import BatchHeader, read_header, split_batches


class KafkaFormat:
    name: Final = "kafka"
    opens_records: Final = False

    def __init__(self) -> None:
        metadata = MessageMetadata()
        metadata.properties.add(key=FORMAT_PROPERTY, value=self.name.encode())
        self.fields: Final = metadata.SerializePartialToString()

    def encode(self, data: bytes | bytearray) -> EncodedEntry:
        return EncodedEntry(self.fields, data, read_header(data).max_timestamp)

    def headers(self, _: MessageMetadata, payload: memoryview) -> list[BatchHeader]:
        return [header for header, _ in split_batches(payload)]

    def decode(self, _: MessageMetadata, payload: memoryview) -> bytearray:
        # A copy: the view would keep the whole network chunk alive for as long as this is cached. It gets its offsets in place.
        return bytearray(payload)


KAFKA: Final = KafkaFormat()
