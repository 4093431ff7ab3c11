"""A process that reads a shared map once has all of it, or is told that it has not."""

from __future__ import annotations

import pytest

from kafka_sidecar.pulsar import raw_entries
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from tests.support.internal_topic import InternalTopic
from tests.support.moved_starts import EARLY, LATE, PARTITION, Open, stored, write


async def test_who_looks_once_finds_what_is_stored_or_is_told_that_it_was_not_read(
    topic: InternalTopic, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_entries, "ENTRY_SECONDS", 0.02)
    await opened().put(PARTITION, EARLY)
    assert await stored(topic) == {PARTITION: EARLY}
    topic.gives_nothing = True  # a broker under load
    with pytest.raises(Unavailable, match="was not read to its end"):
        await stored(topic)


async def test_who_looks_once_passes_over_what_nobody_can_read(topic: InternalTopic) -> None:
    write(topic, EARLY, LATE)
    for metadata in (
        b"no metadata",
        MessageMetadata(producer_name=b"w", sequence_id=1, publish_time=1).SerializeToString(),
    ):
        topic.entries.append(
            RawEntry(Position(topic.ledger, len(topic.entries)), None, None, metadata, memoryview(b"no batch"))
        )
    assert await stored(topic) == {PARTITION: LATE}


@pytest.mark.parametrize("is_compacted_so_far", [True, False])
async def test_silence_is_the_end_only_where_compaction_has_come_so_far(
    topic: InternalTopic, opened: Open, monkeypatch: pytest.MonkeyPatch, is_compacted_so_far: bool
) -> None:
    """It leaves out a deletion, also where that is the last entry."""
    monkeypatch.setattr(raw_entries, "ENTRY_SECONDS", 0.02)
    await opened().put(PARTITION, EARLY)
    last = len(topic.entries) - 1
    topic.left_out = {last}
    topic.compacted_to = Position(1, last if is_compacted_so_far else last - 1)
    if is_compacted_so_far:
        assert await stored(topic) == {}
    else:
        with pytest.raises(Unavailable):
            await stored(topic)
