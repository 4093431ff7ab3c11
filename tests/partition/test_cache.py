"""The fetch cache: one budget for all, runs without a hole, the oldest goes first."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from handler.partition.cache import ENTRY_OVERHEAD, CachedEntry, FetchCache, PartitionCache
from handler.partition.entries import appended
from handler.wire.records import read_produced
from tests.support.batches import batch

DATA = batch(b"a", b"b")


def _put(cache: PartitionCache, *bases: int) -> None:
    for base in bases:
        cache.put(CachedEntry(base, base + 2, appended(DATA, read_produced(DATA), b"w", base, None), ErrorCode.none))


def test_a_run_ends_where_an_entry_is_missing() -> None:
    cache = FetchCache(10**6).partition()
    _put(cache, 0, 2, 6)
    run = cache.run(0, 10**6, True)
    assert run is not None
    assert (len(run.parts), run.next_offset) == (2, 4)
    assert cache.run(4, 10**6, True) is None
    inside = cache.run(3, 10**6, True)
    assert inside is not None
    assert inside.parts == run.parts[1:], "an offset within a batch gets the whole batch"


def test_a_run_keeps_to_the_bytes_asked_for_but_for_its_first_batch() -> None:
    cache = FetchCache(10**6).partition()
    _put(cache, 0, 2, 4)
    assert [len(run.parts) for limit in (1, len(DATA) * 2, 10**6) if (run := cache.run(0, limit, True))] == [1, 2, 3]
    none_at_all = cache.run(0, 1, False)
    assert none_at_all is not None
    assert none_at_all.parts == []


def test_the_oldest_of_all_partitions_goes_first() -> None:
    cache = FetchCache(3 * (len(DATA) + ENTRY_OVERHEAD))
    first, second = cache.partition(), cache.partition()
    _put(first, 0)
    _put(second, 0)
    _put(first, 2, 4)
    assert not first.has(0)
    assert second.has(0)
    assert cache.used <= cache.budget
    _put(first, 6)
    assert not second.has(0)


def test_what_a_partition_drops_is_given_back() -> None:
    cache = FetchCache(10**6)
    partition = cache.partition()
    _put(partition, 0, 2, 4)
    partition.clear()
    assert cache.used == 0
    _put(partition, 0)
    assert cache.used == len(DATA) + ENTRY_OVERHEAD


def test_an_error_is_told_at_its_own_offset_and_not_before() -> None:
    cache = FetchCache(10**6).partition()
    _put(cache, 0)
    cache.put(CachedEntry(2, 3, None, ErrorCode.corrupt_message))
    before = cache.run(0, 10**6, True)
    assert before is not None
    assert (before.next_offset, before.error) == (2, ErrorCode.none)
    at = cache.run(2, 10**6, True)
    assert at is not None
    assert (at.parts, at.error) == ([], ErrorCode.corrupt_message)


def test_a_hole_is_served_as_an_empty_batch_over_its_offsets() -> None:
    cache = FetchCache(10**6).partition()
    cache.put(CachedEntry.hole(5, 9))
    run = cache.run(6, 10**6, True)
    assert run is not None
    assert run.next_offset == 9
    assert len(run.parts[0]) == 61
