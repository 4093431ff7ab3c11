"""What is kept of producers: a fold that goes on from it comes to what the fold came to that it was taken from."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.partition.fold.fold import BEFORE_ALL, Fold
from kafka_sidecar.partition.fold.known_producers import KnownProducers
from kafka_sidecar.partition.fold.log_times import DAY_MS
from kafka_sidecar.partition.fold.snapshot import decode, restore, snapshot_of
from kafka_sidecar.partition.fold.transactions import TransactionTable
from kafka_sidecar.partition.log.basis import Basis, BatchSequence, KnownProducer
from kafka_sidecar.partition.log.entries import Content
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.wire.records import all_batches
from tests.support.batches import batch

Written = tuple[int, int, int]  # producer, sequence, up to which entry its writer had folded


def contents(written: Sequence[Written]) -> list[Content]:
    found = []
    for number, (producer, sequence, folded_to) in enumerate(written):
        data = batch(b"v", producer_id=producer, epoch=0, sequence=sequence)
        basis = Basis(Position(1, min(folded_to, number - 1)), [KnownProducer(0, sequence - 1)])
        found.append(
            Content(
                data,
                all_batches(data),
                1,
                b"kafka-sidecar-%d" % (number % 3),
                number,
                basis,
                sent_again=sequence % 3 == 0,
            )
        )
    return found


def go_on(fold: Fold, entries: Sequence[Content], first: int) -> list[object]:
    return [
        fold.by_reading(Position(1, first + number), first + number, content) for number, content in enumerate(entries)
    ]


def known(fold: Fold) -> tuple[object, ...]:
    """Whoever is asleep."""
    kept = KnownProducers.of(fold)
    return kept.last, kept.next_offset, kept.began, dict(kept.rows), kept.writers, sorted(kept.unjudged), kept.marks


written = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 6), st.integers(0, 30)), min_size=2, max_size=30)


@given(written, written, st.integers(0, 10))
def test_it_comes_to_the_same_verdicts_wherever_it_began(
    before: list[Written], after: list[Written], begin: int
) -> None:
    entries = contents(before + after)
    begin = min(begin, len(before) - 1)
    fold = Fold(Position(1, begin) if begin else None)
    go_on(fold, entries[begin : len(before)], begin)
    kept = KnownProducers.of(fold)
    restored = KnownProducers.decode(kept.encode()).fold(TransactionTable(), fold.memory)
    assert known(restored) == known(fold)
    table, restored_table, of_a_fold = TransactionTable(), TransactionTable(), Fold()
    table.known_from = BEFORE_ALL
    restore(decode(snapshot_of(fold, table).encode()), of_a_fold, restored_table)
    assert known(of_a_fold) == known(fold), "the fold of a partition with transactions has them too"
    later = entries[len(before) :]
    assert go_on(restored, later, len(before)) == go_on(fold, later, len(before))
    assert known(restored) == known(fold)


def test_what_is_kept_is_a_copy() -> None:
    fold = Fold()
    entries = contents([(1, 0, 0), (1, 1, 0)])
    go_on(fold, entries[:1], 0)
    kept = KnownProducers.of(fold)
    encoded = kept.encode()
    go_on(fold, entries[1:], 1)
    assert kept.encode() == encoded != KnownProducers.of(fold).encode()


def test_what_came_before_the_first_batch_of_another_cluster_is_kept() -> None:
    """Its last sequence, and where the first began: a copy of what lies between is a copy."""
    fold = Fold()
    for offset, first in enumerate((5, 2)):
        fold.producers.record_replicated(BatchSequence(7, 0, first, first), offset, Position(1, offset), 5)
    fold.last_position = Position(1, 1)
    restored = KnownProducers.decode(KnownProducers.of(fold).encode()).fold(TransactionTable(), fold.memory)
    for one in (fold, restored):
        assert [
            one.producers.check_replicated(BatchSequence(7, 0, first, first)).accepted for first in (2, 3, 4, 5, 6)
        ] == [
            False,
            True,
            False,
            False,
            True,
        ]


def test_times_are_kept_so_whoever_goes_on_lets_expire_what_has_expired() -> None:
    fold = Fold()
    fold.producers.record(BatchSequence(7, 0, 0, 0), 0, Position(1, 0), 5)
    fold.producers.states.times.note(Position(1, 0), 1_000)
    restored = KnownProducers.decode(KnownProducers.of(fold).encode()).fold(TransactionTable(), fold.memory)
    assert 7 in restored.producers.states
    restored.producers.states.times.note(Position(1, 9), 1_000 + DAY_MS)
    assert 7 not in restored.producers.states


@pytest.mark.parametrize(
    "stored", [b"\xff\xff", b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x3a\x08" + bytes(8)]
)
def test_what_makes_no_sense_is_refused(stored: bytes) -> None:
    """No message, an entry before the first, a page that ends within a row."""
    with pytest.raises(ValueError, match=r"."):
        KnownProducers.decode(stored)


@given(written, st.integers(1, 28), st.integers(1, 28))
def test_who_began_before_what_was_kept_learns_it_and_then_what_stands_before_that(
    before: list[Written], began: int, kept_from: int
) -> None:
    """Its first entries are none of what was kept. They are read once more, with all before them."""
    entries = contents(before)
    began, kept_from = min(began, len(entries) - 1), min(kept_from, len(entries) - 1)
    folds = {begin: Fold(Position(1, begin)) for begin in (began, kept_from)}
    for begin, fold in folds.items():
        go_on(fold, entries[begin:], begin)
    fold = folds[began]
    fold.learn(
        KnownProducers.decode(KnownProducers.of(folds[kept_from]).encode()).fold(TransactionTable(), fold.memory)
    )
    earlier = Fold()
    go_on(earlier, entries[:kept_from], 0)
    fold.learn(earlier)
    assert fold.replayed_from is None
