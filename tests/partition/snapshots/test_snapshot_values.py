"""Values that were kept of one partition: which of them counts, and which are deleted."""

from __future__ import annotations

from typing import cast

import pytest

from kafka_sidecar.internal_topics.snapshot_topic import SnapshotTopic
from kafka_sidecar.partition.fold.extent import Extent
from kafka_sidecar.partition.snapshots.snapshot_values import MOST_REMEMBERED, SnapshotValues
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import Unavailable
from tests.support.memory_states import MemoryStates


def of(states: MemoryStates) -> SnapshotValues:
    return SnapshotValues(b"kind", "t-partition-0", cast("SnapshotTopic", states))


def all_up_to(entry: int) -> Extent:
    return Extent(None, Position(1, entry))


def between(began: int, entry: int) -> Extent:
    return Extent(Position(1, began), Position(1, entry))


async def surest(states: MemoryStates) -> tuple[Extent, bytes | None]:
    values = of(states)
    found = await values.surest()
    assert found is not None
    kept = await values.value(found[0])
    return found[1], None if kept is None else kept.value


async def test_nothing_is_there_at_first() -> None:
    values = of(MemoryStates())
    assert await values.surest() is None
    assert await values.surest_ends_last()


async def test_what_began_earliest_counts_and_of_that_what_ends_last() -> None:
    states = MemoryStates()
    for extent in (between(5, 90), all_up_to(10), between(3, 95)):
        await of(states).store(extent, str(extent).encode())
    assert await surest(states) == (all_up_to(10), str(all_up_to(10)).encode())
    assert not await of(states).surest_ends_last()
    await of(states).store(all_up_to(20), b"later")
    assert await surest(states) == (all_up_to(20), b"later")


async def test_a_value_is_deleted_once_another_covers_it() -> None:
    states = MemoryStates()
    await of(states).store(between(5, 90), b"not covered")
    values = of(states)
    await of(states).store(all_up_to(10), b"covered")
    await values.surest()
    await values.store(all_up_to(20), b"first")
    await values.delete_covered()
    await values.store(all_up_to(30), b"second")
    await values.delete_covered()
    assert sorted(states.values.values()) == [b"not covered", b"second"]


async def test_one_that_lands_late_neither_replaces_another_nor_is_preferred() -> None:
    states = MemoryStates()
    late = of(states)
    sent: list[tuple[bytes, bytes]] = []
    store = states.store

    async def hangs(key: bytes, value: bytes) -> None:
        sent.append((key, value))
        raise Unavailable("nobody can tell whether it was stored")

    states.store = hangs  # type: ignore[method-assign]
    with pytest.raises(Unavailable):
        await late.store(all_up_to(10), b"old")
    states.store = store  # type: ignore[method-assign]
    await of(states).store(all_up_to(50), b"new")
    await store(*sent[0])
    assert await surest(states) == (all_up_to(50), b"new")
    await late.store(all_up_to(60), b"newest")
    await late.delete_covered()
    assert await surest(states) == (all_up_to(60), b"newest")
    assert b"old" not in states.values.values()


async def test_two_that_end_at_the_same_entry_do_not_delete_each_other() -> None:
    states = MemoryStates()
    first, second = of(states), of(states)
    for values in (first, second):
        await values.surest()
    for values in (first, second):
        await values.store(all_up_to(10), b"the same")
    for values in (first, second):
        await values.delete_covered()
    assert await surest(states) == (all_up_to(10), b"the same")


async def test_of_two_that_tell_the_same_one_stays_also_where_each_sidecar_knows_the_other_one() -> None:
    states = MemoryStates()
    first, second = of(states), of(states)
    for values in (first, second):
        await values.store(all_up_to(10), b"the same")
    for values in (first, second):
        await values.surest()
    for values in (first, second):
        await values.delete_covered()
    assert list(states.values.values()) == [b"the same"]


async def test_what_is_gone_with_its_topic_covers_nothing() -> None:
    states = MemoryStates()
    first, second = of(states), of(states)
    await first.store(all_up_to(20), b"gone")
    states.values.clear()
    states.remade += 1
    await second.store(all_up_to(10), b"of the topic that was made anew")
    await first.surest()
    await first.delete_covered()
    assert list(states.values.values()) == [b"of the topic that was made anew"]


async def test_what_is_passed_over_stays_for_others() -> None:
    states = MemoryStates()
    await of(states).store(all_up_to(10), b"of use to others")
    await of(states).store(between(5, 20), b"of use")
    values = of(states)
    found = await values.surest()
    assert found is not None
    values.pass_over(found[0], is_gone=False)
    assert (await values.surest() or (b"", None))[1] == between(5, 20)
    assert await surest(states) == (all_up_to(10), b"of use to others")


async def test_what_is_passed_over_is_found_no_more_however_much_that_is() -> None:
    states = MemoryStates()
    there = 2 * MOST_REMEMBERED
    for entry in range(there):
        await of(states).store(all_up_to(entry), b"torn")
    values, looks = of(states), 0
    while looks <= there and (found := await values.surest()) is not None:
        values.pass_over(found[0], is_gone=False)
        looks += 1
    assert looks == there
    states.values.clear()
    assert await values.surest() is None
    assert not values._passed_over


async def test_keys_that_nobody_here_has_made_are_passed_over() -> None:
    states = MemoryStates()
    prefix = b"kind:t-partition-0\0"
    states.values |= {prefix + key: b"x" for key in (b"", b":1", b":1.x:2", b"1:2.3:4", b"1.2.3:4.5:6")}
    states.values[b"kind:t-partition-01\0:1.5:1"] = b"of another partition"
    assert await of(states).surest() is None


async def test_while_nothing_is_stored_what_is_remembered_is_bounded() -> None:
    states = MemoryStates()
    values = of(states)
    states.is_away = True
    for entry in range(3 * MOST_REMEMBERED):
        with pytest.raises(Unavailable):
            await values.store(all_up_to(entry), b"x")
    assert len(values._known) == len(values._own) == MOST_REMEMBERED


async def test_what_is_of_use_to_nobody_is_deleted_when_another_is_stored() -> None:
    states = MemoryStates()
    await of(states).store(all_up_to(10), b"retention took what stood behind it")
    values = of(states)
    found = await values.surest()
    assert found is not None
    values.pass_over(found[0], is_gone=True)
    assert list(states.values.values()) == [b"retention took what stood behind it"]
    await values.store(between(50, 60), b"new")
    await values.delete_covered()
    assert list(states.values.values()) == [b"new"]


async def test_one_that_can_not_be_read_tells_of_entries_all_the_same() -> None:
    states = MemoryStates()
    await of(states).store(all_up_to(10), b"readable")
    values = of(states)
    assert await values.surest_ends_last()
    await of(states).store(all_up_to(20), b"parts of it are missing")
    found = await values.surest()
    assert found is not None
    values.pass_over(found[0], is_gone=False)
    assert not await values.surest_ends_last()
