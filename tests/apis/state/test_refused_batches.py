"""What a client had sent behind a refused batch is refused, until that batch is back."""

from __future__ import annotations

import math

import pytest

from kafka_sidecar.apis.state import refused_batches
from kafka_sidecar.apis.state.refused_batches import FORGET_SECONDS, Refused, RefusedBatches
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import MAX_SEQUENCE, NO_PRODUCER_ID

ELSEWHERE = ErrorCode.NOT_LEADER_OR_FOLLOWER
PRODUCER = 7


def error(before: Refused | None) -> ErrorCode | None:
    return None if before is None else before.error


def refused(
    first: int = 5, epoch: int = 0, code: ErrorCode = ELSEWHERE, at: float = 1.0, *, is_elsewhere: bool = False
) -> RefusedBatches:
    """Its client has the answer at once."""
    batches = RefusedBatches()
    assert batches.note("p", PRODUCER, epoch, first, code, at, is_elsewhere)
    batches.answered(None, at)
    return batches


def test_the_refused_batch_comes_back_first() -> None:
    batches = refused()
    assert error(batches.before("p", PRODUCER, 0, 6, 2.0)) is ELSEWHERE, "it would be taken for the producer's first"
    assert batches.before("p", PRODUCER, 0, 5, 2.0) is None
    assert batches.before("p", PRODUCER, 0, 6, 2.0) is None
    assert not batches.holds_any(2.0)


def test_the_first_of_several_is_remembered_whatever_is_refused_first() -> None:
    batches = refused(first=6)
    batches.note("p", PRODUCER, 0, 5, ErrorCode.REQUEST_TIMED_OUT, 1.5)
    batches.note("p", PRODUCER, 0, 7, ELSEWHERE, 1.5)
    assert error(batches.before("p", PRODUCER, 0, 6, 2.0)) is ErrorCode.REQUEST_TIMED_OUT
    assert batches.before("p", PRODUCER, 0, 5, 2.0) is None


def test_each_refused_batch_has_to_come_back() -> None:
    batches = refused()
    for sequence in (6, 7):
        batches.note("p", PRODUCER, 0, sequence, ELSEWHERE, 1.0)
    assert batches.before("p", PRODUCER, 0, 5, 2.0) is None
    assert error(batches.before("p", PRODUCER, 0, 8, 2.0)) is ELSEWHERE
    batches.note("p", PRODUCER, 0, 8, ELSEWHERE, 2.0)
    assert [batches.before("p", PRODUCER, 0, sequence, 2.0) for sequence in (6, 7, 8, 9)] == [None] * 4
    assert not batches.holds_any(2.0)


def test_the_second_one_is_waited_for_from_when_it_can_come() -> None:
    """Its client may wait for the answer to the first one's second try."""
    batches = refused(at=1.0)
    batches.note("p", PRODUCER, 0, 6, ELSEWHERE, 1.0)
    batches.answered(None, 1.0)
    assert batches.before("p", PRODUCER, 0, 5, 10.0) is None
    assert error(batches.before("p", PRODUCER, 0, 7, 1.0 + FORGET_SECONDS)) is ELSEWHERE
    assert batches.before("p", PRODUCER, 0, 7, 10.0 + FORGET_SECONDS) is None


def test_one_from_before_the_refused_batch_goes_on() -> None:
    batches = refused()
    assert batches.before("p", PRODUCER, 0, 4, 2.0) is None
    assert error(batches.before("p", PRODUCER, 0, 6, 2.0)) is ELSEWHERE


def test_sequences_begin_again_after_the_greatest() -> None:
    batches = refused(first=MAX_SEQUENCE)
    assert error(batches.before("p", PRODUCER, 0, 0, 2.0)) is ELSEWHERE
    assert batches.before("p", PRODUCER, 0, MAX_SEQUENCE - 1, 2.0) is None


@pytest.mark.parametrize(("partition", "producer", "epoch"), [("q", PRODUCER, 0), ("p", 8, 0), ("p", PRODUCER, 1)])
def test_other_partitions_producers_and_epochs_go_on(partition: str, producer: int, epoch: int) -> None:
    assert refused().before(partition, producer, epoch, 6, 2.0) is None


def test_an_epoch_that_came_late_is_none_of_its_business() -> None:
    """The log fences it."""
    batches = refused(epoch=3)
    assert batches.before("p", PRODUCER, 2, 6, 2.0) is None
    assert batches.note("p", PRODUCER, 2, 1, ELSEWHERE, 2.0)
    assert error(batches.before("p", PRODUCER, 3, 6, 2.0)) is ELSEWHERE


def test_a_client_that_has_given_the_batch_up_is_served() -> None:
    assert refused(at=1.0).before("p", PRODUCER, 0, 9, 1.0 + FORGET_SECONDS) is None


