"""Offsets that were a message's place become continuous ones: looked up, never guessed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.commands.groups.translate import translated
from kafka_sidecar.partition.log.packed_offsets import PackedOffset, Undecided, place_of
from kafka_sidecar.pulsar.entry import LedgerInfo, LogStats, Position
from tests.partition.test_entries_without_index import write_old
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog


def packed(ledger: int, entry: int, in_batch: int) -> int:
    """KoP's MessageIdUtils.getOffset."""
    return (ledger << 44) | (entry << 12) | in_batch


@given(st.integers(1, 2**19), st.integers(0, 2**32 - 1), st.integers(0, 2**12 - 1))
def test_a_packed_offset_is_recognised_and_read(ledger: int, entry: int, in_batch: int) -> None:
    assert PackedOffset.of(packed(ledger, entry, in_batch)) == PackedOffset(ledger, entry, in_batch)


@given(st.integers(0, 2**44 - 1))
def test_a_continuous_offset_is_none(offset: int) -> None:
    assert PackedOffset.of(offset) is None


def ledgers(*numbers: int, entries: int = 10) -> LogStats:
    return LogStats(tuple(LedgerInfo(number, entries, 100) for number in numbers))


@pytest.mark.parametrize(
    ("stats", "place"),
    [
        (ledgers(3, 5, 9), Position(5, 4)),
        (ledgers(3, (1 << 20) + 5), Position((1 << 20) + 5, 4)),  # 20 bits are kept
        (ledgers(7, 9), None),
        (ledgers(), None),
    ],
)
def test_the_place_is_found_in_the_list_of_ledgers(stats: LogStats, place: Position | None) -> None:
    assert place_of(PackedOffset(5, 4, 0), stats) == place


@pytest.mark.parametrize(
    ("stats", "why"),
    [
        (ledgers(5, (1 << 20) + 5), "ledger 5 or 1048581"),
        (ledgers(3, 9), "no ledger"),
        (ledgers(3, 5, entries=2), "no ledger"),
        (ledgers((1 << 20) + 9), "no ledger"),
    ],
)
def test_what_may_be_several_places_or_none_is_not_guessed(stats: LogStats, why: str) -> None:
    with pytest.raises(Undecided, match=why):
        place_of(PackedOffset(5, 4, 0), stats)


async def offset_of(log: MemoryLog, *place: int) -> tuple[int | None, str]:
    done = await translated(log.named("t"), "t", 0, PackedOffset(*place))
    return done.offset, done.text


async def test_a_place_becomes_the_index_that_the_broker_gave_it() -> None:
    log = MemoryLog()
    for _ in range(3):
        log.write(batch(b"a", b"b", b"c"))
    assert await offset_of(log, 1, 1, 0) == (3, "entry 1:1")
    assert await offset_of(log, 1, 1, 2) == (5, "entry 1:1")
    assert await offset_of(log, 1, 1, 3) == (6, "entry 1:1"), "all of the batch was read"
    assert await offset_of(log, 1, 3, 0) == (9, "the end")
    log.roll()
    log.write(batch(b"d"))
    assert await offset_of(log, 1, 3, 0) == (9, "the next entry that there is, 2:0")
    assert (await offset_of(log, 7, 0, 0))[0] is None
    log.trim(3)
    assert (await offset_of(log, 1, 1, 0))[0] == 9, "the log start"


async def test_a_place_from_before_the_interceptor_was_on_is_the_log_start() -> None:
    log = MemoryLog()
    write_old(log, 3)
    log.roll()
    log.index = -1
    log.write(batch(b"new"))
    assert (await offset_of(log, 1, 1, 0))[0] == 0


async def test_of_an_empty_log_it_is_the_end() -> None:
    log = MemoryLog()
    log.write(batch(b"a", b"b"))
    log.trim(1)
    assert (await offset_of(log, 1, 0, 0))[0] == 2
