"""Whether something is missing of what a shared map's reader brings."""

from __future__ import annotations

import pytest

from kafka_sidecar.internal_topics.shared_map_reader import PERMITS, SharedMapReader
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata


def _comes(reader: SharedMapReader, index: int) -> None:
    metadata = MessageMetadata(producer_name=b"x", sequence_id=0, publish_time=1).SerializeToString()
    reader.on_entry(RawEntry(Position(1, index), index, None, metadata, memoryview(b"")))


@pytest.mark.parametrize("horizon", [None, Position(1, 1)])
async def test_a_reader_ends_where_compaction_takes_what_it_has_not_read(horizon: Position | None) -> None:
    reader = SharedMapReader("facts", lambda *_: None, horizon)
    reader.misses_nothing = True
    for index in (0, 1):
        _comes(reader, index)
    assert not reader.lost.done()
    for index in (3, 4):
        _comes(reader, index)
    assert reader.lost.done()
    assert reader.position == Position(1, 1), "what stands behind it is not believed"


async def test_the_first_entry_that_comes_may_stand_behind_what_compaction_took() -> None:
    """The last entries that are compacted were deletions, which compaction leaves out."""
    reader = SharedMapReader("facts", lambda *_: None, Position(1, 4), last_index=4)
    reader.misses_nothing = True
    _comes(reader, 6)
    assert reader.lost.done()


async def test_an_empty_log_may_go_on_behind_what_retention_has_taken() -> None:
    reader = SharedMapReader("facts", lambda *_: None, horizon=None)
    reader.misses_nothing = True
    _comes(reader, 6)
    assert not reader.lost.done()


async def test_what_is_compacted_leaves_gaps_that_end_no_reader() -> None:
    reader = SharedMapReader("facts", lambda *_: None, Position(1, 5), last_index=5)
    _comes(reader, 1)
    _comes(reader, 3)
    reader.misses_nothing = True  # the last that is compacted is left out
    _comes(reader, 6)
    _comes(reader, 7)
    assert not reader.lost.done()


async def test_a_log_that_lacks_entries_is_read_all_the_same() -> None:
    reader = SharedMapReader("facts", lambda *_: None, horizon=None)
    for index in (1, 4):
        _comes(reader, index)
    assert not reader.lost.done(), "an operator has had a ledger skipped that can't be read"
    assert reader.position == Position(1, 4)


async def test_an_entry_that_nobody_can_read_is_passed_over() -> None:
    reader = SharedMapReader("facts", lambda *_: None, horizon=None)
    reader.misses_nothing = True
    reader.on_entry(RawEntry(Position(1, 0), 0, None, b"no metadata", memoryview(b"")))
    _comes(reader, 1)
    assert not reader.lost.done()
    assert reader.position == Position(1, 1)


async def test_an_entry_that_nobody_can_read_costs_what_the_broker_has_counted() -> None:
    """Else some large ones would take all permits, and no other entry would come."""
    granted: list[int] = []
    reader = SharedMapReader("facts", lambda *_: None, horizon=None)
    reader.begin(granted.append)
    metadata = MessageMetadata(producer_name=b"x", sequence_id=0, publish_time=1, num_messages_in_batch=PERMITS)
    reader.on_entry(RawEntry(Position(1, 0), 0, None, metadata.SerializeToString(), memoryview(b"\xff")))
    assert granted == [PERMITS, PERMITS]
