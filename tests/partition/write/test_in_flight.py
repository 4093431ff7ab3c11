"""Batches on their way: which share an entry, and in what order they stay whatever becomes of it."""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.partition.write.append import Append
from kafka_sidecar.partition.write.in_flight import BASIS_BYTES, BatchesInFlight
from kafka_sidecar.wire.control_records import EndTransactionMarker, write_marker
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import read_header, read_produced
from tests.support.batches import batch
from tests.support.partitions import Outcome


@pytest.fixture
async def in_flight() -> BatchesInFlight:
    return BatchesInFlight()


def add(
    in_flight: BatchesInFlight, *values: bytes, producer_id: int = -1, sequence: int = -1, epoch: int = 0
) -> Append:
    data = batch(*values, producer_id=producer_id, epoch=epoch if producer_id >= 0 else -1, sequence=sequence)
    append = Append.of(read_produced(data), data, asyncio.get_running_loop().time() + 5, Outcome(), 0)
    in_flight.add(append)
    return append


def sequences(in_flight: BatchesInFlight) -> list[tuple[int, int]]:
    """Each entry's writer sequence, and how many batches it has."""
    return [(sequence, len(entry.appends)) for sequence, entry in in_flight.entries.items()]


def producers(in_flight: BatchesInFlight) -> list[tuple[int, int]]:
    """Of entries of one batch: each one's writer sequence and producer."""
    return [(sequence, entry.appends[0].producer_id) for sequence, entry in in_flight.entries.items()]


async def test_an_entry_has_what_waited_up_to_a_number_and_a_size(in_flight: BatchesInFlight) -> None:
    size = len(add(in_flight, b"0").data) + BASIS_BYTES
    for _ in range(5):
        add(in_flight, b"0")
    in_flight.next_entry(100, 2 * size)
    in_flight.next_entry(3, 100 * size)
    assert sequences(in_flight) == [(0, 2), (2, 3)]
    assert len(in_flight.waiting) == 1
    large = add(in_flight, b"0" * 1_000)
    in_flight.next_entry(100, 2 * size)
    _, entry = in_flight.next_entry(100, 2 * size)
    assert entry.appends == [large], "one alone, however large"
    assert (len(in_flight), bool(in_flight)) == (7, True)


async def test_an_entry_has_no_more_offsets_than_a_send_can_name(in_flight: BatchesInFlight) -> None:
    for _ in range(3):
        add(in_flight, b"0").offset_count = 2**30
    counts = [in_flight.next_entry(100, 10_000)[1].offset_count for _ in range(2)]
    assert counts == [2**30] * 2


async def test_what_is_missing_is_of_the_same_epoch(in_flight: BatchesInFlight) -> None:
    add(in_flight, b"a", producer_id=1, sequence=1)
    add(in_flight, b"b", producer_id=1, sequence=0, epoch=1)
    behind = add(in_flight, b"c", producer_id=1, sequence=1, epoch=1)
    assert in_flight.is_missing_before(behind)


async def test_the_next_batch_of_a_producer_follows_what_waits(in_flight: BatchesInFlight) -> None:
    first = add(in_flight, b"a", producer_id=1, sequence=0)
    in_flight.next_entry(1, 1_000)
    second = add(in_flight, b"b", producer_id=1, sequence=1)
    assert in_flight.last_of(1) is second
    copy = Append.of(read_produced(bytes(first.data)), bytes(first.data), 0.0, Outcome(), 0)
    assert in_flight.retry_target(copy) is first
    in_flight.remove(0)
    assert in_flight.retry_target(copy) is None
    assert in_flight.remove_all_waiting() == [second]
    assert in_flight.last_of(1) is None
    assert not in_flight


async def test_one_whose_time_is_over_takes_with_it_what_its_producer_wrote_behind_it(
    in_flight: BatchesInFlight,
) -> None:
    now = asyncio.get_running_loop().time()
    first = add(in_flight, b"0", producer_id=1, sequence=0)
    late = add(in_flight, b"1", producer_id=1, sequence=1)
    other = add(in_flight, b"0", producer_id=2, sequence=0)
    behind = add(in_flight, b"2", producer_id=1, sequence=2)
    without = [add(in_flight, b"w"), add(in_flight, b"w")]
    late.deadline = without[0].deadline = now
    in_flight.expire_waiting(now)
    assert list(in_flight.waiting) == [first, other, without[1]]
    assert in_flight.last_of(1) is first
    assert not any(one.is_awaited for one in (late, behind, without[0]))


