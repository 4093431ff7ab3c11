"""What a partition keeps in memory because it was written, for a thousand of them."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Callable

import pytest

from kafka_sidecar.partition.fold.fold import Fold
from kafka_sidecar.partition.fold.producer_states import ProducerMemory
from kafka_sidecar.partition.log.basis import BatchSequence
from kafka_sidecar.pulsar.entry import Position


def kept_by(use: Callable[[], object]) -> int:
    """Bytes of what it returns."""
    gc.collect()
    tracemalloc.start()
    try:
        kept = use()
        gc.collect()
        assert kept is not None
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def write(memory: ProducerMemory, producers: int, batches: int = 1) -> Fold:
    """Each producer writes so many, one producer after another."""
    draw = random.Random(1)
    fold = Fold(memory=memory)
    fold.begin_empty(0)
    entry = 0
    for _ in range(producers):
        producer_id = draw.getrandbits(63)
        for number in range(batches):
            batch = BatchSequence(producer_id, 0, 10 * number, 10 * number + 9)
            fold.producers.record(batch, 10 * entry, Position(10_000, entry), 1_700_000_000_000 + entry)
            entry += 1
    fold.last_position = Position(10_000, entry)
    return fold


def all_asleep(fold: Fold) -> Fold:
    assert fold.last_position is not None
    for _ in range(100):
        fold.producers.states.put_to_sleep(fold.last_position)
    assert not fold.producers.states.awake
    return fold


def test_a_partition_that_was_written_keeps_little() -> None:
    def write() -> Fold:
        fold = Fold()
        fold.begin_empty(0)
        fold._advance(Position(10_000, 0), 0, 0)
        for entry in range(1, 5_000):
            fold.append_own(b"w", entry, 10_000, entry, 3, 1, -1, -1, -1, -1)
        return fold

    assert kept_by(write) < 16 * 1024


def test_a_producer_that_has_ended_takes_64_bytes() -> None:
    producers = 5_000
    assert kept_by(lambda: all_asleep(write(ProducerMemory(), producers))) < producers * 64


@pytest.mark.parametrize("batches", [1, 5])
@pytest.mark.parametrize("rest", [all_asleep, lambda fold: fold], ids=["all asleep", "as they were written"])
def test_the_account_counts_what_is_taken(rest: Callable[[Fold], Fold], batches: int) -> None:
    memory = ProducerMemory()

    def counted() -> Fold:
        fold = rest(write(memory, 2_000, batches))
        memory.count([fold.producers])
        return fold

    taken = kept_by(counted)
    assert 0.9 * taken < memory.used < 2 * taken


def test_a_thousand_partitions_of_five_hundred_producers_stay_within_the_account() -> None:
    partitions, few = 1_000, 20
    # Nobody's memory holds a thousand in a test, so each of twenty gets its part of it.
    memory = ProducerMemory(limit=ProducerMemory().limit * few // partitions)
    folds = [write(memory, 500, 5) for _ in range(few)]
    memory.count(fold.producers for fold in folds)
    assert not memory.is_full
    assert memory.used < 0.9 * memory.limit


def test_50_000_producers_of_a_partition_take_a_sixteenth_of_the_account() -> None:
    memory = ProducerMemory()
    fold = write(memory, 50_000)
    memory.count([fold.producers])
    assert memory.used < memory.limit / 16
