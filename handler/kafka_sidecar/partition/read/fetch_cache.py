"""Batches of all partitions, within one byte budget: recent ones, and what readers of old data have read ahead.

Where room is needed, the oldest recent batches go first. Then whole readers do, the one first whose consumer has not
come for longest: it comes again, and a new reader brings the rest. A reader that holds bytes never waits for more.
"""

from __future__ import annotations

import bisect
import struct
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final, NamedTuple

from kafka_sidecar.wire.control_records import PLACEHOLDER_SIZE, placeholder
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import whole_batches, with_base_offsets

_OFFSET_AND_LENGTH: Final = struct.Struct(">qi")
BATCH_OVERHEAD: Final = 12  # Base offset and batch length, which the batch length does not count, in bytes
# The memory of a cached entry beside its bytes (objects, dict and list slots), measured with tracemalloc.
ENTRY_OVERHEAD: Final = 600
MIN_ORDER: Final = 1_000
# Timestamp indexes may take 1/8 of the cache budget.
INDEXES_SHARE: Final = 8
# Catch-up readers may use 1/4 of the cache budget, whatever else the cache holds.
LEAST_SHARE: Final = 4


class CachedEntry:
    """The Kafka bytes of one entry. They get their offsets when first read: most are never read here."""

    __slots__ = ("_data", "_has_offsets", "base_offset", "error", "next_offset", "size")

    def __init__(self, base_offset: int, next_offset: int, data: bytes | bytearray | None, error: ErrorCode) -> None:
        """`data`: the batches as they were written, without their offsets; None for offsets without records."""
        self.base_offset = base_offset
        self.next_offset = next_offset
        self.error = error
        self._data = data
        self._has_offsets = False
        self.size = PLACEHOLDER_SIZE if data is None else len(data)

    @classmethod
    def hole(cls, base_offset: int, next_offset: int) -> CachedEntry:
        """Offsets that no entry has: a gap in the log."""
        return cls(base_offset, next_offset, None, ErrorCode.NONE)

    def kafka_bytes(self) -> bytes | bytearray:
        if self._data is None:
            return placeholder(self.base_offset, self.next_offset - self.base_offset)
        if not self._has_offsets:
            self._data = with_base_offsets(self._data, self.base_offset)
            self._has_offsets = True
        return self._data


class FetchedRun(NamedTuple):
    """Consecutive batches from an offset on."""

    parts: list[bytes | bytearray]
    size: int
    next_offset: int
    error: ErrorCode

    def before(self, end: int) -> FetchedRun:
        """Of these batches those that stand before `end`, where one begins."""
        parts = []
        for part in self.parts:
            size = _size_before(part, end)
            parts.append(part if size == len(part) else part[:size])
            if size < len(part):
                break
        return FetchedRun(
            [part for part in parts if part], sum(map(len, parts)), min(self.next_offset, end), self.error
        )


def _size_before(data: bytes | bytearray, end: int) -> int:
    at = 0
    while at < len(data):
        base_offset, length = _OFFSET_AND_LENGTH.unpack_from(data, at)
        if base_offset >= end:
            break
        at += length + BATCH_OVERHEAD
    return at


