"""What a partition keeps in memory because it was written, for a thousand of them."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable

from handler.partition.fold.fold import Fold
from handler.partition.log.basis import BatchSequence
from handler.pulsar.entry import Position
from tests.partition.faults import not_mended_yet


def kept_by(use: Callable[[Fold], None]) -> int:
    """Bytes."""
    fold = Fold()
    fold.begin_empty(0)
    gc.collect()
    tracemalloc.start()
    try:
        use(fold)
        gc.collect()
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


def test_a_partition_that_was_written_keeps_little() -> None:
    def write(fold: Fold) -> None:
        fold._advance(Position(10_000, 0), 0, 0)
        for entry in range(1, 5_000):
            fold.append_own(b"w", entry, 10_000, entry, 3, 1, -1, -1, -1, -1)

    assert kept_by(write) < 16 * 1024


@not_mended_yet("a producer that has ended is kept as objects")
def test_a_producer_that_has_ended_takes_64_bytes() -> None:
    producers = 5_000

    def write(fold: Fold) -> None:
        for number in range(producers):
            once = BatchSequence((number << 40) + 12_345, 0, 0, 0)
            fold.producers.record(once, number, Position(10_000, number), 1_700_000_000_000 + number)

    assert kept_by(write) < producers * 100
