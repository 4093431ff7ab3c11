"""The content of stored entries, decided entry by entry and never by topic.

    kafka format   property entry.format=kafka: the payload is record batches, one or several
    native         anything else: a Pulsar message or batch, in any Pulsar compression

Chunked and encrypted messages can't be given to Kafka clients yet. They are reported, never skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from google.protobuf.message import DecodeError

from handler.errors import EntryUnreadable
from handler.partition.log.basis import BASES_PROPERTY, BASIS_PROPERTY, Basis, BatchSequence
from handler.partition.log.native import kafka_batch
from handler.partition.log.pulsar_log import FORMAT_PROPERTY, KAFKA_FORMAT, WRITER_PREFIX
from handler.pulsar.entry import RawEntry
from handler.wire.records import NO_PRODUCER_ID, BatchHeader, all_batches, empty_batch, with_base_offsets

_OUR_WRITER = WRITER_PREFIX.encode()


class HasAccepted(Protocol):
    """A verdict on a batch, as far as it decides what clients get."""

    @property
    def accepted(self) -> bool: ...


class Content(NamedTuple):
    """An entry understood: its batches and who wrote it. `data` has no offsets yet."""

    data: bytes | bytearray
    batches: list[tuple[BatchHeader, int]]
    offset_count: int
    writer: bytes | None  # a sidecar's writer name, None for everyone else
    writer_sequence: int
    basis: Basis | None  # None where nothing depends on it

    @property
    def max_timestamp(self) -> int:
        return max(header.max_timestamp for header, _ in self.batches)

    def with_offsets(self, base_offset: int) -> bytes | bytearray:
        return with_base_offsets(self.data, base_offset)


def read_entry(entry: RawEntry) -> Content:
    """The content of a stored entry, or EntryUnreadable."""
    try:
        metadata = entry.message_metadata
        properties = {pair.key: pair.value for pair in metadata.properties}
        if metadata.encryption_keys:
            raise EntryUnreadable("the message is encrypted")
        if metadata.num_chunks_from_msg > 1:
            raise EntryUnreadable("the message is chunked")
        data: bytes | bytearray
        if properties.get(FORMAT_PROPERTY) == KAFKA_FORMAT:
            # A copy: the view would keep the whole network chunk alive for as long as this is cached. It gets its offsets in place.
            data = bytearray(entry.payload)
        else:
            data, _ = kafka_batch(metadata, entry.payload)
        batches = all_batches(data)
        ours = metadata.producer_name.startswith(_OUR_WRITER)
        known = properties.get(BASIS_PROPERTY if len(batches) == 1 else BASES_PROPERTY) if ours else None
        basis = None if known is None else Basis.decode(known)
        if basis is not None and len(basis.producers) != len(batches):
            raise EntryUnreadable(f"it has {len(batches)} batches, and a basis for {len(basis.producers)}")
    except Exception as error:
        # Anybody may have written this entry, and anything may be wrong with it: not only what was thought of.
        raise EntryUnreadable(f"entry {entry.position} can't be read as Kafka records: {error}") from error
    if not batches:
        raise EntryUnreadable(f"entry {entry.position} holds no record batch")
    offset_count = batches[0][0].offset_count if len(batches) == 1 else sum([header.offset_count for header, _ in batches])
    return Content(
        data, batches, offset_count,
        metadata.producer_name if ours else None, metadata.sequence_id, basis,
    )  # fmt: skip


def sequence_of(header: BatchHeader) -> BatchSequence | None:
    """None for a batch that no producer has numbered."""
    if header.producer_id == NO_PRODUCER_ID or header.base_sequence < 0:
        return None
    return BatchSequence(header.producer_id, header.producer_epoch, header.base_sequence, header.last_sequence)


def accepted_data(content: Content, verdicts: Sequence[HasAccepted]) -> bytes | bytearray | None:
    """The batches as Kafka's clients get them: one that is refused holds no record. None if all are."""
    if len(verdicts) == 1:
        return content.data if verdicts[0].accepted else None
    if all(verdict.accepted for verdict in verdicts):
        return content.data
    if not any(verdict.accepted for verdict in verdicts):
        return None
    parts = []
    for (header, at), verdict in zip(content.batches, verdicts, strict=True):
        parts.append(content.data[at : at + header.size] if verdict.accepted else empty_batch(0, header.offset_count))
    return bytearray().join(parts)


def permits_of(entry: RawEntry) -> int:
    """The flow permits that an entry cost: its messages, as the broker counts them."""
    try:
        return max(1, entry.message_metadata.num_messages_in_batch)
    except DecodeError:
        return 1
