"""What a native producer has encrypted: given to Kafka clients as it is stored, for only its own consumers have the
key.

An entry becomes one record at its last offset. Headers name the encryption; with `pulsar.metadata`, the entry's whole
MessageMetadata, a consumer with the key can decrypt the value.
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.partition.log.formats.pulsar import one_record, origin_of, time_of
from kafka_sidecar.pulsar.messages import key_of, properties_of
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.records import BatchHeader, header_of_native

ENCRYPTION_KEYS_HEADER: Final = "pulsar.encryption.keys"
ENCRYPTION_ALGORITHM_HEADER: Final = "pulsar.encryption.algorithm"
CHUNK_HEADER: Final = "pulsar.chunk"
METADATA_HEADER: Final = "pulsar.metadata"


class EncryptedFormat:
    def headers(self, metadata: MessageMetadata, _: memoryview) -> list[BatchHeader]:
        return [header_of_native(metadata.num_messages_in_batch, 1, time_of(metadata))]

    def decode(self, metadata: MessageMetadata, payload: memoryview) -> bytes:
        headers = properties_of(metadata)
        headers.append((ENCRYPTION_KEYS_HEADER, b",".join(key.key for key in metadata.encryption_keys)))
        if metadata.encryption_algo:
            headers.append((ENCRYPTION_ALGORITHM_HEADER, metadata.encryption_algo))
        if metadata.num_chunks_from_msg > 1:  # each chunk is encrypted by itself
            headers.append((CHUNK_HEADER, b"%d/%d" % (metadata.chunk_id, metadata.num_chunks_from_msg)))
        headers.append((METADATA_HEADER, metadata.SerializePartialToString()))
        return one_record(
            metadata,
            metadata.num_messages_in_batch - 1,
            key_of(metadata),
            bytes(payload),
            headers + origin_of(metadata),
        )


ENCRYPTED: Final = EncryptedFormat()
