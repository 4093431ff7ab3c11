"""States of producers that have not written for a while, in some forty bytes each instead of a thousand. Pure.

    id ── hash ──▶ page: rows of a few dozen producers, one behind the other ──▶ row: id, length, numbers

A page is an immutable string of bytes, so a copy of all is a copy of the list of pages, and may be read in a thread.
There is one page more for each 32 rows that are added, and making it moves the rows of one other page (linear hashing):
nothing ever takes long. Pages are kept in Pulsar as they are here. A change of the hash or the rows needs another key
in `producer_snapshots`, and another field for `Fold.known`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Final

from kafka_sidecar.partition.fold.producer_state import REMEMBERED_BATCHES, Before, ProducerState, WrittenBatch
from kafka_sidecar.partition.log.basis import KnownProducer
from kafka_sidecar.pulsar.entry import Position

_ROWS_OF_A_PAGE: Final = 32
_ID_BYTES: Final = 8
_HEAD_BYTES: Final = _ID_BYTES + 2
# Memory overhead of a page in CPython, in bytes: object header, pointer in the list and alignment.
_PAGE_OVERHEAD: Final = 33 + 8 + 15

_EXPIRED, _BEGAN, _FILLED, _FOLLOWS = 1, 2, 4, 8
_COUNT_SHIFT: Final = 4
_FIRST: Final = 128
# Varint bytes with the continuation bit set.
_GO_ON: Final = bytes(range(0x80, 0x100))
# A varint has at most ten bytes of seven bits each, so ten continuation bytes in a row are invalid.
_LONG: Final = re.compile(b"[\x80-\xff]{10}")
# Varints of at most 27 and 55 bits plus a sign. Then the sums of all deltas in a row fit in 32 and 64 bits.
_SMALL: Final = b"[\x80-\xff]{0,3}[\x00-\x7f]"
_LARGE: Final = b"[\x80-\xff]{0,7}[\x00-\x7f]"
_INT32: Final = 2**31
_INT64: Final = 2**63


class PackedStates:
    __slots__ = ("_pages", "_rows", "_swept", "size")

    def __init__(self) -> None:
        self._pages: list[bytes] = [b""]
        self._rows = 0
        self._swept = 0
        self.size = _PAGE_OVERHEAD  # approximate memory in bytes

    def __len__(self) -> int:
        return self._rows

    def __contains__(self, producer_id: int) -> bool:
        return self._rows > 0 and self._find(self._pages[self._page_of(producer_id)], producer_id) is not None

    def that_follow(self) -> Iterator[tuple[int, ProducerState]]:
        """Those whose earlier batches are missing."""
        for page in self._pages:
            for producer_id, begin, end in _rows(page):
                if page[begin + _HEAD_BYTES] & _FOLLOWS:
                    yield producer_id, _unpacked(page, begin + _HEAD_BYTES, end)

    def items(self) -> Iterator[tuple[int, ProducerState]]:
        for page in self._pages:
            for producer_id, begin, end in _rows(page):
                yield producer_id, _unpacked(page, begin + _HEAD_BYTES, end)

    @classmethod
    def of_pages(cls, pages: Sequence[bytes]) -> PackedStates:
        """As `pages` were; ValueError where they never were."""
        found = cls()
        found._pages = list(pages) or [b""]
        for number, page in enumerate(found._pages):
            ids = [_checked(page, *row) for row in _rows(page)]
            if any(found._page_of(producer_id) != number for producer_id in ids) or len(set(ids)) < len(ids):
                raise ValueError(f"page {number} of {len(pages)} has others' producers")
            found._rows += len(ids)
        found.size = sum(map(len, found._pages)) + _PAGE_OVERHEAD * len(found._pages)
        return found

    @property
    def pages(self) -> Sequence[bytes]:
        return self._pages

    def copy(self) -> PackedStates:
        copied = PackedStates()
        copied._pages, copied._rows, copied.size = self._pages.copy(), self._rows, self.size
        return copied

    def add(self, producer_id: int, state: ProducerState) -> None:
        """Of a producer that is not in it."""
        body = _packed(state)
        row = producer_id.to_bytes(_ID_BYTES, "little", signed=True) + len(body).to_bytes(2, "little") + body
        self._pages[self._page_of(producer_id)] += row
        self._rows += 1
        self.size += len(row)
        if self._rows > _ROWS_OF_A_PAGE * len(self._pages):
            self._split()

    def pop(self, producer_id: int) -> ProducerState | None:
        number = self._page_of(producer_id)
        page = self._pages[number]
        found = self._find(page, producer_id)
        if found is None:
            return None
        begin, end = found
        state = _unpacked(page, begin + _HEAD_BYTES, end)
        self._replace(number, page[:begin] + page[end:], 1)
        return state

    def place_of_unexpired(self, producer_id: int) -> Position | None:
        """Where a producer has written last; None where it is not here, or had expired before."""
        page = self._pages[self._page_of(producer_id)]
        found = self._find(page, producer_id)
        if found is None or page[found[0] + _HEAD_BYTES] & _EXPIRED:
            return None
        return _place(page, found[0] + _HEAD_BYTES, found[1])

    def expire_first(self, is_known: Callable[[int], bool]) -> None:
        """A producer that was unknown when it came had expired before, unless it is known now."""
        for number, page in enumerate(self._pages):
            flags = [
                begin + _HEAD_BYTES
                for one, begin, _ in _rows(page)
                if page[begin + _HEAD_BYTES] & _FIRST and not is_known(one)
            ]
            if flags:
                changed = bytearray(page)
                for place in flags:
                    changed[place] |= _EXPIRED
                self._pages[number] = bytes(changed)

    def _replace(self, number: int, page: bytes, fewer: int) -> None:
        self.size += len(page) - len(self._pages[number])
        self._pages[number] = page
        self._rows -= fewer

    def sweep(self, pages: int, has_expired: Callable[[int, Position], bool]) -> bool:
        """Drop those that have expired from the next pages. Whether these were the last."""
        last = min(self._swept + pages, len(self._pages))
        for number in range(self._swept, last):
            page = self._pages[number]
            rows = list(_rows(page))
            kept = [
                page[begin:end]
                for one, begin, end in rows
                if not has_expired(one, _place(page, begin + _HEAD_BYTES, end))
            ]
            if len(kept) < len(rows):
                self._replace(number, b"".join(kept), len(rows) - len(kept))
        self._swept = 0 if last == len(self._pages) else last
        if not self._rows:
            self._pages, self._swept, self.size = [b""], 0, _PAGE_OVERHEAD
        return self._swept == 0

    def _page_of(self, producer_id: int) -> int:
        pages = len(self._pages)
        # Linear hashing: the number of pages at the end of the current round of splits.
        whole = 1 << (pages - 1).bit_length()
        number = _mixed(producer_id) & (whole - 1)
        return number if number < pages else number - whole // 2

    def _split(self) -> None:
        number = len(self._pages) - (1 << (len(self._pages).bit_length() - 1))
        page = self._pages[number]
        self._pages.append(b"")
        stay: list[bytes] = []
        go: list[bytes] = []
        for producer_id, begin, end in _rows(page):
            (stay if self._page_of(producer_id) == number else go).append(page[begin:end])
        self._pages[number], self._pages[-1] = b"".join(stay), b"".join(go)
        self.size += _PAGE_OVERHEAD

    @staticmethod
    def _find(page: bytes, producer_id: int) -> tuple[int, int] | None:
        key = producer_id.to_bytes(_ID_BYTES, "little", signed=True)
        if key not in page:
            return None
        return next(((begin, end) for one, begin, end in _rows(page) if one == producer_id), None)


def _count(flags: int) -> int:
    """How many batches a row holds."""
    return (flags & ~_FIRST) >> _COUNT_SHIFT


def _mixed(producer_id: int) -> int:
    """Ids may be 1, 2, 3, or random, or differ in their upper bits alone."""
    return (((producer_id ^ producer_id >> 32) * 0x9E37_79B9_7F4A_7C15) & 0xFFFF_FFFF_FFFF_FFFF) >> 32


def _rows(page: bytes) -> Iterator[tuple[int, int, int]]:
    """The id of each, and where it begins and ends."""
    begin = 0
    while begin < len(page):
        body = begin + _HEAD_BYTES
        end = body + int.from_bytes(page[begin + _ID_BYTES : body], "little")
        yield int.from_bytes(page[begin : begin + _ID_BYTES], "little", signed=True), begin, end
        begin = end


def _checked(page: bytes, producer_id: int, begin: int, end: int) -> int:
    """The id. ValueError where `_unpacked` would fail: anybody may have written it."""
    body = page[begin + _HEAD_BYTES : end]
    flags = body[0] if body else 0
    if end <= len(page) and _count(flags) <= REMEMBERED_BATCHES and _ordinary(flags).fullmatch(body):
        return producer_id
    count = _count(flags)
    numbers = 5 + 5 * count + bool(flags & _BEGAN) + bool(flags & _FILLED) + 2 * bool(flags & _FOLLOWS)
    ends = body[1:].translate(None, _GO_ON)
    has_shape = (
        end <= len(page)
        and count <= REMEMBERED_BATCHES
        and len(ends) == numbers
        and body[-1] <= 0x7F
        and not _LONG.search(body, 1)
    )
    if not has_shape or not _fits(_unpacked(page, begin + _HEAD_BYTES, end)):
        raise ValueError(f"what is known of producer {producer_id} makes no sense")
    return producer_id


@cache
def _ordinary(flags: int) -> re.Pattern[bytes]:
    """The shape of nearly all rows with these flags. A row of that shape needs no other look."""
    more = bool(flags & _BEGAN) + bool(flags & _FILLED) + 2 * bool(flags & _FOLLOWS)
    batch = 2 * _SMALL + 3 * _LARGE
    return re.compile(b"." + 2 * _LARGE + 2 * _SMALL + _LARGE + more * _SMALL + _count(flags) * batch, re.DOTALL)


def _fits(state: ProducerState) -> bool:
    """Whether its numbers are what Kafka and Pulsar have for them."""
    follows = () if state.follows is None else state.follows.known
    small = [state.epoch, state.last, state.began_at or 0, state.filled_to or 0, *follows]
    large = [*state.at, state.max_timestamp]
    for batch in state.batches:
        small += batch[:2]
        large += [batch.base_offset, *batch.position]
    return min(small) >= -_INT32 and max(small) < _INT32 and min(large) >= -_INT64 and max(large) < _INT64


def _packed(state: ProducerState) -> bytes:
    """The last batch first, each as the difference to the one behind it."""
    flags = len(state.batches) << _COUNT_SHIFT
    numbers = [*state.at[:2], state.epoch, state.last, state.max_timestamp]
    if state.is_first:
        flags |= _FIRST
    if state.has_expired:
        flags |= _EXPIRED
    if state.began_at is not None:
        flags |= _BEGAN
        numbers.append(state.began_at)
    if state.filled_to is not None:
        flags |= _FILLED
        numbers.append(state.filled_to)
    if state.follows is not None:
        flags |= _FOLLOWS  # `follows.seen` is not packed: a snapshot stores these batches separately, as `unjudged`
        numbers += state.follows.known
    last, base_offset, (ledger, entry) = state.last, 0, state.at[:2]
    for batch in reversed(state.batches):
        at = batch.position
        numbers += (
            last - batch.last,
            batch.last - batch.first,
            base_offset - batch.base_offset,
            ledger - at.ledger,
            entry - at.entry,
        )
        last, base_offset, ledger, entry = batch.first, batch.base_offset, at.ledger, at.entry
    packed = bytearray((flags,))
    for number in numbers:
        rest = number << 1 if number >= 0 else ~(number << 1)
        while rest > 0x7F:
            packed.append(rest & 0x7F | 0x80)
            rest >>= 7
        packed.append(rest)
    return bytes(packed)


def _place(page: bytes, begin: int, end: int) -> Position:
    numbers = _numbers(page, begin + 1, end)
    return Position(next(numbers), next(numbers))


def _unpacked(page: bytes, begin: int, end: int) -> ProducerState:
    flags = page[begin]
    numbers = _numbers(page, begin + 1, end)
    ledger, entry = next(numbers), next(numbers)
    epoch, last = next(numbers), next(numbers)
    state = ProducerState(epoch, last, Position(ledger, entry), next(numbers), has_expired=bool(flags & _EXPIRED))
    state.is_first = bool(flags & _FIRST)
    if flags & _BEGAN:
        state.began_at = next(numbers)
    if flags & _FILLED:
        state.filled_to = next(numbers)
    if flags & _FOLLOWS:
        state.follows = Before(KnownProducer(next(numbers), next(numbers)))
    batches = state.batches
    base_offset = 0
    for _ in range(_count(flags)):
        last -= next(numbers)
        first = last - next(numbers)
        base_offset -= next(numbers)
        ledger, entry = ledger - next(numbers), entry - next(numbers)
        batches.appendleft(WrittenBatch(first, last, base_offset, Position(ledger, entry)))
        last = first
    return state


def _numbers(page: bytes, at: int, end: int) -> Iterator[int]:
    value = shift = 0
    for byte in page[at:end]:
        value |= (byte & 0x7F) << shift
        if byte & 0x80:
            shift += 7
            continue
        yield value >> 1 if not value & 1 else ~(value >> 1)
        value = shift = 0
