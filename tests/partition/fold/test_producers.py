"""Kafka's rules of idempotence, against a model that remembers everything."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.partition.fold.log_times import DAY_MS
from kafka_sidecar.partition.fold.producer_state import ANY_SEQUENCE, REMEMBERED_BATCHES, THE_PAST, Unjudged
from kafka_sidecar.partition.fold.producers import UNJUDGED, ProducerTable
from kafka_sidecar.partition.log.basis import UNKNOWN_PRODUCER, Basis, BatchSequence, KnownProducer
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import MAX_SEQUENCE, next_sequence


def _write(table: ProducerTable, batch: BatchSequence, offset: int) -> bool:
    if table.check(batch).accepted:
        table.record(batch, offset, Position(1, offset), 5)
        return True
    return False


def test_a_producer_nobody_knows_may_begin_anywhere() -> None:
    assert ProducerTable().check(BatchSequence(1, 0, 500, 501)).accepted


def test_sequences_wrap() -> None:
    table = ProducerTable()
    assert _write(table, BatchSequence(1, 0, MAX_SEQUENCE - 1, MAX_SEQUENCE), 0)
    assert _write(table, BatchSequence(1, 0, 0, 4), 2)


def test_a_new_epoch_begins_at_zero_and_fences_the_old_one() -> None:
    table = ProducerTable()
    assert _write(table, BatchSequence(1, 0, 0, 4), 0)
    assert table.check(BatchSequence(1, 1, 3, 3)).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert _write(table, BatchSequence(1, 1, 0, 0), 5)
    assert table.check(BatchSequence(1, 0, 5, 5)).error is ErrorCode.INVALID_PRODUCER_EPOCH


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3)), max_size=60))
def test_every_batch_is_there_once_and_duplicates_know_their_offset(attempts: list[tuple[int, int]]) -> None:
    """A producer of batches of 1 to 4 records sends whichever it likes, as often as it likes."""
    table = ProducerTable()
    written: list[tuple[BatchSequence, int]] = []
    expected = 0
    offset = 100
    for number, extra in attempts:
        batch = BatchSequence(9, 0, number, number + extra)
        verdict = table.check(batch)
        recent = [(known, at) for known, at in written[-REMEMBERED_BATCHES:] if known == batch]
        if recent:
            assert verdict.duplicate
            assert verdict.base_offset == recent[0][1]
        elif not written or batch.first == expected:
            assert verdict.accepted
            table.record(batch, offset, Position(1, offset), 5)
            written.append((batch, offset))
            offset += extra + 1
            expected = next_sequence(batch.last, 1)
        else:
            assert verdict.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_what_has_expired_at_the_writer_has_expired_for_everybody() -> None:
    table = ProducerTable()
    assert _write(table, BatchSequence(1, 0, 0, 4), 0)
    assert not table.check(BatchSequence(1, 0, 9, 9)).accepted
    table.adopt_basis(1, Position(1, 50), UNKNOWN_PRODUCER)  # "not known", said by one that had folded up to there
    assert _write(table, BatchSequence(1, 0, 9, 9), 51)
    table.adopt_basis(1, Position(1, 50), UNKNOWN_PRODUCER)  # the next in flight: what landed in between is known here
    assert _write(table, BatchSequence(1, 0, 10, 10), 52)


def test_a_replicated_producer_goes_on_when_its_sequences_begin_again() -> None:
    """What the log has of it began long ago: nothing of before that comes any more."""
    table, step = ProducerTable(), 2**27
    for number in range(40):
        first = number * step % 2**31
        batch = BatchSequence(7, 0, first, first + step - 1)
        assert table.check_replicated(batch).accepted, number
        table.record_replicated(batch, number * step, Position(1, number), 5)
        assert table.check_replicated(batch).duplicate


def test_a_basis_reads_as_it_was_written() -> None:
    for basis in (
        Basis(Position(-1, -1)),
        Basis(Position(2**62, 7), [KnownProducer(3, MAX_SEQUENCE), UNKNOWN_PRODUCER]),
    ):
        assert Basis.decode(basis.encode()) == basis._replace(producers=list(basis.producers))


@pytest.mark.parametrize(
    "text",
    [b"9223372036854775808:0 0 1", b"1:-3 0 1", b"1:2 32768 1", b"1:2 0 2147483648", b"1:2 0 1/9223372036854775808"],
)
def test_a_basis_that_no_writer_says_is_none(text: bytes) -> None:
    """Anybody may have written it. A reader would have to begin at its place, and what was kept could not be read any
    more.
    """
    with pytest.raises(ValueError, match="no number of a basis"):
        Basis.decode(text)


def test_a_retry_of_the_last_batch_is_not_refused_while_that_batch_is_not_known_here() -> None:
    """Only that it was the last one is known, from what a later batch's writer knew."""
    table = ProducerTable()
    table.knows_the_past = True
    table.adopt_basis(1, Position(1, 5), KnownProducer(0, 9))
    assert table.precheck(BatchSequence(1, 0, 9, 9), has_all=False) is UNJUDGED
    assert table.precheck(BatchSequence(1, 0, 11, 11), has_all=False).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert table.precheck(BatchSequence(1, 0, 10, 10), has_all=False).accepted


