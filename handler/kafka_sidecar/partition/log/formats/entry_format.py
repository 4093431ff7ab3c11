"""What a format of entries has to do."""

from __future__ import annotations

from typing import Final, NamedTuple, Protocol

from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.records import BatchHeader

# By which KoP marks entries whose payload is Kafka record batches; kept, so that both read each other's.
FORMAT_PROPERTY: Final = b"entry.format"


class EncodedEntry(NamedTuple):
    """An entry as it is to be stored."""

    fields: bytes  # of its MessageMetadata, encoded: those that say how to read it
    payload: bytes | bytearray
    max_timestamp: int  # of its records, whatever the header of their batch says
    batch: bytes | bytearray  # as readers of the entry get it, or with the same records in another compression
    log_append_time: bool  # its time is the broker's, which is known when it is read


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