class ReadAhead:
    """The account of one reader of old data."""

    __slots__ = ("_cache", "_give_up", "held")

    def __init__(self, cache: FetchCache, give_up: Callable[[], None]) -> None:
        self._cache = cache
        self._give_up = give_up  # This callback drops all entries of the reader and calls `close`
        self.held = 0
        cache.readers[self] = None

    @property
    def allowance(self) -> int:
        """How far this one may run ahead, with as many as there are."""
        cache = self._cache
        return max(cache.budget // LEAST_SHARE, cache.budget - cache.fixed - cache.indexed) // len(cache.readers)

    def take(self, size: int) -> None:
        self.held += size
        self._cache.ahead += size
        self._cache.make_room(self)

    def release(self, size: int) -> None:
        self.held -= size
        self._cache.ahead -= size

    def touch(self) -> None:
        """Its consumer has come."""
        if self in self._cache.readers:
            self._cache.readers.move_to_end(self)

    def give_up(self) -> None:
        self._give_up()

    def close(self) -> None:
        self._cache.readers.pop(self, None)
        self.release(self.held)


class FetchCache:
    __slots__ = ("_order", "_order_limit", "ahead", "budget", "fixed", "indexed", "indexes", "readers", "used")

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.used = 0  # Bytes of recent batches
        self.ahead = 0  # Bytes that catch-up readers have read ahead
        self.readers: OrderedDict[ReadAhead, None] = (
            OrderedDict()
        )  # The reader whose consumer fetched least recently stands first
        self.fixed = 0  # Bytes that can't be evicted, such as the transaction state of partitions
        self.indexed = 0  # Bytes of timestamp indexes
        self.indexes: OrderedDict[Callable[[], None], int] = (
            OrderedDict()
        )  # The callback that drops an index → its bytes; the least recently used index stands first
        self._order: deque[tuple[PartitionCache, int]] = deque()
        self._order_limit = MIN_ORDER

    def partition(self) -> PartitionCache:
        return PartitionCache(self)

    def hold_index(self, let_go: Callable[[], None], size: int) -> None:
        """An index is in use. All together take a part of the budget: those that were not used for longest are let
        go.
        """
        self.indexed += size - self.indexes.pop(let_go, 0)
        self.indexes[let_go] = size
        while self.indexed > self.budget // INDEXES_SHARE and len(self.indexes) > 1:
            other, held = self.indexes.popitem(last=False)
            self.indexed -= held
            other()
        self._evict(keep=0)

    def hold_fixed(self, more: int) -> None:
        """What can't be let go, so that other things have less room."""
        self.fixed += more
        self._evict(keep=0)

    def release_index(self, let_go: Callable[[], None]) -> None:
        self.indexed -= self.indexes.pop(let_go, 0)

    def _added(self, partition: PartitionCache, entry: CachedEntry) -> None:
        self.used += entry.size + ENTRY_OVERHEAD
        order = self._order
        order.append((partition, entry.base_offset))
        # Readers and closed partitions have dropped entries whose keys are still here.
        if len(order) > self._order_limit:
            self._order = order = deque(item for item in order if item[0].has(item[1]))
            self._order_limit = max(MIN_ORDER, 2 * len(order))
        if self._is_too_much(self.used):
            self._evict(keep=1)

    def _is_too_much(self, used: int) -> bool:
        return used + self.ahead + self.indexed + self.fixed > self.budget

    def _evict(self, keep: int) -> None:
        while self._is_too_much(self.used) and len(self._order) > keep:
            oldest, base = self._order.popleft()
            self.used -= oldest.drop(base)

    def make_room(self, wanting: ReadAhead) -> None:
        self._evict(keep=0)
        while self._is_too_much(0):
            other = next((reader for reader in self.readers if reader.held and reader is not wanting), None)
            if other is None:
                return  # A single entry is larger than the budget, or bytes that can't be evicted fill it
            other.give_up()
            assert not other.held


class PartitionCache:
    __slots__ = ("_bases", "_cache", "_entries", "_fixed")

    def __init__(self, cache: FetchCache) -> None:
        self._cache = cache
        self._entries: dict[int, CachedEntry] = {}
        self._bases: list[int] = []
        self._fixed = 0

    def set_fixed(self, size: int) -> None:
        """How many bytes the partition needs for what it must know."""
        if size != self._fixed:
            more, self._fixed = size - self._fixed, size
            self._cache.hold_fixed(more)

    def read_ahead(self, give_up: Callable[[], None]) -> ReadAhead:
        """An account for one more reader."""
        return ReadAhead(self._cache, give_up)

    def put(self, entry: CachedEntry) -> None:
        base = entry.base_offset
        if base in self._entries:
            return
        self._entries[base] = entry
        if not self._bases or base > self._bases[-1]:
            self._bases.append(base)
        else:
            bisect.insort(self._bases, base)
        self._cache._added(self, entry)

    def has(self, base: int) -> bool:
        return base in self._entries

    def drop(self, base: int) -> int:
        """Forget one entry; returns what that frees."""
        entry = self._entries.pop(base, None)
        if entry is None:
            return 0
        at = bisect.bisect_left(self._bases, base)
        del self._bases[at]
        return entry.size + ENTRY_OVERHEAD

    def clear(self) -> None:
        for base in list(self._bases):
            self._cache.used -= self.drop(base)
        self.set_fixed(0)

    def _holding(self, offset: int) -> CachedEntry | None:
        entry = self._entries.get(offset)
        if entry is not None:
            return entry
        at = bisect.bisect_right(self._bases, offset) - 1
        if at < 0:
            return None
        entry = self._entries[self._bases[at]]
        return entry if offset < entry.next_offset else None

    def run(self, offset: int, max_bytes: int, at_least_one: bool) -> FetchedRun | None:
        """Batches from the one that holds `offset` on, whole ones only. None: not here.

        An entry may hold several. After the first one only whole entries are taken, so that most are not looked into.
        """
        entry = self._holding(offset)
        if entry is None:
            return None
        if entry.error is not ErrorCode.NONE:
            return FetchedRun([], 0, offset, entry.error)
        first = entry.kafka_bytes()
        reached = entry.next_offset
        if offset > entry.base_offset or len(first) > max_bytes:
            begin, end, reached = whole_batches(first, offset, max_bytes)
            if end - begin < len(first):
                first = first[begin:end]
        if len(first) > max_bytes and not at_least_one:
            return FetchedRun([], 0, offset, ErrorCode.NONE)
        parts = [first]
        size = len(first)
        if reached < entry.next_offset:
            return FetchedRun(parts, size, reached, ErrorCode.NONE)
        entries = self._entries
        while size < max_bytes:
            following = entries.get(reached)
            if following is None or following.error is not ErrorCode.NONE or size + following.size > max_bytes:
                break
            data = following.kafka_bytes()
            parts.append(data)
            size += len(data)
            reached = following.next_offset
        return FetchedRun(parts, size, reached, ErrorCode.NONE)
