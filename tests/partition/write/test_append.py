"""An append that has waited goes on; behind one that is refused for a moment, nothing of its producer does."""

from __future__ import annotations

import pytest

from kafka_sidecar.partition.write.append import Append, pass_on
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import read_produced
from tests.support.batches import batch
from tests.support.partitions import Outcome

FULL = ErrorCode.NOT_ENOUGH_REPLICAS


def waiting(producer_id: int, sequence: int) -> Append:
    has_producer = producer_id >= 0
    data = batch(b"value", producer_id=producer_id, epoch=0 if has_producer else -1, sequence=sequence)
    return Append.of(read_produced(data), data, 60.0, Outcome(), 0)


def taken_of(appends: list[Append], first: ErrorCode) -> list[Append]:
    """Those that are taken where the first of all is refused."""
    taken = []

    def take(append: Append, with_it: str) -> None:
        assert with_it == "round"
        if append is appends[0]:
            append.refuse(first)
        else:
            taken.append(append)

    pass_on([(append, "round") for append in appends], take)
    return taken


async def test_what_its_producer_wrote_behind_it_is_refused_likewise() -> None:
    appends = [waiting(1, 0), waiting(2, 0), waiting(1, 1), waiting(-1, -1), waiting(1, 2)]
    assert taken_of(appends, FULL) == [appends[1], appends[3]]
    assert [append.error for append in appends] == [FULL, ErrorCode.NONE, FULL, ErrorCode.NONE, FULL]


@pytest.mark.parametrize(
    "error", [ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.MESSAGE_TOO_LARGE]
)
async def test_behind_one_that_does_not_come_back_the_next_are_judged_for_themselves(error: ErrorCode) -> None:
    """Their producer may have begun a new epoch."""
    appends = [waiting(1, 0), waiting(1, 1)]
    assert taken_of(appends, error) == appends[1:]


async def test_without_a_producer_nothing_stands_behind() -> None:
    appends = [waiting(-1, -1), waiting(-1, -1)]
    assert taken_of(appends, FULL) == appends[1:]