@pytest.mark.parametrize(
    "code", [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_RECORD, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
)
def test_what_is_refused_for_good_is_not_waited_for(code: ErrorCode) -> None:
    assert not refused(code=code).holds_any(1.0)


def test_without_a_producer_id_there_is_no_order_to_keep() -> None:
    batches = RefusedBatches()
    assert batches.note("p", NO_PRODUCER_ID, -1, -1, ELSEWHERE, 1.0)
    assert not batches.holds_any(1.0)


def test_no_connection_has_very_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_batches, "MOST_REFUSED", 2)
    batches = RefusedBatches()
    assert [batches.note(partition, PRODUCER, 0, 0, ELSEWHERE, 1.0) for partition in "abca"] == [
        True,
        True,
        False,
        True,
    ]
    batches.answered(None, 1.0)
    assert batches.note("d", PRODUCER, 0, 0, ELSEWHERE, 1.0 + FORGET_SECONDS), "the oldest are forgotten first"
    assert batches.before("a", PRODUCER, 0, 1, 1.0 + FORGET_SECONDS) is None


def test_no_producer_has_very_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refused_batches, "MOST_OF_A_PRODUCER", 2)
    batches = RefusedBatches()
    assert [batches.note("a", PRODUCER, 0, sequence, ELSEWHERE, 1.0) for sequence in (0, 1, 2, 1)] == [
        True,
        True,
        False,
        True,
    ]
    assert batches.note("b", PRODUCER, 0, 2, ELSEWHERE, 1.0)


def test_what_clients_have_given_up_is_forgotten_also_beside_one_that_comes_again_and_again() -> None:
    batches = RefusedBatches()
    for second in range(100):
        for sequence in (0, 1):
            assert batches.before("down", PRODUCER, 0, sequence, second) is None or sequence == 1
            batches.note("down", PRODUCER, 0, sequence, ELSEWHERE, second)
        batches.note(second, PRODUCER, 0, 0, ELSEWHERE, second)
        batches.answered(None, second)
        assert batches.holds_any(second)
    assert batches._count < 2 * FORGET_SECONDS


def test_a_client_that_went_elsewhere_costs_nothing_after_a_while() -> None:
    batches = refused(at=1.0)
    assert batches.holds_any(1.0)
    assert not batches.holds_any(1.0 + FORGET_SECONDS)


def test_a_batch_is_given_up_only_some_time_after_its_answer_has_left() -> None:
    """The answer stood behind others, and the client sends on before it has looked at it."""
    batches = RefusedBatches()
    batches.note("p", PRODUCER, 0, 5, ELSEWHERE, 1.0)
    late = 1.0 + 2 * FORGET_SECONDS
    batches.answered(0.5, late)  # the answer to an older request has not left
    assert error(batches.before("p", PRODUCER, 0, 9, late)) is ELSEWHERE
    batches.answered(1.5, late)
    assert error(batches.before("p", PRODUCER, 0, 9, late + FORGET_SECONDS - 0.1)) is ELSEWHERE
    assert batches.before("p", PRODUCER, 0, 9, late + FORGET_SECONDS) is None


def test_time_in_which_nothing_is_read_does_not_count() -> None:
    """What was behind waits in the socket, and comes before the batch comes again."""
    batches = refused(at=1.0)
    batches.pause(3.0)
    assert batches.holds_any(3.0 + 2 * FORGET_SECONDS)
    batches.resume(43.0)
    assert error(batches.before("p", PRODUCER, 0, 9, 41.0 + FORGET_SECONDS - 0.1)) is ELSEWHERE
    assert not batches.holds_any(41.0 + FORGET_SECONDS)


def test_pauses_again_and_again_do_not_hold_a_producer_up_for_ever() -> None:
    """It wrote the batch through another sidecar, and is back."""
    batches = refused(at=1.0)
    for second in range(2, 2 + math.ceil(FORGET_SECONDS)):
        batches.pause(second + 0.1)
        assert error(batches.before("p", PRODUCER, 0, 9, second + 0.2)) is ELSEWHERE
        batches.resume(second + 0.3)
    assert not batches.holds_any(1.0 + 2 * FORGET_SECONDS)


def test_an_answer_may_leave_while_nothing_is_read() -> None:
    batches = RefusedBatches()
    batches.pause(0.5)
    batches.note("p", PRODUCER, 0, 5, ELSEWHERE, 1.0)
    batches.answered(None, 20.0)
    batches.resume(30.0)
    assert error(batches.before("p", PRODUCER, 0, 9, 30.0 + FORGET_SECONDS - 0.1)) is ELSEWHERE
    assert not batches.holds_any(30.0 + FORGET_SECONDS)
