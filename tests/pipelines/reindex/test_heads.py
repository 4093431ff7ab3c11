"""What of a partition has no index, and the pieces in which it is read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.pipelines.copying.places import RecordPlace, number_of, record_place
from kafka_sidecar.pipelines.reindex.heads import PIECE_BYTES, Head, head_of, round_of
from kafka_sidecar.pulsar.entry import LedgerInfo, LogStats, Position
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog


def log_of(old: int, new: int) -> MemoryLog:
    log = MemoryLog()
    for _ in range(old):
        log.append(MessageMetadata(producer_name=b"native", sequence_id=0, publish_time=1), 0, b"v")
        log.entries[-1].last_index = None
    log.roll()
    for _ in range(new):
        log.write(batch(b"a", b"b"))
    return log


async def test_a_head_ends_before_the_first_index() -> None:
    head = await head_of(log_of(old=3, new=2))
    assert head is not None
    assert (head.first, head.last, head.entries, head.first_offset) == (Position(1, 0), Position(1, 2), 3, 0)


async def test_offsets_may_begin_anywhere_behind_it() -> None:
    log = log_of(old=3, new=0)
    log.index = 99
    log.write(batch(b"a", b"b"))
    head = await head_of(log)
    assert head is not None
    assert head.first_offset == 100


async def test_a_log_without_any_index_is_all_head() -> None:
    log = log_of(old=3, new=0)
    log.mark()
    log.entries[-1].last_index = None
    head = await head_of(log)
    assert head is not None
    assert (head.last, head.entries, head.first_offset) == (Position(1, 2), 3, None)
    # What comes next may have none either: the copy stays among places.
    assert round_of("t", 0, head, None, 100).end == number_of(Position(1, 3))


async def test_where_the_interceptor_was_off_for_a_while_what_was_served_before_is_no_head() -> None:
    log = log_of(old=2, new=1)
    log.roll()
    log.append(MessageMetadata(producer_name=b"native", sequence_id=0, publish_time=1), 0, b"v")
    log.entries[-1].last_index = None
    log.roll()
    log.write(batch())
    log.finds_last_stretch = True
    head = await head_of(log)
    assert head is not None
    assert (head.last, head.first_offset) == (Position(1, 1), 0)


async def test_a_log_with_all_indexes_has_no_head() -> None:
    assert await head_of(log_of(old=0, new=2)) is None
    assert await head_of(MemoryLog()) is None


LEDGERS = st.lists(
    st.tuples(st.integers(1, 30), st.sampled_from((1, PIECE_BYTES // 7, 3 * PIECE_BYTES))), min_size=1, max_size=5
)


@given(LEDGERS, st.integers(1, 4 * PIECE_BYTES), st.data())
def test_rounds_read_every_entry_once(sizes: list[tuple[int, int]], most: int, data: st.DataObject) -> None:
    ledgers = tuple(LedgerInfo(2 * number + 1, entries, entries * size) for number, (entries, size) in enumerate(sizes))
    last_ledger = data.draw(st.sampled_from(ledgers))
    last = Position(last_ledger.ledger, data.draw(st.integers(0, last_ledger.entries - 1)))
    head = Head(LogStats(ledgers), Position(1, 0), last, first_offset=17)
    wanted = [
        Position(one.ledger, entry)
        for one in ledgers
        for entry in range(one.entries)
        if Position(one.ledger, entry) <= last
    ]
    read: list[Position] = []
    begin: RecordPlace | None = None
    end = -1
    while end < 0:
        pieces, end, size = round_of("t", 0, head, begin, most)
        assert pieces
        assert size <= most + PIECE_BYTES + 3 * PIECE_BYTES  # an entry may be larger than a piece
        read += [Position(piece.ledger, entry) for piece in pieces for entry in range(piece.first, piece.last + 1)]
        assert all(number_of(at) < end for at in read)
        begin = record_place(end)
    assert (read, end) == (wanted, 17)


def test_an_entry_that_is_copied_in_part_is_read_again() -> None:
    head = Head(LogStats((LedgerInfo(1, 10, 10),)), Position(1, 0), Position(1, 9), 0)
    (piece,), end, _ = round_of("t", 0, head, RecordPlace(Position(1, 4), 2), 100)
    assert (piece.first, piece.last, end) == (4, 9, 0)