def test_what_a_writer_knows_too_does_not_take_away_batches_that_are_known() -> None:
    """The producer's first batch here counted because retention has taken what stood before."""
    table = ProducerTable()
    table.begins_expired = table.knows_the_past = True
    batch = BatchSequence(1, 0, 9, 9)
    table.record(batch, 100, Position(2, 0), 5)
    table.adopt_basis(1, Position(2, 0), KnownProducer(0, 9))
    assert table.precheck(batch, has_all=True).base_offset == 100


def test_the_first_batch_that_retention_has_left_is_remembered_when_a_writer_knew_it() -> None:
    """What a writer knew at a place behind it counts more than that it was the first. It is among the last five all the
    same.
    """
    table = ProducerTable()
    table.begins_expired = True
    first, second = BatchSequence(7, 0, 47, 47), BatchSequence(7, 0, 48, 48)
    table.record(first, 70, Position(4, 0), 5)
    table.record(second, 72, Position(5, 0), 5)
    table.adopt_basis(7, Position(4, 1), KnownProducer(0, 47))
    assert [table.check(batch).base_offset for batch in (first, second)] == [70, 72]
    assert table.check(BatchSequence(7, 0, 49, 49)).accepted


def test_whom_a_batchs_writer_knows_is_known_though_it_has_expired_here() -> None:
    """The writer folded by receipts, which tell no times. Whoever reads comes to its verdict."""
    table = ProducerTable()
    assert _write(table, BatchSequence(1, 0, 0, 4), 0)
    table.states.times.note(Position(1, 0), 0)
    table.states.times.note(Position(1, 7), DAY_MS)
    late = Unjudged(BatchSequence(1, 0, 6, 6), 9, Position(1, 9), 5, Position(1, 0), KnownProducer(0, 4))
    assert table.is_judged(late, None)
    assert table.check(late.batch).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_new_epoch_of_an_old_producer_counts_where_others_have_taken_the_room() -> None:
    table = ProducerTable()
    for producer_id in range(90):
        assert _write(table, BatchSequence(producer_id, 0, 0, 0), producer_id)
    table.memory.awake = 1_000_000
    table.record(BatchSequence(0, 1, 0, 0), 90, Position(1, 90), 5)
    assert table.states[0].batches[-1].base_offset == 90
    marker = Unjudged(
        BatchSequence(1, 2, ANY_SEQUENCE, ANY_SEQUENCE), 91, Position(1, 91), 5, Position(1, 90), UNKNOWN_PRODUCER
    )
    table.fence(marker, None)
    assert table.states[1].epoch == 2


def test_what_stands_behind_a_marker_is_not_judged_by_who_has_read_the_marker_alone() -> None:
    """b1 stands there, b0 was refused, and b1's writer knew what comes before b0. The fold began behind that place. Now
    b0 comes again.
    """
    table, began = ProducerTable(), Position(2, 0)
    marker = Unjudged(
        BatchSequence(1, 0, ANY_SEQUENCE, ANY_SEQUENCE), 10, Position(2, 1), 5, Position(1, 9), UNKNOWN_PRODUCER
    )
    table.fence(marker, began)
    table.record_unsure(Unjudged(BatchSequence(1, 0, 5, 5), 11, Position(2, 2), 5, Position(1, 8), KnownProducer(0, 3)))
    again = Unjudged(BatchSequence(1, 0, 4, 4), 12, Position(2, 3), 5, Position(2, 1), KnownProducer(0, ANY_SEQUENCE))
    assert not table.is_judged(again, began)


