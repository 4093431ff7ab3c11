"""A sidecar whose role may not read, write or compact what is kept of logs."""

from __future__ import annotations

import time

import pytest

from kafka_sidecar.internal_topics import refusals, snapshot_places
from kafka_sidecar.internal_topics.snapshot_places import EXPIRY_MS
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import NotPermitted, Unavailable
from tests.support.internal_topic import InternalTopic
from tests.support.snapshot_topics import refused, states


async def test_who_may_not_write_behind_a_deletion_does_not_know_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_places, "SILENT_SECONDS", 0.05)
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    await mine.store(b"a", b"1")
    topic.gives_nothing, topic.compacted_to = True, Position(1, len(topic.entries))
    monkeypatch.setattr(topic, "producer", refused)
    with pytest.raises(Unavailable):
        await other.look_up(b"a")
    other.close()
    mine.close()


async def test_who_may_not_write_finds_what_is_there_though_some_of_it_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    await mine.store(b"old", b"1")
    monkeypatch.setattr(time, "time_ns", lambda: (EXPIRY_MS + 10) * 1_000_000)
    await mine.store(b"a", b"2")
    monkeypatch.setattr(topic, "producer", refused)
    found = await other.look_up(b"a")
    assert found is not None
    assert found.value == b"2"
    other.close()
    mine.close()


@pytest.mark.parametrize("what", ["read", "write"])
async def test_a_missing_right_is_believed_when_it_has_been_told_for_long(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that can't read its policies for a moment tells it too, and whoever believed it would take what is kept
    for lost.
    """
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    await mine.store(b"a", b"1")

    async def asked() -> None:
        await (other.look_up(b"a") if what == "read" else other.store(b"b", b"1"))

    with monkeypatch.context() as patch:
        patch.setattr(topic, "compaction_stats" if what == "read" else "producer", refused)
        for _ in range(2):
            with pytest.raises(Unavailable):
                await asked()
    await asked()
    monkeypatch.setattr(topic, "compaction_stats" if what == "read" else "producer", refused)
    topic.lose()
    with pytest.raises(Unavailable):
        await asked()
    monkeypatch.setattr(refusals, "MEANT_SECONDS", 0.0)
    with pytest.raises(NotPermitted):
        await asked()


async def test_what_is_answered_without_reading_says_nothing_about_the_right_to_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A partition that holds nothing is answered from its stats. Who asks it again and again must not put off what is
    known of another.
    """
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    await mine.store(b"a", b"1")
    with monkeypatch.context() as patch:
        patch.setattr(topic, "reader", refused)
        with pytest.raises(Unavailable):
            await other.look_up(b"a")
    counted = dict(other._refused_reads._counts)
    assert counted
    await mine.store(b"a", b"")
    monkeypatch.setattr(other._shard(b"a")._places, "read_if_not_since", nothing_to_read)
    assert await other.look_up(b"a") is None
    assert other._refused_reads._counts == counted


async def nothing_to_read(_: float) -> bool:
    return False
