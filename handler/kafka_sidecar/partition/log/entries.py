"""The content of stored entries, decided entry by entry and never by topic.

    formats/kafka      property entry.format=kafka: the payload is record batches, one or several
    formats/encrypted  encryption keys: opaque
    formats/chunk      a part of a larger message
    formats/pulsar     anything else: a Pulsar message or batch, in any Pulsar compression

What can't be read is reported, never skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

from google.protobuf.message import DecodeError

from kafka_sidecar.errors import EntryUnreadable
from kafka_sidecar.loop.ids import OUR_WRITER
from kafka_sidecar.partition.log.basis import (
    AGAIN_PROPERTY,
    BASES_PROPERTY,
    BASIS_PROPERTY,
    Basis,
    BatchSequence,
    KnownProducer,
)
from kafka_sidecar.partition.log.formats import CHUNK, ENCRYPTED, KAFKA, PULSAR, StoredFormat
from kafka_sidecar.partition.log.formats.chunk import is_last_chunk
from kafka_sidecar.partition.log.formats.entry_format import FORMAT_PROPERTY
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.control_records import placeholder
from kafka_sidecar.wire.records import (
    CONTROL,
    LOG_APPEND_TIME,
    NO_PRODUCER_ID,
    BatchHeader,
    all_batches,
    with_base_offsets,
    with_log_append_time,
)

# A sidecar writes about a hundred batches into an entry at most; Kafka-on-Pulsar writes the batches of one Produce
# request. The event loop folds 10,000 batches without interruption, in about 20 ms.
MAX_BATCHES: Final = 10_000
_KAFKA: Final = KAFKA.name.encode()


class HasAccepted(Protocol):
    """A verdict on a batch, as far as it decides what clients get."""

    @property
    def accepted(self) -> bool: ...


class Content(NamedTuple):
    """An entry understood: its batches and who wrote it. `data` has no offsets yet."""

    data: bytes | bytearray
    batches: list[tuple[BatchHeader, int]]
    offset_count: int
    # The producer name if a sidecar wrote the entry, with `CLUSTER/` before it if the entry was replicated; None for
    # any other writer.
    writer: bytes | None
    writer_sequence: int
    basis: Basis | None  # The writer's basis; None if the entry has none, or was replicated from another cluster
    transactions: Sequence[int] = ()  # The transaction number of each batch; empty if no batch has one
    sent_again: bool = False  # The writer sent this entry again, so its first SEND may have landed too
    # The last chunk of a chunked message: earlier entries hold the other chunks, so `data` must not be served alone.
    lacks_chunks: bool = False
    # The producer states that the writing sidecar knew in its own cluster; None unless the entry was replicated from
    # there.
    known_there: Sequence[KnownProducer] | None = None

    @property
    def is_foreign(self) -> bool:
        """Whether another writer than a sidecar has announced its records to the broker."""
        return self.writer is None or self.known_there is not None

    @property
    def has_markers(self) -> bool:
        return any([header.attributes & CONTROL for header, _ in self.batches])

    @property
    def max_timestamp(self) -> int:
        return max(header.max_timestamp for header, _ in self.batches)

    def with_offsets(self, base_offset: int) -> bytes | bytearray:
        return with_base_offsets(self.data, base_offset)


class CountedFewer(EntryUnreadable):
    """The writer of an entry has announced fewer records to the broker than are in it. They have no offsets, but were
    written.
    """

    def __init__(self, position: Position, content: Content) -> None:
        super().__init__(f"entry {position} takes {content.offset_count} offsets, and the broker has counted fewer")
        self.content = content


def is_from_before_index(entry: RawEntry) -> bool:
    """Whether it may have been written before the interceptor was on: it has no index, and no sidecar wrote it."""
    if entry.last_index is not None:
        return False
    try:
        return not entry.message_metadata.producer_name.startswith(OUR_WRITER)
    except DecodeError:
        return True


def read_beforehand(entry: RawEntry) -> None:
    """Let `read_entry` find what is in it. May be done in a thread."""
    try:
        entry.content = _read(entry, _whole)
    except EntryUnreadable as error:
        entry.content = error


def read_entry(entry: RawEntry) -> Content:
    """The content of a stored entry, or EntryUnreadable."""
    known = entry.content
    if known is None:
        return _read(entry, _whole)
    if isinstance(known, EntryUnreadable):
        raise known
    assert isinstance(known, Content)
    return known


def read_headers(entry: RawEntry) -> Content:
    """The same without its data, for a fold that serves nobody. What ends a transaction has it: the fold has to look
    into it.
    """
    if entry.content is not None:
        return read_entry(entry)
    try:
        content = _read(entry, _headers)
    except CountedFewer as error:
        if error.content.has_markers:
            read_entry(entry)
        raise
    return read_entry(entry) if content.has_markers else content


def _read(entry: RawEntry, batches_of: Callable[[StoredFormat, MessageMetadata, memoryview], _Batches]) -> Content:
    try:
        metadata = entry.message_metadata
        properties = {pair.key: pair.value for pair in metadata.properties}
        stored_format = _format_of(metadata, properties)
        data, batches = batches_of(stored_format, metadata, entry.payload)
        if len(batches) > MAX_BATCHES:
            raise EntryUnreadable(f"an entry of {len(batches)} batches: no more than {MAX_BATCHES} are looked into")
        if any([header.attributes & LOG_APPEND_TIME for header, _ in batches]) and entry.broker_timestamp is not None:
            data, batches = _with_broker_time(data, batches, entry.broker_timestamp)
        of_a_sidecar = metadata.producer_name.startswith(OUR_WRITER)
        known = properties.get(BASIS_PROPERTY if len(batches) == 1 else BASES_PROPERTY) if of_a_sidecar else None
        basis = None if known is None else Basis.decode(known)
        if basis is not None and len(basis.producers) != len(batches):
            raise EntryUnreadable(f"it has {len(batches)} batches, and a basis for {len(basis.producers)}")
        transactions = () if basis is None else basis.transactions
        writer = metadata.producer_name if of_a_sidecar else None
        known_there = None
        if metadata.replicated_from and writer is not None:
            # The position in a replicated basis belongs to the other cluster's log, so the basis is dropped. Its
            # producer states and transaction numbers are valid here too.
            writer = metadata.replicated_from + b"/" + writer
            known_there = () if basis is None else basis.producers
            basis = None
    except Exception as error:
        # Any client may have written this entry, so decoding can fail in ways that nobody foresaw. Every exception
        # makes the entry unreadable.
        raise EntryUnreadable(f"entry {entry.position} can't be read as Kafka records: {error}") from error
    if not batches:
        raise EntryUnreadable(f"entry {entry.position} holds no record batch")
    offset_count = (
        batches[0][0].offset_count if len(batches) == 1 else sum([header.offset_count for header, _ in batches])
    )
    content = Content(
        data,
        batches,
        offset_count,
        writer,
        metadata.sequence_id,
        basis,
        transactions,
        writer is not None and AGAIN_PROPERTY in properties,
        stored_format is CHUNK and is_last_chunk(metadata),
        known_there,
    )
    # Pulsar's clients and its replicator send num_messages_in_batch to the broker, or 1 where the field is missing
    # (ProducerImpl). The broker advances the index by that number.
    if content.is_foreign and entry.last_index is not None and offset_count > metadata.num_messages_in_batch:
        raise CountedFewer(entry.position, content)
    return content


def _with_broker_time(data: bytes | bytearray, batches: list[tuple[BatchHeader, int]], timestamp: int) -> _Batches:
    """Those batches whose time is the broker's have it."""
    parts = []
    timed = []
    for header, at in batches:
        is_timed = header.attributes & LOG_APPEND_TIME
        timed.append((header._replace(max_timestamp=timestamp) if is_timed else header, at))
        batch = data[at : at + header.size] if data else b""
        parts.append(with_log_append_time(batch, timestamp) if is_timed and batch else batch)
    return bytearray().join(parts), timed


