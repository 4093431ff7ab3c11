"""Values that no entry can hold: stored in parts, found whole or not at all, and deleted with all their parts."""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.internal_topics import snapshot_parts, snapshot_shard
from kafka_sidecar.telemetry import metrics
from tests.support.internal_topic import InternalTopic
from tests.support.snapshot_topics import states, value_of


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_parts, "PART_BYTES", 10)
    monkeypatch.setattr(snapshot_shard, "PART_BYTES", 10)


LARGE = bytes(range(95))
LARGER = bytes(reversed(range(150)))


@pytest.mark.usefixtures("small_parts")
async def test_a_value_that_no_entry_can_hold_is_found_by_every_sidecar_and_leaves_nothing_behind() -> None:
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    assert await mine.keep(b"a", LARGE)
    assert await value_of(other, b"a") == LARGE
    assert await other.keep(b"a", LARGER)
    assert (await mine.look_up(b"a")).value == LARGER  # type: ignore[union-attr]
    await mine.keep(b"a", b"small")
    assert (await states(topic).look_up(b"a")).value == b"small"  # type: ignore[union-attr]
    last = dict(topic.stored())
    assert {key for key, value in last.items() if value is not None} == {b"a"}, "what was replaced is deleted"


@pytest.mark.usefixtures("small_parts")
async def test_a_value_in_parts_is_deleted_with_them() -> None:
    topic = InternalTopic()
    mine = states(topic)
    await mine.keep(b"a", LARGE)
    await mine.keep(b"a", b"")
    assert await states(topic).look_up(b"a") is None
    assert {value for _, value in dict(topic.stored()).items()} == {None}


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("stored", range(12))
async def test_who_dies_between_two_parts_leaves_the_value_before(stored: int) -> None:
    topic = InternalTopic()
    await states(topic).keep(b"a", LARGER)
    before = len(topic.entries)
    dying = states(topic)
    await dying.look_up(b"a")
    await dying.keep(b"a", LARGE)
    del topic.entries[before + stored :]
    found = await states(topic).look_up(b"a")
    assert found is not None
    assert found.value == (LARGE if stored > len(LARGE) // 10 + 1 else LARGER)


@pytest.mark.usefixtures("small_parts")
async def test_two_who_keep_a_value_at_once_are_not_mixed() -> None:
    topic = InternalTopic()
    both = states(topic), states(topic)
    for _ in range(3):
        await asyncio.gather(both[0].keep(b"a", LARGE), both[1].keep(b"a", LARGER))
        assert await value_of(states(topic), b"a") in (LARGE, LARGER)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("missing", [0, 4, 9])
async def test_a_value_of_which_a_part_is_missing_is_none_and_counted(missing: int) -> None:
    topic = InternalTopic()
    mine = states(topic)
    await mine.keep(b"a", LARGE)
    topic.entries[missing] = topic.entries[-1]  # the reader is given the next that is there
    before = metrics.TORN_KEPT_STATES._value.get()
    assert await states(topic).look_up(b"a") is None
    assert await states(topic).find(b"a") is None
    assert metrics.TORN_KEPT_STATES._value.get() > before
    await mine.keep(b"a", LARGER)
    assert await value_of(states(topic), b"a") == LARGER


@pytest.mark.usefixtures("small_parts")
async def test_a_value_in_parts_is_found_while_others_find_that_places_have_changed() -> None:
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    for key in (b"x", b"y"):
        await mine.keep(key, b"1")
    await mine.keep(b"a", LARGE)
    for key in (b"x", b"y", b"a"):
        assert await other.look_up(key)
    for number, key in enumerate((b"x", b"y")):
        await mine.keep(key, b"2")
        topic.entries[number] = topic.entries[2]  # the reader is given the next that is there
    found = await asyncio.gather(*(other.look_up(key) for key in (b"a", b"x", b"y")))
    assert [None if one is None else one.value for one in found] == [LARGE, b"2", b"2"]


@pytest.mark.usefixtures("small_parts")
async def test_parts_of_a_value_that_could_not_be_stored_are_deleted() -> None:
    topic = InternalTopic()
    mine = states(topic)
    await mine.keep(b"b", b"1")
    sending = asyncio.create_task(mine.keep(b"a", LARGE))
    while len(topic.entries) < 5:  # noqa: ASYNC110
        await asyncio.sleep(0)
    topic.lose()
    assert not await sending
    assert await mine.keep(b"a", LARGER)
    live = {key for key, value in dict(topic.stored()).items() if value is not None}
    assert len(live) == 2 + 1 + len(LARGER) // 10 - 1, "two values, and the parts of one"


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("is_stored", [True, False])
async def test_parts_whose_head_got_no_receipt_are_deleted_with_the_next_value(is_stored: bool) -> None:
    topic = InternalTopic()
    mine = states(topic)
    sending = asyncio.create_task(mine.keep(b"a", LARGE))
    while len(topic.entries) < 11:  # noqa: ASYNC110
        await asyncio.sleep(0)
    topic.lose()
    if not is_stored:
        topic.entries.pop()
    assert not await sending
    assert await value_of(states(topic), b"a") == (LARGE if is_stored else None)
    assert await mine.keep(b"a", b"small")
    assert {key for key, value in dict(topic.stored()).items() if value is not None} == {b"a"}


@pytest.mark.usefixtures("small_parts")
async def test_parts_are_deleted_though_the_connection_is_lost_while_they_are() -> None:
    topic = InternalTopic()
    mine = states(topic)
    assert await mine.keep(b"a", LARGE)
    sending = asyncio.create_task(mine.keep(b"a", b"small"))
    while len(topic.entries) < 14:  # noqa: ASYNC110
        await asyncio.sleep(0)
    del topic.entries[13:]
    topic.lose()
    await sending
    assert await mine.keep(b"a", b"smaller")
    assert {key for key, value in dict(topic.stored()).items() if value is not None} == {b"a"}


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("key", [b"a", b"b"])
async def test_values_that_one_sidecar_keeps_at_the_same_time_do_not_harm_each_other(key: bytes) -> None:
    topic = InternalTopic()
    mine = states(topic)
    await mine.keep(b"c", b"1")
    assert all(await asyncio.gather(mine.keep(b"a", LARGE), mine.keep(key, LARGER), mine.keep(b"c", b"2")))
    await mine.keep(b"c", b"3")
    for who in (mine, states(topic)):
        found = await who.look_up(b"a")
        assert found is not None
        assert found.value in ((LARGE, LARGER) if key == b"a" else (LARGE,))