async def test_entries_that_are_taken_apart_keep_their_places_and_their_bytes(in_flight: BatchesInFlight) -> None:
    expected = [bytes(add(in_flight, b"%d" % number).data) for number in range(6)]
    for batches in (1, 3, 2):
        in_flight.next_entry(batches, 10_000)
    in_flight.take_apart()
    assert sequences(in_flight) == [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1), (5, 1)]
    assert [bytes(entry.data) for entry in in_flight.entries.values()] == expected
    in_flight.remove(5)  # it landed: those before it were refused by the broker, and are numbered behind it
    in_flight.renumber_overtaken(reached=5)
    assert [sequence for sequence, entry in in_flight.entries.items() if entry.was_sent] == [6, 7, 8, 9]


async def test_an_entry_is_of_use_as_long_as_any_of_its_batches_is(in_flight: BatchesInFlight) -> None:
    first = add(in_flight, b"w")
    add(in_flight, b"0", producer_id=1, sequence=0)
    _, entry = in_flight.next_entry(2, 10_000)
    assert entry.has_producer
    first.refuse(ErrorCode.REQUEST_TIMED_OUT)
    assert entry.is_awaited


async def test_what_was_overtaken_and_what_its_producers_wrote_behind_it_is_numbered_anew(
    in_flight: BatchesInFlight,
) -> None:
    for producer_id in (1, 1, 2, 3, 2, 4):
        add(in_flight, b"x", producer_id=producer_id, sequence=0)
    for batches in (1, 2, 1, 2):
        in_flight.next_entry(batches, 10_000)[1].was_sent = True
    in_flight.remove(3)  # it landed: the two before it were refused by the broker
    for reached in (3, 4):
        in_flight.renumber_overtaken(reached)
        assert producers(in_flight) == [(5, 4), (6, 1), (7, 1), (8, 2), (9, 2)]


async def test_a_marker_stays_behind_the_batches_that_it_ends(in_flight: BatchesInFlight) -> None:
    for sequence in (0, 1):
        add(in_flight, b"x", producer_id=1, sequence=sequence)
        in_flight.next_entry(1, 10_000)[1].was_sent = True
    for producer_id in (2, 1):
        data = write_marker(producer_id, 0, EndTransactionMarker(True, 1), 1_000)
        in_flight.add(Append.of_marker(data, 100, asyncio.get_running_loop().time() + 5, Outcome(), 0))
        in_flight.next_entry(1, 10_000)[1].was_sent = True
    in_flight.remove(1)
    in_flight.renumber_overtaken(reached=1)
    assert [(number, read_header(entry.data).producer_id) for number, entry in in_flight.entries.items()] == [
        (2, 2),
        (4, 1),
        (5, 1),
    ]


async def test_what_was_not_overtaken_and_may_land_yet_keeps_its_sequence(in_flight: BatchesInFlight) -> None:
    """Only by its sequence is a batch without a producer id known to be sent again."""
    for producer_id in (1, -1, -1, 1, 2):
        add(in_flight, b"x", producer_id=producer_id, sequence=0)
    for batches in (1, 1, 3):  # the last three share an entry
        in_flight.next_entry(batches, 10_000)[1].was_sent = True
    in_flight.remove(1)
    in_flight.renumber_overtaken(reached=1)
    assert producers(in_flight) == [(2, -1), (4, 2), (5, 1), (6, 1)]


async def test_what_a_producer_has_under_way_behind_a_batch_is_refused_and_may_land_where_it_was_sent(
    in_flight: BatchesInFlight,
) -> None:
    before, refused, sent, waits = (add(in_flight, b"0", producer_id=7, sequence=sequence) for sequence in (1, 2, 3, 4))
    another = add(in_flight, b"0", producer_id=8, sequence=0)
    for _ in range(3):
        in_flight.next_entry(1, 10_000)
    in_flight.refuse_behind(refused, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert [one.is_awaited for one in (before, refused, sent, waits, another)] == [True, True, False, False, True]
    assert list(in_flight) == [before, refused, sent, another]
    assert in_flight.last_of(7) is sent
