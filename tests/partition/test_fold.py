"""The fold against a plain model: whoever folds a log, in whatever way, learns the same."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from handler.partition.entries import Content, appended
from handler.partition.fold import Fold, IndexAlarm
from handler.partition.native import kafka_batch
from handler.partition.producers import Verdict
from handler.pulsar.entry import Position
from handler.pulsar.pulsar_api_pb2 import MessageMetadata
from handler.wire.records import read_produced, split_batches
from tests.support.batches import batch

OWN = b"kafka-sidecar-own"
OTHER = b"kafka-sidecar-other"


@dataclass(frozen=True)
class Entry:
    position: Position
    index: int
    content: Content


@dataclass
class Log:
    """Entries as a broker lines them up, whoever wrote them."""

    entries: list[Entry] = field(default_factory=list)
    ledger: int = 1
    next_entry: int = 0
    next_offset: int = 0

    def add(self, content: Content) -> None:
        self.next_offset += content.offsets
        self.entries.append(Entry(Position(self.ledger, self.next_entry), self.next_offset - 1, content))
        self.next_entry += 1

    def roll(self) -> None:
        self.ledger += 1
        self.next_entry = 0

    def skip(self, offsets: int) -> None:
        """A failed add on an old broker: the index moves on, the entry is not there."""
        self.next_offset += offsets
        self.roll()


def _content(writer: bytes, number: int, producer_id: int, sequence: int, records: int) -> Content:
    data = batch(*[b"v"] * records, producer_id=producer_id, epoch=0, sequence=sequence)
    return appended(data, read_produced(data), writer, number)


def _native(messages: int) -> Content:
    metadata = MessageMetadata(producer_name=b"native", sequence_id=0, publish_time=1_000)
    data, _ = kafka_batch(metadata, memoryview(b"value"))
    return Content(data, list(split_batches(data)), messages, None, 0, None) if messages == 1 else _native(1)


# What happens to a log, one step after the other: (kind, writer or producer, records).
STEP = st.tuples(
    st.sampled_from(["write", "write", "write", "again", "late", "hole", "native", "roll", "skip"]), st.integers(0, 2), st.integers(1, 3)
)


def _play(steps: list[tuple[str, int, int]]) -> tuple[Log, list[tuple[int, int]]]:
    """A log after `steps`, and what its readers must be served: (producer, sequence) in order."""
    log = Log()
    numbers = {OWN: 0, OTHER: 0}
    sequences = [0, 0, 0]
    expected: list[tuple[int, int]] = []
    last: Content | None = None
    for kind, producer_id, records in steps:
        writer = OWN if producer_id != 2 else OTHER
        match kind:
            case "write":
                last = _content(writer, numbers[writer], producer_id, sequences[producer_id], records)
                numbers[writer] += 1
                expected.append((producer_id, sequences[producer_id]))
                sequences[producer_id] += records
                log.add(last)
            case "again":  # a second copy of an entry, under its old writer sequence
                if last is not None:
                    log.add(last)
            case "late":  # a client's retry that another sidecar wrote although the first try had landed
                if last is not None and last.batches[0][0].producer_id >= 0:
                    header = last.batches[0][0]
                    log.add(_content(OTHER, numbers[OTHER], header.producer_id, header.base_sequence, header.offsets))
                    numbers[OTHER] += 1
            case "hole" if sequences[producer_id]:  # a batch whose predecessor never landed
                log.add(_content(writer, numbers[writer], producer_id, sequences[producer_id] + 100, records))
                numbers[writer] += 1
            case "native":
                log.add(_native(1))
                expected.append((-1, -1))
            case "roll":
                log.roll()
            case "skip":
                log.skip(records)
    return log, expected


def _served(log: Log, verdicts: list[Verdict]) -> list[tuple[int, int]]:
    return [
        (entry.content.batches[0][0].producer_id, entry.content.batches[0][0].base_sequence)
        for entry, verdict in zip(log.entries, verdicts, strict=True)
        if verdict.accepted
    ]


@given(steps=st.lists(STEP, max_size=40))
def test_every_record_is_served_once_and_in_order_whatever_was_written_twice(steps: list[tuple[str, int, int]]) -> None:
    log, expected = _play(steps)
    fold = Fold(OWN)
    fold.begin_empty(0)
    folded = [fold.by_reading(entry.position, entry.index, entry.content) for entry in log.entries]
    assert _served(log, [item.verdict for item in folded]) == expected
    assert fold.next_offset == (log.entries[-1].index + 1 if log.entries else 0)
    for item, entry in zip(folded, log.entries, strict=True):
        assert item.base_offset == entry.index - entry.content.offsets + 1
        if item.verdict.accepted:
            assert item.verdict.base_offset == item.base_offset


@given(steps=st.lists(STEP, max_size=40), receipts=st.sets(st.integers(0, 40)))
def test_receipts_and_reading_come_to_the_same(steps: list[tuple[str, int, int]], receipts: set[int]) -> None:
    log, _ = _play(steps)
    reader, mixed = Fold(OWN), Fold(OWN)
    reader.begin_empty(0)
    mixed.begin_empty(0)
    for number, entry in enumerate(log.entries):
        read = reader.by_reading(entry.position, entry.index, entry.content)
        if number in receipts and entry.content.writer == OWN and mixed.follows(*entry.position):
            other = mixed.by_receipt(entry.position, entry.content)
            mixed.check_again(entry.position, entry.index)
        else:
            other = mixed.by_reading(entry.position, entry.index, entry.content)
        assert (read.verdict, read.base_offset, read.next_offset) == (other.verdict, other.base_offset, other.next_offset)


@given(steps=st.lists(STEP, min_size=1, max_size=40), begin=st.integers(0, 39))
def test_a_fold_that_begins_in_the_middle_tells_the_same_offsets_and_hides_nothing(steps: list[tuple[str, int, int]], begin: int) -> None:
    log, _ = _play(steps)
    whole, late = Fold(OWN), Fold(b"kafka-sidecar-late")  # a partition that is opened writes under a new name
    whole.begin_empty(0)
    for number, entry in enumerate(log.entries):
        known = whole.by_reading(entry.position, entry.index, entry.content)
        if number >= begin:
            learnt = late.by_reading(entry.position, entry.index, entry.content)
            assert (learnt.base_offset, learnt.next_offset) == (known.base_offset, known.next_offset)
            if known.verdict.accepted:
                assert learnt.verdict.accepted, "what others were told to be there must not be hidden"


def test_an_index_that_comes_back_is_an_alarm() -> None:
    fold = Fold(OWN)
    content = _content(OWN, 0, 1, 0, 2)
    fold.by_reading(Position(1, 0), 9, content)
    with pytest.raises(IndexAlarm):
        fold.by_reading(Position(1, 1), 10, _content(OWN, 1, 1, 2, 2))


def test_a_receipt_that_the_log_contradicts_is_an_alarm() -> None:
    fold = Fold(OWN)
    fold.by_reading(Position(1, 0), 1, _content(OWN, 0, 1, 0, 2))
    fold.by_receipt(Position(1, 1), _content(OWN, 1, 1, 2, 2))
    fold.check_again(Position(1, 1), 3)
    with pytest.raises(IndexAlarm):
        fold.check_again(Position(1, 1), 4)


def test_an_entry_nobody_can_read_takes_its_offsets() -> None:
    fold = Fold(OWN)
    fold.by_reading(Position(1, 0), 1, _content(OWN, 0, 1, 0, 2))
    folded = fold.unreadable(Position(1, 1), 4)
    assert (folded.base_offset, folded.next_offset) == (2, 5)
    assert folded.verdict.error is ErrorCode.corrupt_message
