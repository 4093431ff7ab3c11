"""The fold against a plain model: whoever folds a log, from wherever, comes to the same."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kafka_sidecar.partition.fold.fold import Fold, Folded, IndexAlarm
from kafka_sidecar.partition.fold.log_times import DAY_MS
from kafka_sidecar.partition.fold.producers import UNJUDGED
from kafka_sidecar.partition.log.basis import UNKNOWN_PRODUCER, Basis, BatchSequence, KnownProducer
from kafka_sidecar.partition.log.entries import Content
from kafka_sidecar.partition.log.formats import PULSAR
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import NO_PRODUCER_ID, NO_SEQUENCE, split_batches
from tests.support.batches import batch

WRITERS = (b"kafka-sidecar-a", b"kafka-sidecar-b")
PRODUCERS = 2


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
        self.next_offset += content.offset_count
        self.entries.append(Entry(Position(self.ledger, self.next_entry), self.next_offset - 1, content))
        self.next_entry += 1

    def roll(self) -> None:
        self.ledger += 1
        self.next_entry = 0

    def skip(self, offsets: int) -> None:
        """A failed add on an old broker: the index moves on, the entry is not there."""
        self.next_offset += offsets
        self.roll()

    def folded(self, begin: int = 0) -> list[Folded]:
        """What a fold says that begins at the entry `begin`."""
        fold = _fold_from(self, begin)
        return [fold.by_reading(*entry_of(entry)) for entry in self.entries[begin:]]


def entry_of(entry: Entry) -> tuple[Position, int, Content]:
    return entry.position, entry.index, entry.content


def _fold_from(log: Log, begin: int) -> Fold:
    fold = Fold(log.entries[begin].position if begin else None)
    if begin == 0:
        fold.begin_empty(0)
    return fold


def _content(writer: bytes, number: int, *batches: BatchOf, basis: Basis | None = None) -> Content:
    data = b"".join(
        batch(*[b"v"] * records, producer_id=producer_id, epoch=0, sequence=first)
        for producer_id, first, records in batches
    )
    return Content(data, list(split_batches(data)), sum(records for _, _, records in batches), writer, number, basis)


def _native() -> Content:
    metadata = MessageMetadata(producer_name=b"native", sequence_id=0, publish_time=1_000)
    data = PULSAR.decode(metadata, memoryview(b"value"))
    return Content(data, list(split_batches(data)), 1, None, 0, None)


BatchOf = tuple[int, int, int]  # producer, first sequence, records


@dataclass
class Writer:
    """A sidecar that writes: a fold that may lag behind the log, and entries under way to the broker."""

    name: bytes
    log: Log
    fold: Fold = field(init=False)
    read: int = 0  # entries of the log that it has folded
    number: int = 0
    under_way: deque[Content] = field(default_factory=deque)

    def __post_init__(self) -> None:
        self.reopen(0)

    def reopen(self, begin: int) -> None:
        """As after a restart: a new name, and no more known than the last entries tell."""
        self.name += b"'"
        self.number = 0
        self.fold = _fold_from(self.log, begin)
        self.read = begin
        self.catch_up()

    def catch_up(self) -> None:
        for entry in self.log.entries[self.read :]:
            self.fold.by_reading(*entry_of(entry))
        self.read = len(self.log.entries)

    def send(self, *batches: BatchOf) -> None:
        self.under_way.append(_content(self.name, self.number, *batches, basis=self.basis(batches)))
        self.number += len(batches)

    def basis(self, batches: Sequence[BatchOf]) -> Basis:
        sequences = [
            BatchSequence(producer_id, 0, first, first + records - 1) for producer_id, first, records in batches
        ]
        known = [self.fold.known_to_judge(one) or UNKNOWN_PRODUCER for one in sequences]
        alone = self.fold.basis(batches[0][0]) if len(batches) == 1 else None
        return Basis.decode(alone or self.fold.basis_with(sequences, known))

    def land(self) -> None:
        if self.under_way:
            self.log.add(self.under_way.popleft())

    def resend(self) -> None:
        """A new connection: read to the end, then all that is still open once more; the first copies may land yet."""
        self.catch_up()
        again = []
        for content in self.under_way:
            if content.writer_sequence > self.fold.writer_sequence(self.name):
                basis = self.basis(
                    [(header.producer_id, header.base_sequence, header.record_count) for header, _ in content.batches]
                )
                again.append(content._replace(basis=basis, sent_again=True))
        self.under_way.extend(again)


# What happens, one step after the other: (what, which writer, which producer, number of records or a place).
KINDS = ["send"] * 4 + ["share"] * 2 + ["receive"] * 4
KINDS += ["land", "lose", "retry", "ahead", "share again", "resend", "read", "native", "roll", "skip"]
Steps = list[tuple[str, int, int, int]]


def _steps(*kinds: str) -> st.SearchStrategy[Steps]:
    step = st.tuples(st.sampled_from(kinds), st.integers(0, 1), st.integers(0, PRODUCERS - 1), st.integers(1, 3))
    return st.lists(step, min_size=5, max_size=60)


def _play(steps: Steps) -> Log:
    log = Log()
    writers = [Writer(name, log) for name in WRITERS]
    sent: list[list[tuple[int, int]]] = [[] for _ in range(PRODUCERS)]
    for kind, which, producer_id, count in steps:
        writer = writers[which]
        before = sent[producer_id]
        following = before[-1][0] + before[-1][1] if before else 0
        match kind:
            case "send":
                before.append((following, count))
                writer.send((producer_id, following, count))
            case "share":  # an entry of several batches, of all producers and of one twice
                parts = []
                for one in (*range(PRODUCERS), producer_id):
                    last = sent[one][-1] if sent[one] else (0, 0)
                    sent[one].append((sum(last), count))
                    parts.append((one, *sent[one][-1]))
                writer.send(*parts)
            case "share again" if before:  # beside a batch that may be in the log already, and one that is ahead
                other = (producer_id + 1) % PRODUCERS
                writer.send((other, following + 100, 1), (-1, -1, 1), (producer_id, *before[-min(count, len(before))]))
            case "retry" if before:  # by a client that got no answer, through whichever sidecar it reached
                writer.send((producer_id, *before[-min(count, len(before))]))
            case "ahead":
                writer.send((producer_id, following + 100, count))
            case "receive":
                writer.land()
                writer.catch_up()
            case "land":  # and the receipt is under way
                writer.land()
            case "lose" if writer.under_way:
                writer.under_way.popleft()
            case "resend":
                writer.resend()
            case "read":
                writer.catch_up()
            case "reopen" if log.entries:  # what is replayed is more than what is still under way
                seen = [
                    content.basis.folded_to for one in writers for content in one.under_way if content.basis is not None
                ]
                oldest = min([*seen, log.entries[-1].position])
                begin = next(place for place, entry in enumerate(log.entries) if entry.position >= oldest)
                writer.reopen(max(0, begin - count))
            case "native":
                log.add(_native())
            case "roll":
                log.roll()
            case "skip":
                log.skip(count)
    return log


@settings(max_examples=300)
@given(steps=_steps(*KINDS))
def test_every_record_is_served_once_and_in_order_whatever_was_lost_or_written_twice(steps: Steps) -> None:
    log = _play(steps)
    folded = log.folded()
    expected: dict[int, int] = {}
    for item, entry in zip(folded, log.entries, strict=True):
        assert item.base_offset == entry.index - entry.content.offset_count + 1
        offset = item.base_offset
        for (header, _), verdict in zip(entry.content.batches, item.verdicts, strict=True):
            if verdict.accepted:
                assert verdict.base_offset == offset
                if header.producer_id >= 0:
                    assert header.base_sequence == expected.get(header.producer_id, header.base_sequence)
                    expected[header.producer_id] = header.base_sequence + header.offset_count
            offset += header.offset_count
        assert offset == item.next_offset
    if log.entries:
        assert folded[-1].next_offset == log.entries[-1].index + 1


@given(steps=_steps(*KINDS), receipts=st.sets(st.integers(0, 60)))
def test_receipts_and_reading_come_to_the_same(steps: Steps, receipts: set[int]) -> None:
    log = _play(steps)
    mixed = _fold_from(log, 0)
    for number, (entry, read) in enumerate(zip(log.entries, log.folded(), strict=True)):
        if (
            number in receipts
            and (entry.content.writer or b"").startswith(WRITERS[0])
            and mixed.is_adjacent(*entry.position)
        ):
            other = mixed.by_receipt(entry.position, entry.content)
            mixed.check_again(entry.position, entry.index)
        else:
            other = mixed.by_reading(*entry_of(entry))
        assert (read.verdicts, read.base_offset, read.next_offset) == (
            other.verdicts,
            other.base_offset,
            other.next_offset,
        )


@settings(max_examples=300)  # what it looks for takes several steps in the right order
@given(steps=_steps(*KINDS, "reopen"))
def test_a_fold_that_begins_in_the_middle_comes_to_the_same_wherever_it_is_sure(steps: Steps) -> None:
    log = _play(steps)
    whole = log.folded()
    for begin in range(1, len(log.entries)):
        for known, learnt, entry in zip(whole[begin:], log.folded(begin), log.entries[begin:], strict=True):
            assert (learnt.base_offset, learnt.next_offset) == (known.base_offset, known.next_offset)
            for one, other in zip(learnt.verdicts, known.verdicts, strict=True):
                assert one is UNJUDGED or one.accepted == other.accepted, entry
            assert learnt.conclusive == (UNJUDGED not in learnt.verdicts)


@settings(max_examples=300)
@given(steps=_steps(*KINDS, "reopen"))
def test_who_goes_back_as_far_as_a_fold_asks_comes_to_a_verdict(steps: Steps) -> None:
    log = _play(steps)
    for begin in range(1, len(log.entries)):
        for number, folded in enumerate(log.folded(begin), begin):
            learnt = folded
            went_back = begin
            while learnt.sure_from is not None:
                further = max(
                    (place for place, entry in enumerate(log.entries) if entry.position <= learnt.sure_from), default=0
                )
                assert further < went_back
                went_back = further
                learnt = log.folded(further)[number - further]


def test_each_batch_of_an_entry_has_a_verdict_of_its_own() -> None:
    fold = Fold()
    fold.by_reading(Position(1, 0), 1, _content(WRITERS[0], 0, (1, 0, 2)))
    shared = _content(WRITERS[0], 1, (1, 100, 3), (2, 0, 2), (1, 0, 2), (1, 2, 1), (-1, -1, 1))
    folded = fold.by_receipt(Position(1, 1), shared)
    assert [(verdict.error, verdict.base_offset) for verdict in folded.verdicts] == [
        (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1),
        (ErrorCode.NONE, 5),
        (ErrorCode.NONE, 0),  # a duplicate, answered with its first offset
        (ErrorCode.NONE, 9),
        (ErrorCode.NONE, 10),
    ]
    assert [verdict.accepted for verdict in folded.verdicts] == [False, True, False, True, True]
    assert (folded.base_offset, folded.next_offset) == (2, 11)
    assert (fold.producers.states[1].last, fold.producers.states[2].last) == (2, 1)


@settings(max_examples=300)
@given(
    steps=_steps(*KINDS, "reopen"), begins=st.tuples(st.integers(0, 40), st.integers(0, 40)), further=st.integers(0, 5)
)
def test_a_fold_that_learns_from_an_earlier_one_knows_as_much(
    steps: Steps, begins: tuple[int, int], further: int
) -> None:
    """The earlier one has come to where the later one began, or further."""
    log = _play(steps)
    if not log.entries:
        return
    began, later = sorted(min(begin, len(log.entries) - 1) for begin in begins)
    if began == later:
        return
    half = (later + len(log.entries)) // 2
    reached = min(later + further, half + 1)
    earlier, fold, expected = (_fold_from(log, begin) for begin in (began, later, began))
    for one, entries in (
        (fold, log.entries[later : half + 1]),
        (earlier, log.entries[began:reached]),
        (expected, log.entries[began:]),
    ):
        for entry in entries:
            one.by_reading(*entry_of(entry))
    fold.learn(earlier)
    for entry in log.entries[half + 1 :]:
        fold.by_reading(*entry_of(entry))
    for name in ("first_offset", "replayed_from", "last_position", "next_offset"):
        assert getattr(fold, name) == getattr(expected, name), name
    assert dict(fold.writers) == dict(expected.writers)
    assert dict(fold.producers.states.items()) == dict(expected.producers.states.items())
    assert dict(fold.producers.unsure) == dict(expected.producers.unsure)


@example(  # the first offset is missing, so all that is seen first counts as expired: also what a later fold sees
    steps=[
        ("send", 0, 1, 1),
        ("send", 1, 1, 1),
        ("skip", 0, 0, 1),
        ("receive", 1, 0, 1),
        ("receive", 0, 0, 1),
        ("send", 0, 0, 1),
        ("receive", 0, 0, 1),
    ],
    places=[1],
)
@given(steps=_steps(*KINDS), places=st.lists(st.integers(0, 40), min_size=1, max_size=4))
def test_a_fold_that_learns_piece_by_piece_knows_all_in_the_end(steps: Steps, places: list[int]) -> None:
    log = _play(steps)
    if not log.entries:
        return
    begins = sorted({0, *(min(place, len(log.entries) - 1) for place in places)}, reverse=True)
    fold = _fold_from(log, begins[0])
    for entry in log.entries[begins[0] :]:
        fold.by_reading(*entry_of(entry))
    for end, begin in pairwise(begins):
        piece = _fold_from(log, begin)
        for entry in log.entries[begin:end]:
            piece.by_reading(*entry_of(entry))
        fold.learn(piece)
    whole = _whole(log)
    assert dict(fold.producers.states.items()) == dict(whole.producers.states.items())
    assert not fold.producers.unsure
    assert dict(fold.writers) == dict(whole.writers)


def _whole(log: Log) -> Fold:
    fold = _fold_from(log, 0)
    for entry in log.entries:
        fold.by_reading(*entry_of(entry))
    return fold


@pytest.mark.parametrize("lost", [0, 10], ids=["a copy of the first", "one that is ahead"])
@pytest.mark.parametrize(
    "expired_to", [None, 0, 1], ids=["no", "by its first batch", "by its first batch and what stands behind"]
)
def test_what_two_writers_knew_counts_in_turn_though_the_producer_has_expired_for_the_reader(
    expired_to: int | None, lost: int
) -> None:
    """For one of them it had expired, for the other it had not. Both had folded as far."""
    log, (one, other) = Log(), WRITERS
    log.add(_content(one, 0, (7, 0, 1), basis=Basis(Position(-1, -1), [UNKNOWN_PRODUCER])))
    log.add(_content(one, 1, (1, 0, 1), basis=Basis(Position(1, 0), [UNKNOWN_PRODUCER])))
    log.add(_content(one, 2, (7, lost, 1), basis=Basis(Position(1, 1), [KnownProducer(0, 0)])))
    log.add(_content(other, 0, (7, 20, 1), basis=Basis(Position(1, 1), [UNKNOWN_PRODUCER])))
    fold = _fold_from(log, 0)
    fold.by_reading(*entry_of(log.entries[0]))
    fold.by_reading(*entry_of(log.entries[1]))
    if expired_to is not None:
        fold.producers.states.times.note(Position(1, expired_to), 0)
        fold.producers.states.times.note(Position(1, 2), 2 * DAY_MS)
    assert fold.by_reading(*entry_of(log.entries[2])).verdicts[0].is_hidden
    assert fold.by_reading(*entry_of(log.entries[3])).verdicts[0].accepted


def test_a_past_that_ends_elsewhere_is_an_alarm() -> None:
    fold, earlier = Fold(Position(1, 1)), Fold()
    fold.by_reading(Position(1, 1), 2, _content(WRITERS[0], 1, (1, 2, 2)))
    earlier.by_reading(Position(1, 0), 1, _content(WRITERS[0], 0, (1, 0, 2)))
    with pytest.raises(IndexAlarm, match="reaches offset 2"):
        fold.learn(earlier)


def test_an_index_that_comes_back_is_an_alarm() -> None:
    fold = Fold()
    content = _content(WRITERS[0], 0, (1, 0, 2))
    fold.by_reading(Position(1, 0), 9, content)
    with pytest.raises(IndexAlarm):
        fold.by_reading(Position(1, 1), 10, _content(WRITERS[0], 1, (1, 2, 2)))


def test_a_receipt_that_the_log_contradicts_is_an_alarm() -> None:
    fold = Fold()
    fold.by_reading(Position(1, 0), 1, _content(WRITERS[0], 0, (1, 0, 2)))
    fold.by_receipt(Position(1, 1), _content(WRITERS[0], 1, (1, 2, 2)))
    fold.check_again(Position(1, 1), 3)
    with pytest.raises(IndexAlarm):
        fold.check_again(Position(1, 1), 4)


def test_an_entry_nobody_can_read_takes_its_offsets() -> None:
    fold = Fold()
    fold.by_reading(Position(1, 0), 1, _content(WRITERS[0], 0, (1, 0, 2)))
    folded = fold.unreadable(Position(1, 1), 4)
    assert (folded.base_offset, folded.next_offset) == (2, 5)
    assert folded.verdicts[0].error is ErrorCode.CORRUPT_MESSAGE


def test_what_only_others_have_told_of_a_producer_is_told_on_with_the_place_where_they_stood() -> None:
    """Retention has taken what stood there. Whoever reads it must not take it for what a fold has found in the log."""
    fold = Fold(Position(3, 0))
    fold.producers.begins_expired = True
    late = BatchSequence(7, 0, 2, 2)
    fold.by_reading(Position(3, 0), 0, _content(b"a", 0, (7, 2, 1), basis=Basis(Position(2, 6), [KnownProducer(0, 3)])))
    assert fold.known_to_judge(late) == (0, 3)
    assert Basis.decode(fold.basis_with([late], [KnownProducer(0, 3)])).folded_to == (2, 6)
    later = BatchSequence(7, 0, 10, 10)
    assert fold.known_to_judge(later) is None, "others may have written it up to there"
    assert Basis.decode(fold.basis_with([later], [UNKNOWN_PRODUCER])).folded_to == (3, 0)


def test_of_a_batch_that_comes_in_two_entries_the_first_copy_counts() -> None:
    """An entry that several batches share is taken apart, and lands as a whole between its parts."""
    none = (NO_PRODUCER_ID, NO_SEQUENCE, 1)

    def counts(*landed: Sequence[int]) -> list[list[bool]]:
        log = Log()
        for numbers in landed:
            log.add(_content(WRITERS[0], numbers[0], *[none] * len(numbers)))
        return [[verdict.accepted for verdict in folded.verdicts] for folded in log.folded()]

    for parts_before in range(4):
        parts = [(5,), (6,), (7,)]
        before, entry, behind = (
            [True] * parts_before,
            [number >= parts_before for number in range(3)],
            [False] * (3 - parts_before),
        )
        landed = [*parts[:parts_before], (5, 6, 7), *parts[parts_before:], (8,)]
        assert counts(*landed) == [*[[one] for one in before], entry, *[[one] for one in behind], [True]]
