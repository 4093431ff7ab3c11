"""The fetch cache: one budget for all, runs without a hole, the oldest goes first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.partition.read.fetch_cache import ENTRY_OVERHEAD, CachedEntry, FetchCache, PartitionCache
from kafka_sidecar.wire.control_records import placeholder
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import split_batches
from tests.support.batches import batch

DATA = batch(b"a", b"b")


def _put(cache: PartitionCache, *bases: int) -> None:
    for base in bases:
        cache.put(CachedEntry(base, base + 2, DATA, ErrorCode.NONE))


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
    cache.put(CachedEntry(2, 3, None, ErrorCode.CORRUPT_MESSAGE))
    before = cache.run(0, 10**6, True)
    assert before is not None
    assert (before.next_offset, before.error) == (2, ErrorCode.NONE)
    at = cache.run(2, 10**6, True)
    assert at is not None
    assert (at.parts, at.error) == ([], ErrorCode.CORRUPT_MESSAGE)


def test_a_hole_is_served_as_a_placeholder_over_its_offsets() -> None:
    cache = FetchCache(10**6).partition()
    cache.put(CachedEntry.hole(5, 9))
    run = cache.run(6, 10**6, True)
    assert run is not None
    assert run.next_offset == 9
    assert run.parts == [placeholder(5, 4)]


# --- read-ahead


class Reader:
    """Holds entries, and drops all of them when it is told to."""

    def __init__(self, cache: FetchCache) -> None:
        self.cache = cache
        self.given_up = 0
        self.account = cache.partition().read_ahead(self.give_up)

    def give_up(self) -> None:
        self.given_up += 1
        self.account.close()


def test_recent_batches_give_way_first_and_then_the_reader_whose_consumer_has_not_come_for_longest() -> None:
    cache = FetchCache(10_000)
    recent = cache.partition()
    _put(recent, 0)
    first, second, third = Reader(cache), Reader(cache), Reader(cache)
    first.account.take(3_000)
    second.account.take(3_000)
    assert recent.has(0)
    third.account.take(3_900)
    assert not recent.has(0)
    first.account.touch()
    third.account.take(3_000)
    assert [reader.given_up for reader in (first, second, third)] == [0, 1, 0]
    assert cache.ahead == 3_000 + 3_900 + 3_000


def test_one_entry_is_held_however_large_it_is() -> None:
    cache = FetchCache(1_000)
    small, large = Reader(cache), Reader(cache)
    small.account.take(500)
    large.account.take(5_000)
    assert (small.given_up, large.given_up, cache.ahead) == (1, 0, 5_000)


def test_readers_have_equal_parts() -> None:
    cache = FetchCache(1_000)
    readers = [Reader(cache) for _ in range(4)]
    assert readers[0].account.allowance == 250
    readers[3].account.close()
    assert readers[0].account.allowance == 333


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.integers(1, 400)), max_size=60))
def test_whatever_is_held_stays_within_the_budget(steps: list[tuple[int, int, int]]) -> None:
    cache = FetchCache(1_000)
    recent = cache.partition()
    readers = [Reader(cache) for _ in range(6)]
    for number, (at, what, size) in enumerate(steps):
        if readers[at].account not in cache.readers:  # it gave up for others, and takes nothing more
            readers[at] = Reader(cache)
        reader = readers[at]
        match what:
            case 0 if not reader.account.held or reader.account.held + size <= reader.account.allowance:
                reader.account.take(size)
            case 1:
                reader.account.touch()
            case 2:
                reader.account.release(min(size, reader.account.held))
            case 3:
                _put(recent, 2 * number)
        assert cache.ahead == sum(one.held for one in cache.readers)
        assert cache.ahead <= max(1_000, *(one.held for one in cache.readers)) if cache.readers else not cache.ahead
        assert cache.used + cache.ahead <= 1_000 + ENTRY_OVERHEAD + len(DATA)


def test_of_an_entry_of_several_batches_a_fetch_gets_those_that_it_asks_for() -> None:
    batches = [batch(b"a", b"b"), batch(b"c"), batch(b"d", b"e")]
    cache = FetchCache(10**6).partition()
    cache.put(CachedEntry(10, 15, bytearray().join(batches), ErrorCode.NONE))
    _put(cache, 15)

    def bases(offset: int, max_bytes: int) -> tuple[list[int], int]:
        run = cache.run(offset, max_bytes, True)
        assert run is not None
        assert run.size == sum(map(len, run.parts))
        return [header.base_offset for part in run.parts for header, _ in split_batches(part)], run.next_offset

    assert bases(10, 10**6) == ([10, 12, 13, 15], 17)
    assert bases(11, 10**6) == ([10, 12, 13, 15], 17), "the batch that holds the offset, whole"
    assert bases(12, 10**6) == ([12, 13, 15], 17)
    assert bases(14, 10**6) == ([13, 15], 17)
    assert bases(10, len(batches[0]) + len(batches[1])) == ([10, 12], 13)
    assert bases(12, 1) == ([12], 13), "at least one batch, not the whole entry"
    refused = cache.run(12, 1, False)
    assert refused is not None
    assert refused.parts == []


def test_what_a_partition_must_know_leaves_less_room_for_batches() -> None:
    size = len(DATA) + ENTRY_OVERHEAD
    cache = FetchCache(4 * size)
    first, second = cache.partition(), cache.partition()
    _put(first, 0, 2, 4, 6)
    second.set_fixed(2 * size)
    assert [first.has(base) for base in (0, 2, 4, 6)] == [False, False, True, True]
    second.set_fixed(size)
    _put(first, 8)
    assert first.has(4)
    second.clear()
    assert cache.fixed == 0
