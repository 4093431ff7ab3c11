"""A part of a native message that was too large for one entry (PIP-37). Each part takes one offset; the message is a
record at the last.

An entry alone does not hold the message: what `decode` gives for the last part has no value. `read/chunked_messages`
puts the parts together.
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.partition.log.formats.pulsar import PULSAR, one_record
from kafka_sidecar.pulsar.messages import key_of
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.records import BatchHeader, empty_batch, header_of_native


def is_last_chunk(metadata: MessageMetadata) -> bool:
    return metadata.chunk_id == metadata.num_chunks_from_msg - 1


class ChunkFormat:
    def headers(self, metadata: MessageMetadata, payload: memoryview) -> list[BatchHeader]:
        return PULSAR.headers(metadata, payload) if is_last_chunk(metadata) else [header_of_native(1, 0, -1)]

    def decode(self, metadata: MessageMetadata, _: memoryview) -> bytes:
        return one_record(metadata, 0, key_of(metadata), None, []) if is_last_chunk(metadata) else empty_batch(1)


CHUNK: Final = ChunkFormat()