def test_a_batch_whose_writer_knew_what_stood_before_is_not_judged_by_a_marker_alone() -> None:
    """The marker counts, for the past is known. The batch was on its way for so long that what its writer had folded is
    not known here.
    """
    table, began = ProducerTable(), Position(2, 0)
    table.knows_the_past = True
    table.fence(
        Unjudged(
            BatchSequence(1, 0, ANY_SEQUENCE, ANY_SEQUENCE), 10, Position(2, 1), 5, Position(1, 9), UNKNOWN_PRODUCER
        ),
        began,
    )
    late = Unjudged(BatchSequence(1, 0, 7, 7), 11, Position(2, 2), 5, Position(1, 8), KnownProducer(0, 5))
    assert not table.is_judged(late, began)
    table.record_unsure(late)
    assert table.precheck(BatchSequence(1, 0, 8, 8), has_all=False) is UNJUDGED


def test_what_was_sent_together_in_a_newer_epoch_counts_behind_a_late_marker_of_an_older_one() -> None:
    """Retention has taken the first of them. The writer of the others had read none of that epoch yet."""
    table, began = ProducerTable(), Position(3, 0)
    table.begins_expired = True
    table.fence(
        Unjudged(BatchSequence(1, 1, ANY_SEQUENCE, ANY_SEQUENCE), 36, began, 5, Position(2, 17), UNKNOWN_PRODUCER),
        began,
    )
    for first in (5, 10):
        one = Unjudged(
            BatchSequence(1, 2, first, first + 4), first, Position(3, first), 5, Position(2, 17), KnownProducer(1, 3)
        )
        assert table.is_judged(one, began)
        assert table.check(one.batch).accepted
        table.record(one.batch, one.base_offset, one.position, 5)


def test_a_batch_is_hidden_whose_writer_knew_a_newer_epoch_also_where_retention_has_taken_that() -> None:
    table, began = ProducerTable(), Position(3, 0)
    table.begins_expired = True
    zombie = Unjudged(BatchSequence(1, 1, 7, 7), 39, Position(3, 3), 5, Position(2, 17), KnownProducer(2, 19))
    assert table.is_judged(zombie, began)
    assert table.check(zombie.batch).error is ErrorCode.INVALID_PRODUCER_EPOCH


@pytest.mark.parametrize("late", [BatchSequence(1, 2, 2, 2), BatchSequence(1, 4, 0, 0)], ids=["an old epoch", "a copy"])
def test_what_a_writer_knew_is_the_least_that_its_producer_had_written_where_retention_has_taken_the_rest(
    late: BatchSequence,
) -> None:
    """Two others of the epoch are gone, and were sent together with the last one. The writer of the late batch had read
    one of them.
    """
    table, began = ProducerTable(), Position(3, 0)
    table.begins_expired = True
    one = Unjudged(late, 40, Position(3, 0), 5, Position(2, 6), KnownProducer(4, 0))
    assert table.is_judged(one, began)
    assert not table.check(late).accepted
    last = Unjudged(BatchSequence(1, 4, 2, 2), 41, Position(3, 1), 5, Position(1, 0), KnownProducer(1, 0))
    assert table.is_judged(last, began)
    assert table.check(last.batch).accepted


def test_a_marker_behind_a_late_batch_does_not_begin_an_epoch_of_which_retention_has_taken_the_beginning() -> None:
    table, began = ProducerTable(), Position(6, 0)
    table.begins_expired = True
    zombie = Unjudged(BatchSequence(1, 3, 0, 0), 60, Position(6, 0), 5, Position(5, 2), KnownProducer(4, 2))
    assert table.is_judged(zombie, began)
    assert not table.check(zombie.batch).accepted
    marker = Unjudged(
        BatchSequence(1, 5, ANY_SEQUENCE, ANY_SEQUENCE), 61, Position(7, 0), 5, Position(6, 0), UNKNOWN_PRODUCER
    )
    table.fence(marker, began)
    goes_on = Unjudged(BatchSequence(1, 5, 2, 2), 62, Position(7, 2), 5, Position(5, 5), KnownProducer(5, 1))
    assert table.is_judged(goes_on, began)
    assert table.check(goes_on.batch).accepted
    assert not table.check(BatchSequence(1, 4, 3, 3)).accepted


