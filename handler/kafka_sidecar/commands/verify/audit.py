"""One partition, entry by entry: every index accounted for, every batch looked at. Pure.

Offsets are those that a Kafka consumer would see. A fault is what it could not be given, or would be given twice.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from kafka_sidecar.errors import EntryUnreadable, ProtocolError
from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.partition.fold.fold import Fold, IndexAlarm
from kafka_sidecar.partition.log.entries import Content, CountedFewer, read_entry
from kafka_sidecar.partition.log.formats import KAFKA, PULSAR
from kafka_sidecar.partition.log.formats.entry_format import FORMAT_PROPERTY
from kafka_sidecar.pulsar.entry import LogStats, Position, RawEntry
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.crc import crc32c
from kafka_sidecar.wire.records import CHECKED_FROM, split_batches

# Of each kind: more of the same say nothing new. All are counted.
FINDINGS_OF_A_KIND: Final = 20


class Severity(StrEnum):
    FAULT = "fault"
    WARNING = "warning"
    NOTE = "note"


class Kind(StrEnum):
    """What can be found, in the order of the report."""

    REPEATED = "repeated indexes"
    NO_INDEX = "entries without an index"
    UNREADABLE = "unreadable entries"
    CHECKSUM = "wrong checksums"
    LOST = "offsets of entries that brokers did not hand out"
    UNREAD = "logs that could not be read to their end"
    GAP = "unexplained gaps"
    BEFORE_INDEX = "entries from before the interceptor was on"
    FAILED_WRITE = "gaps of failed writes"
    KEPT_BACK = "offsets of entries that brokers keep to themselves"
    TRIMMED = "offsets that retention took"
    MOVED_START = "offsets that clients have deleted"
    HIDDEN = "refused batches"
    INCOMPLETE = "chunked messages without all of their chunks"
    ENCRYPTED = "encrypted entries"


SEVERITY: Final = {
    Kind.REPEATED: Severity.FAULT,
    Kind.NO_INDEX: Severity.FAULT,
    Kind.UNREADABLE: Severity.FAULT,
    Kind.CHECKSUM: Severity.FAULT,
    Kind.LOST: Severity.FAULT,
    Kind.UNREAD: Severity.FAULT,
    Kind.GAP: Severity.WARNING,
    Kind.BEFORE_INDEX: Severity.WARNING,
    Kind.INCOMPLETE: Severity.WARNING,
}


class Finding(NamedTuple):
    kind: Kind
    position: Position | None
    first_offset: int  # −1 where it is none of offsets
    last_offset: int
    text: str


@dataclass(slots=True)
class PartitionReport:
    """What was found in one partition. Offsets are counted, and so are batches and entries, as each kind has them."""

    name: str
    ledgers: int = 0
    offloaded_ledgers: int = 0
    entries: int = 0
    bytes: int = 0
    batches: int = 0
    first_offset: int | None = None
    next_offset: int | None = None
    formats: Counter[str] = field(default_factory=Counter)  # how many entries are stored in which
    counts: Counter[Kind] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    @property
    def faults(self) -> int:
        return sum(count for kind, count in self.counts.items() if severity_of(kind) is Severity.FAULT)

    def note(
        self, kind: Kind, position: Position | None, text: str, offsets: tuple[int, int] = (-1, -1), count: int = 1
    ) -> None:
        self.counts[kind] += count
        if sum(finding.kind is kind for finding in self.findings) < FINDINGS_OF_A_KIND:
            self.findings.append(Finding(kind, position, *offsets, text))


def severity_of(kind: Kind) -> Severity:
    return SEVERITY.get(kind, Severity.NOTE)


class Audit:
    """A walk through one partition, from its first entry on."""

    def __init__(self, name: str, stats: LogStats, moved: MovedStart | None) -> None:
        self.report = PartitionReport(name, len(stats.ledgers), sum(ledger.offloaded for ledger in stats.ledgers))
        self._stats = stats
        self._moved = moved
        self._fold = Fold()
        self._last: Position | None = None
        self._without_index: list[Position] = []
        self._chunks: dict[tuple[bytes, bytes], int] = {}  # of messages that are not complete yet: how many have come

    def take(self, entry: RawEntry) -> None:
        """The next entry of the log."""
        report = self.report
        report.entries += 1
        report.bytes += len(entry.payload)
        index = entry.last_index
        if index is None:
            self._take_without_index(entry)
        else:
            self._take_indexed(entry, index)
        self._last = entry.position

    def _take_without_index(self, entry: RawEntry) -> None:
        if self.report.next_offset is None:
            self._without_index.append(entry.position)
        else:
            self.report.note(Kind.NO_INDEX, entry.position, "a broker without AppendIndexMetadataInterceptor wrote it")

    def _take_indexed(self, entry: RawEntry, index: int) -> None:
        report = self.report
        if report.next_offset is None and self._without_index:
            first, last = self._without_index[0], self._without_index[-1]
            text = (
                f"{len(self._without_index)} entries from {first} to {last}: the topic is served from offset "
                f"{index} at the latest"
            )
            report.note(Kind.BEFORE_INDEX, first, text, count=len(self._without_index))
        try:
            content = read_entry(entry)
            if content.is_foreign and index - content.offset_count + 1 < (report.next_offset or 0):
                raise CountedFewer(entry.position, content)
        except EntryUnreadable as error:
            base = index if report.next_offset is None else min(index, report.next_offset)
            report.note(Kind.UNREADABLE, entry.position, str(error), (base, index))
            self._account(entry, base, index)
            self._fold_again()
            return
        base = index - content.offset_count + 1
        report.batches += len(content.batches)
        self._account(entry, base, index)
        self._look_at(entry, content, base)
        self._judge(entry, content, base, index)

    def _account(self, entry: RawEntry, base: int, index: int) -> None:
        """Whether its offsets follow those before it."""
        report = self.report
        expected = report.next_offset
        if base < 0:
            text = f"it has {index + 1 - base} offsets, and the index of its last is {index}"
            report.note(Kind.REPEATED, entry.position, text, (0, index), -base)
        elif expected is None:
            report.first_offset = base
            self._note_start(entry.position, base)
        elif base < expected:
            text = f"its offsets begin at {base}, and the log had already come to {expected}"
            report.note(Kind.REPEATED, entry.position, text, (base, expected - 1), expected - base)
        elif base > expected:
            self._explain_gap(entry.position, expected, base)
        report.next_offset = max(index + 1, expected or 0)

    def _note_start(self, position: Position, base: int) -> None:
        if base > 0 and not self._without_index:
            self.report.note(
                Kind.TRIMMED, None, "retention has removed the ledgers before the first", (0, base - 1), base
            )
        if self._moved is not None and self._moved.position >= position and self._moved.offset > base:
            text = f"DeleteRecords has moved the log start to {self._moved.offset}"
            self.report.note(
                Kind.MOVED_START, self._moved.position, text, (base, self._moved.offset - 1), self._moved.offset - base
            )

    def _explain_gap(self, position: Position, expected: int, base: int) -> None:
        assert self._last is not None
        missing = base - expected
        unseen = self._entries_between(self._last, position)
        offsets = (expected, base - 1)
        if lost := self._ledgers_not_handed_out(position):
            self.report.note(
                Kind.LOST, position, f"nothing came of ledger {', '.join(map(str, lost))}", offsets, missing
            )
        elif unseen >= missing:  # each takes one
            self.report.note(
                Kind.KEPT_BACK, position, f"{unseen} markers or aborted entries before it", offsets, missing
            )
        elif unseen:
            self.report.note(
                Kind.LOST,
                position,
                f"{unseen} entries before it did not come, which took {missing} offsets",
                offsets,
                missing,
            )
        elif position.ledger != self._last.ledger:
            text = (
                f"ledger {self._last.ledger} was closed behind entry {self._last.entry}: a write failed there, or "
                "its broker ended"
            )
            self.report.note(Kind.FAILED_WRITE, position, text, offsets, missing)
        else:
            text = f"nothing stands between entry {self._last.entry} and {position.entry} of ledger {position.ledger}"
            self.report.note(Kind.GAP, position, text, offsets, missing)

    def _ledgers_not_handed_out(self, position: Position) -> list[int]:
        """Those that are listed between the last entry and this one, and have entries."""
        assert self._last is not None
        return [one.ledger for one in self._stats.ledgers if self._last.ledger < one.ledger < position.ledger]

    def _entries_between(self, last: Position, position: Position) -> int:
        """So many stand between two entries that no reader was given."""
        if last.ledger == position.ledger:
            return position.entry - last.entry - 1
        between = sum(one.entries for one in self._stats.ledgers if last.ledger < one.ledger < position.ledger)
        of_last = sum(one.entries - 1 - last.entry for one in self._stats.ledgers if one.ledger == last.ledger)
        return of_last + between + position.entry

    def _look_at(self, entry: RawEntry, content: Content, base: int) -> None:
        metadata = entry.message_metadata
        end = base + content.offset_count - 1
        is_kafka = any(
            pair.key == FORMAT_PROPERTY and pair.value == KAFKA.name.encode() for pair in metadata.properties
        )
        is_chunk = metadata.num_chunks_from_msg > 1
        name = (
            "encrypted"
            if metadata.encryption_keys
            else "chunks"
            if is_chunk
            else KAFKA.name
            if is_kafka
            else PULSAR.name
        )
        self.report.formats[name] += 1
        if metadata.encryption_keys:
            self.report.note(Kind.ENCRYPTED, entry.position, "its consumers are given it as it is stored", (base, end))
        elif is_chunk:
            self._count_chunk(entry, metadata, end)
        elif is_kafka:
            self._check_sums(entry, base)

    def _count_chunk(self, entry: RawEntry, metadata: MessageMetadata, offset: int) -> None:
        message = (metadata.producer_name, metadata.uuid)
        there = 0 if metadata.chunk_id == 0 else self._chunks.get(message, -1)
        if there == metadata.chunk_id:
            self._chunks[message] = there + 1
        if (
            metadata.chunk_id == metadata.num_chunks_from_msg - 1
            and self._chunks.pop(message, -1) != metadata.num_chunks_from_msg
        ):
            self.report.note(
                Kind.INCOMPLETE, entry.position, f"only {max(0, there)} of its chunks are before it", (offset, offset)
            )

    def _check_sums(self, entry: RawEntry, base: int) -> None:
        try:
            for header, at in split_batches(entry.payload):
                if crc32c(entry.payload[at + CHECKED_FROM : at + header.size]) != header.crc:
                    offsets = (base, base + header.offset_count - 1)
                    self.report.note(
                        Kind.CHECKSUM, entry.position, "a record batch is not what its checksum says", offsets
                    )
                base += header.offset_count
        except ProtocolError as error:
            self.report.note(Kind.UNREADABLE, entry.position, str(error))

    def _judge(self, entry: RawEntry, content: Content, base: int, index: int) -> None:
        """What a sidecar's fold makes of it: batches that no consumer is given."""
        try:
            folded = self._fold.by_reading(entry.position, index, content)
        except IndexAlarm:  # it is a finding already
            self._fold_again()
            return
        for (header, _), verdict in zip(content.batches, folded.verdicts, strict=True):
            if verdict.is_hidden:
                why = "sent again" if verdict.duplicate else verdict.error.name
                self.report.note(Kind.HIDDEN, entry.position, why, (base, base + header.offset_count - 1))
            base += header.offset_count

    def _fold_again(self) -> None:
        self._fold = Fold(self._last)

    def unread(self, why: str) -> PartitionReport:
        """The log could not be read any further."""
        self.report.note(Kind.UNREAD, self._last, why)
        return self.report

    def end(self, last_index: int | None) -> PartitionReport:
        """The log has no more entries. `last_index`: what the metadata of its ledgers say of the last index."""
        if self._without_index and self.report.next_offset is None and last_index is not None and last_index >= 0:
            text = f"the log had come to index {last_index}, and no entry that is left has one: it is not served"
            self.report.note(Kind.NO_INDEX, self._without_index[0], text, count=len(self._without_index))
        elif self._without_index and self.report.next_offset is None:
            text = (
                f"all {len(self._without_index)} entries of the log: write to it with the interceptor on, and it is "
                "served from there"
            )
            self.report.note(Kind.BEFORE_INDEX, self._without_index[0], text, count=len(self._without_index))
        return self.report