def stored_format(metadata: MessageMetadata) -> StoredFormat:
    """Of format pulsar the messages have to be looked into to serve them."""
    return _format_of(metadata, {pair.key: pair.value for pair in metadata.properties})


def _format_of(metadata: MessageMetadata, properties: dict[bytes, bytes]) -> StoredFormat:
    if metadata.encryption_keys:
        return ENCRYPTED
    if metadata.num_chunks_from_msg > 1:
        return CHUNK
    return KAFKA if properties.get(FORMAT_PROPERTY) == _KAFKA else PULSAR


_Batches = tuple[bytes | bytearray, list[tuple[BatchHeader, int]]]


def _whole(entry_format: StoredFormat, metadata: MessageMetadata, payload: memoryview) -> _Batches:
    data = entry_format.decode(metadata, payload)
    return data, all_batches(data)


def _headers(entry_format: StoredFormat, metadata: MessageMetadata, payload: memoryview) -> _Batches:
    return b"", [(header, 0) for header in entry_format.headers(metadata, payload)]


def sequence_of(header: BatchHeader) -> BatchSequence | None:
    """None for a batch that no producer has numbered."""
    if header.producer_id == NO_PRODUCER_ID or header.base_sequence < 0:
        return None
    return BatchSequence(header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence)


def served_data(content: Content, verdicts: Sequence[HasAccepted]) -> bytes | bytearray:
    """The batches as Kafka's clients get them, without their offsets: in place of one that is refused, or holds no
    record, stands a placeholder.
    """
    if len(verdicts) == 1:  # The usual case: an entry of one batch
        header = content.batches[0][0]
        return content.data if verdicts[0].accepted and header.record_count else _placeholder_of(header)
    are_served = [
        bool(verdict.accepted and one[0].record_count) for verdict, one in zip(verdicts, content.batches, strict=True)
    ]
    if all(are_served):
        return content.data
    parts = [
        content.data[at : at + header.size] if is_served else _placeholder_of(header)
        for is_served, (header, at) in zip(are_served, content.batches, strict=True)
    ]
    return bytearray().join(parts)


def _placeholder_of(header: BatchHeader) -> bytes:
    return placeholder(0, header.offset_count, header.max_timestamp)
