"""What is said of a batch before it is sent: by what is on its way, or by what the log has, whichever is further."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from kafka_sidecar.partition.fold.producers import ProducerTable
from kafka_sidecar.partition.log.basis import BatchSequence
from kafka_sidecar.partition.write.append import Append
from kafka_sidecar.partition.write.in_flight import BatchesInFlight
from kafka_sidecar.partition.write.precheck import is_next_of_producer, precheck
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import MAX_SEQUENCE, read_produced
from tests.support.batches import batch
from tests.support.partitions import Outcome

PRODUCER = 7
NONE, OUT_OF_ORDER = ErrorCode.NONE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def in_flight(*sent: tuple[int, int]) -> BatchesInFlight:
    """Epochs and sequences of batches of one record."""
    found = BatchesInFlight()
    for epoch, sequence in sent:
        data = batch(b"v", producer_id=PRODUCER, epoch=epoch, sequence=sequence)
        found.add(Append.of(read_produced(data), data, 0.0, Mock(Outcome), 0))
    return found


def folded(*written: tuple[int, int]) -> ProducerTable:
    table = ProducerTable()
    table.knows_the_past = True
    for number, (epoch, sequence) in enumerate(written):
        one = BatchSequence(PRODUCER, epoch, sequence, sequence)
        table.record(one, number, Position(1, number), 0)
    return table


@pytest.mark.parametrize(
    ("log", "sent", "asked", "told"),
    [
        ([(0, 0)], [], (0, 1), NONE),
        ([(0, 0)], [(0, 1)], (0, 2), NONE),
        ([(0, 0)], [(0, 1)], (0, 3), OUT_OF_ORDER),
        ([(0, 0), (0, 1), (0, 2)], [(0, 1)], (0, 3), NONE),
        ([(0, 0), (0, 1), (0, 2)], [(0, 1)], (0, 4), OUT_OF_ORDER),
        ([(0, 0), (1, 0)], [(0, 1)], (1, 1), NONE),
        ([(0, 0), (1, 0)], [(0, 1)], (0, 2), ErrorCode.INVALID_PRODUCER_EPOCH),
        ([(0, 0)], [(1, 0)], (1, 1), NONE),
        ([(0, MAX_SEQUENCE), (0, 0)], [(0, MAX_SEQUENCE)], (0, 1), NONE),
        ([(0, MAX_SEQUENCE)], [(0, 0)], (0, 1), NONE),
    ],
)
def test_whichever_is_further_says_what_comes_next(
    log: list[tuple[int, int]], sent: list[tuple[int, int]], asked: tuple[int, int], told: ErrorCode
) -> None:
    epoch, sequence = asked
    producers, on_its_way = folded(*log), in_flight(*sent)
    verdict = precheck(producers, on_its_way, BatchSequence(PRODUCER, epoch, sequence, sequence), has_all=True)
    assert (verdict.error, verdict.duplicate) == (told, False)
    if is_next_of_producer(producers, on_its_way, PRODUCER, epoch, sequence):
        assert verdict.accepted, "the short way takes nothing that the long way refuses"


def test_a_batch_that_the_log_has_already_does_not_take_the_short_way() -> None:
    producers, on_its_way = folded((0, 0), (0, 1), (0, 2)), in_flight((0, 1))
    assert not is_next_of_producer(producers, on_its_way, PRODUCER, 0, 2)
    assert precheck(producers, on_its_way, BatchSequence(PRODUCER, 0, 2, 2), has_all=True).duplicate
