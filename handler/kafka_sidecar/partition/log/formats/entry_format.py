"""What a format of entries has to do."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.records import BatchHeader

# Kafka-on-Pulsar sets this property on entries whose payload is Kafka record batches. Sidecars use the same name, so
# that both can read each other's entries.
FORMAT_PROPERTY: Final = b"entry.format"


class EncodedEntry(NamedTuple):
    """An entry as it is to be stored."""

    fields: bytes  # Encoded MessageMetadata fields that tell a reader how to decode the payload
    payload: bytes | bytearray
    # The greatest timestamp of the records. Format pulsar computes it, because a producer's batch header may be wrong.
    max_timestamp: int
    batch: bytes | bytearray  # The record batch that readers decode from this entry; only its compression may differ
    log_append_time: bool  # True for LogAppendTime: readers take the timestamp from the broker entry metadata


class StoredFormat(Protocol):
    """A format that is read."""

    def headers(self, metadata: MessageMetadata, payload: memoryview) -> list[BatchHeader]:
        """The headers of the batches that `decode` would give, as far as a fold needs them, in less time."""
        ...

    def decode(self, metadata: MessageMetadata, payload: memoryview) -> bytes | bytearray:
        """The batches of an entry of this format, without offsets. Any exception where it can't be read."""
        ...


class EntryFormat(StoredFormat, Protocol):
    """A format that is written too."""

    @property
    def name(self) -> str:
        """As topics name it, and as entries say it of themselves (property entry.format)."""
        ...

    @property
    def opens_records(self) -> bool:
        """Whether it has to look into the records. Else the batches of several producers may share an entry."""
        ...

    def encode(self, data: bytes | bytearray, codec: int | None, *, log_append_time: bool) -> EncodedEntry:
        """The entry for a batch that `read_produced` has taken. What it gives, `decode` can read.

        `codec`: Kafka's number of the compression to use, None for the producer's. BatchMalformed or BatchInvalid where
        the records are not what the batch says, RecordsTooLarge where there are too many.
        """
        ...
