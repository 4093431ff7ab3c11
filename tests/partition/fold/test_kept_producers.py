"""What is kept of producers: a fold that goes on from it comes to what the fold came to that it was taken from."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.partition.fold import kept as kept_fold
from handler.partition.fold.fold import BEFORE_ALL, Fold
from handler.partition.fold.kept_producers import KnownProducers
from handler.partition.fold.transactions import TransactionTable
from handler.partition.log.basis import Basis, KnownProducer
from handler.partition.log.entries import Content
from handler.pulsar.entry import Position
from handler.wire.records import all_batches
from tests.support.batches import batch

Written = tuple[int, int, int]  # producer, sequence, up to which entry its writer had folded


def contents(written: Sequence[Written]) -> list[Content]:
    found = []
    for number, (producer, sequence, folded_to) in enumerate(written):
        data = batch(b"v", producer_id=producer, epoch=0, sequence=sequence)
        basis = Basis(Position(1, min(folded_to, number - 1)), [KnownProducer(0, sequence - 1)])
        found.append(Content(data, all_batches(data), 1, b"kafka-sidecar-%d" % (number % 3), number, basis, sent_again=sequence % 3 == 0))
    return found


def go_on(fold: Fold, entries: Sequence[Content], first: int) -> list[object]:
    return [fold.by_reading(Position(1, first + number), first + number, content) for number, content in enumerate(entries)]


written = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 6), st.integers(0, 30)), min_size=2, max_size=30)


@given(written, written, st.integers(0, 10))
def test_it_comes_to_the_same_verdicts_wherever_it_began(before: list[Written], after: list[Written], begin: int) -> None:
    entries = contents(before + after)
    begin = min(begin, len(before) - 1)
    fold = Fold(Position(1, begin) if begin else None)
    go_on(fold, entries[begin : len(before)], begin)
    kept = KnownProducers.of(fold)
    restored = KnownProducers.decode(kept.encode()).fold(TransactionTable())
    assert KnownProducers.of(restored) == kept
    table, restored_table, of_a_fold = TransactionTable(), TransactionTable(), Fold()
    table.known_from = BEFORE_ALL
    kept_fold.restore(kept_fold.decode(kept_fold.snapshot(fold, table).encode()), of_a_fold, restored_table)
    assert KnownProducers.of(of_a_fold) == kept, "the fold of a partition with transactions has them too"
    later = entries[len(before) :]
    assert go_on(restored, later, len(before)) == go_on(fold, later, len(before))
    assert KnownProducers.of(restored) == KnownProducers.of(fold)


def test_what_is_kept_is_a_copy() -> None:
    fold = Fold()
    entries = contents([(1, 0, 0), (1, 1, 0)])
    go_on(fold, entries[:1], 0)
    kept = KnownProducers.of(fold)
    encoded = kept.encode()
    go_on(fold, entries[1:], 1)
    assert kept.encode() == encoded != KnownProducers.of(fold).encode()


@pytest.mark.parametrize("stored", [b"\xff\xff", b"\x10\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x3a\x08" + bytes(8)])
def test_what_makes_no_sense_is_refused(stored: bytes) -> None:
    """No message, an entry before the first, a producer without its other columns."""
    with pytest.raises(ValueError, match=r"."):
        KnownProducers.decode(stored)