def test_a_marker_behind_a_batch_that_counts_as_the_first_does_not_begin_its_epoch_either() -> None:
    """The batch came late, in an older epoch. Retention has taken what it followed, and what stood in the marker's
    epoch before it.
    """
    table, began = ProducerTable(), Position(6, 0)
    table.begins_expired = True
    late = Unjudged(BatchSequence(1, 4, 3, 3), 60, Position(6, 0), 5, Position(5, 2), KnownProducer(4, 2))
    assert table.is_judged(late, began)
    table.record(late.batch, 60, late.position, 5)
    marker = Unjudged(
        BatchSequence(1, 5, ANY_SEQUENCE, ANY_SEQUENCE), 61, Position(7, 0), 5, Position(6, 0), UNKNOWN_PRODUCER
    )
    table.fence(marker, began)
    goes_on = Unjudged(BatchSequence(1, 5, 2, 2), 62, Position(7, 2), 5, Position(5, 5), KnownProducer(5, 1))
    assert table.is_judged(goes_on, began)
    assert table.check(goes_on.batch).accepted


@pytest.mark.parametrize(("marked", "is_accepted"), [(1, True), (2, True), (3, False)])
def test_a_late_marker_of_an_older_epoch_says_nothing_where_retention_has_taken_the_rest(
    marked: int, is_accepted: bool
) -> None:
    """A coordinator was answered late, and wrote the marker once more. The producer had gone on in its next epoch, as
    its writer knew.
    """
    table, began = ProducerTable(), Position(3, 0)
    table.begins_expired = True
    table.fence(
        Unjudged(BatchSequence(1, marked, ANY_SEQUENCE, ANY_SEQUENCE), 36, began, 5, Position(2, 17), UNKNOWN_PRODUCER),
        began,
    )
    next_one = Unjudged(BatchSequence(1, 2, 20, 21), 39, Position(3, 3), 5, Position(2, 17), KnownProducer(2, 19))
    assert table.is_judged(next_one, began)
    assert table.check(next_one.batch).accepted is is_accepted


@pytest.mark.parametrize(
    ("marked", "then"), [(0, KnownProducer(1, 3)), (1, KnownProducer(1, 3)), (2, KnownProducer(2, -1))]
)
def test_a_writer_that_has_not_read_a_marker_knows_more_than_the_marker_tells(marked: int, then: KnownProducer) -> None:
    table = ProducerTable()
    table.fence(
        Unjudged(
            BatchSequence(1, marked, ANY_SEQUENCE, ANY_SEQUENCE),
            10,
            Position(2, 1),
            5,
            Position(1, 9),
            UNKNOWN_PRODUCER,
        ),
        None,
    )
    table.adopt_basis(1, Position(2, 0), KnownProducer(1, 3))
    state = table.states.get(1)
    assert state is not None
    assert (state.epoch, state.last) == then


def test_batches_that_were_sent_again_together_count_together_where_their_producer_had_expired() -> None:
    """In the other cluster. Here nothing has expired, and a marker alone is known of the producer."""
    table = ProducerTable()
    table.knows_the_past = True
    nobody = KnownProducer(-1, -1)
    table.fence(Unjudged(BatchSequence(7, 1, ANY_SEQUENCE, ANY_SEQUENCE), 5, Position(1, 5), 5, THE_PAST, nobody), None)
    for first, known in ((0, nobody), (2, KnownProducer(1, -1))):
        batch, position = BatchSequence(7, 1, first, first + 1), Position(1, 6 + first)
        one = Unjudged(batch, 6 + first, position, 5, THE_PAST, known, b"writer", first, sent_again=True)
        assert table.is_judged(one, None)
        assert table.check_replicated(batch).accepted
        table.record_replicated(batch, 6 + first, position, 5)
