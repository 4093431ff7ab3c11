"""A fold that was kept goes on as if it had read the log from where it began."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.partition.fold.fold import BEFORE_ALL, Fold
from kafka_sidecar.partition.fold.left_open import LeftOpen, Undone
from kafka_sidecar.partition.fold.snapshot import decode, restore, snapshot_of
from kafka_sidecar.partition.fold.transactions import TransactionTable
from kafka_sidecar.partition.log.basis import UNKNOWN_PRODUCER, Basis
from kafka_sidecar.partition.log.entries import Content
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.wire.control_records import EndTransactionMarker, write_marker
from kafka_sidecar.wire.records import all_batches
from tests.support.batches import batch

Step = tuple[str, int, int, int]  # what, producer, sequence, number of its transaction
_steps = st.lists(
    st.tuples(
        st.sampled_from(("plain", "batch", "commit", "abort")), st.integers(1, 3), st.integers(0, 6), st.integers(1, 4)
    ),
    max_size=40,
)


def contents(steps: list[Step]) -> list[Content]:
    found = []
    for number, (what, producer, sequence, transaction) in enumerate(steps):
        if what in ("commit", "abort"):
            data = write_marker(producer, 0, EndTransactionMarker(what == "commit", 0), 5)
        else:
            data = batch(b"v", producer_id=producer, epoch=0, sequence=sequence, transactional=what == "batch")
        basis = Basis(Position(-1, -1), [UNKNOWN_PRODUCER], () if what == "plain" else (transaction,))
        found.append(Content(data, all_batches(data), 1, b"kafka-sidecar-w", number, basis, basis.transactions))
    return found


def folded(fold: Fold, entries: list[Content], first: int) -> list[object]:
    return [
        fold.by_reading(Position(1, first + number), first + number, content) for number, content in enumerate(entries)
    ]


def known(fold: Fold, table: TransactionTable) -> tuple[object, ...]:
    """Whoever is asleep."""
    snapshot = snapshot_of(fold, table)
    producers, transactions = snapshot.producers, {name: getattr(table, name) for name in TransactionTable.__slots__}
    return snapshot.fold, dict(producers.rows), sorted(producers.unjudged), transactions


@given(_steps, _steps)
def test_it_comes_to_the_same_verdicts(before: list[Step], after: list[Step]) -> None:
    if not before:
        return
    entries = contents(before + after)
    table, restored_table = TransactionTable(), TransactionTable()
    table.known_from = BEFORE_ALL
    fold, restored = Fold(transactions=table), Fold(transactions=restored_table)
    fold.begin_empty(0)
    folded(fold, entries[: len(before)], 0)
    snapshot = snapshot_of(fold, table)
    assert not snapshot.fold.HasField("transactions"), "the long part is left to a thread"
    data = snapshot.encode()
    assert decode(data).position == Position(1, len(before) - 1)
    restore(decode(data), restored, restored_table)
    assert known(restored, restored_table) == known(fold, table)
    later = entries[len(before) :]
    assert folded(restored, later, len(before)) == folded(fold, later, len(before))
    assert known(restored, restored_table) == known(fold, table)


def test_transactions_that_were_left_open_are_kept() -> None:
    table, restored = TransactionTable(), TransactionTable()
    table.known_from = BEFORE_ALL
    fold = Fold(transactions=table)
    fold.begin_empty(0)
    for number in (5, 6, 7):
        table.append(1, number, number)
    table.end(1, 5, False, 8)
    fold.last_position, fold.next_offset = Position(1, 9), 9
    restore(decode(snapshot_of(fold, table).encode()), Fold(transactions=restored), restored)
    assert list(restored.left_open) == list(table.left_open) == [LeftOpen(1, 6, 6, 7)]
    assert list(restored.undone) == list(table.undone) == [Undone(1, 5, 6)]


@pytest.mark.parametrize("stored", [b"\xff\xff", b"\x08\x05", b"\x10\x01\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"])
def test_what_makes_no_sense_is_refused(stored: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(stored)


def test_one_with_a_million_transactions_is_small() -> None:
    table, restored = TransactionTable(), TransactionTable()
    table.known_from = BEFORE_ALL
    fold = Fold(transactions=table)
    fold.begin_empty(0)
    offset = 0
    for number in range(1_000_000):
        producer = number * 7_919 % 1_000 << 50
        table.append(producer, number + 1, offset)
        table.end(producer, number + 1, number % 10 != 0, offset + 1 + number % 100)
        offset += 2 + number % 100
    fold.last_position, fold.next_offset = Position(1, 2_000_000), offset
    snapshot = snapshot_of(fold, table)
    assert not snapshot.fold.HasField("transactions"), "the long part is left to a thread"
    data = snapshot.encode()
    assert table.aborted_count == 100_000
    assert len(data) < 1_000_000
    restore(decode(data), Fold(transactions=restored), restored)
    assert (
        restored.aborted_between(offset // 2, offset // 2 + 10_000)
        == table.aborted_between(offset // 2, offset // 2 + 10_000)
        != []
    )
