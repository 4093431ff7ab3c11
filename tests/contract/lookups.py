"""Where entries are found by index and by time."""

from __future__ import annotations

from tests.contract.case import ENTRIES_OF_A_LEDGER, World, case, filled, given, scribe


@case("PersistentTopicsBase.internalGetMessageIdByIndex")
async def an_index_is_found_in_the_entry_that_holds_it(world: World) -> None:
    writer = await scribe(world)
    written = [await writer.write(count=count) for count in (1, 3, 1)]
    log = world.log("w")
    assert [await log.find_index(index) for index in range(5)] == [written[0], *[written[1]] * 3, written[2]]


@case("PersistentTopicsBase.internalGetMessageIdByIndex")
async def an_index_that_is_not_there_yet_is_found_nowhere(world: World) -> None:
    await (await scribe(world)).write_all([b"x"] * 3)
    log = world.log("w")
    assert [await log.find_index(index) for index in (3, 4, 1_000)] == [None] * 3


@case("ManagedLedgerImpl.asyncFindPosition")
async def an_index_is_found_over_many_ledgers(world: World) -> None:
    _, written = await filled(world, 3)
    log = world.log("w")
    for index in (0, 1, ENTRIES_OF_A_LEDGER - 1, ENTRIES_OF_A_LEDGER, 2 * ENTRIES_OF_A_LEDGER + 7, len(written) - 1):
        assert await log.find_index(index) == written[index]


@case("ManagedLedgerImpl.asyncFindPosition")
async def an_index_that_retention_has_taken_is_answered_with_the_first_that_is_left(world: World) -> None:
    _, written = await filled(world, 2)
    await world.trim()
    log = world.log("w")
    assert [await log.find_index(index) for index in (0, ENTRIES_OF_A_LEDGER, len(written) - 1)] == [written[-1]] * 3


@case("PersistentTopicsBase.internalGetMessageById")
async def each_entry_tells_its_index(world: World) -> None:
    writer = await scribe(world)
    written = [await writer.write(count=count) for count in (2, 1, 4)]
    log = world.log("w")
    assert [await log.index_of(position) for position in written] == [1, 2, 6]


@case("PersistentTopicsBase.internalGetMessageById")
async def an_entry_that_is_gone_tells_nothing(world: World) -> None:
    _, written = await filled(world, 1)
    await world.trim()
    assert await world.log("w").index_of(written[0]) is None


@case("ManagedLedgerInterceptorImpl.onUpdateManagedLedgerInfo")
async def the_ledgers_metadata_tells_the_last_index_when_a_ledger_has_ended(world: World) -> None:
    await (await scribe(world)).write_all([b"x"] * 5)
    await world.unload()
    await scribe(world)
    assert await world.log("w").index_property() == 4


@case("PersistentTopicsBase.internalGetMessageIdByTimestamp")
async def a_time_is_found_in_the_first_entry_of_that_time_or_later(world: World) -> None:
    await filled(world, 1)
    entries = await given(world, ENTRIES_OF_A_LEDGER + 1)
    log = world.log("w")
    for entry in (entries[0], entries[7], entries[-1]):
        time = entry.broker_timestamp
        assert time is not None
        first = next(one.position for one in entries if (one.broker_timestamp or 0) >= time)
        assert await log.find_time(time) == first


@case("PersistentTopicsBase.internalGetMessageIdByTimestamp")
async def a_time_before_all_entries_is_answered_with_the_first(world: World) -> None:
    written = await (await scribe(world)).write_all([b"0", b"1"])
    assert await world.log("w").find_time(1) == written[0]


@case("PersistentTopicsBase.internalGetMessageIdByTimestamp")
async def a_time_behind_all_entries_is_answered_with_the_place_behind_the_last(world: World) -> None:
    written = await (await scribe(world)).write_all([b"0", b"1"])
    (_, last) = await given(world, 2)
    assert last.broker_timestamp is not None
    assert await world.log("w").find_time(last.broker_timestamp + 100_000) == written[-1].after()


@case("PersistentTopicsBase.internalGetMessageIdByTimestamp")
async def a_time_in_an_empty_topic_is_answered_with_the_place_of_the_first_entry(world: World) -> None:
    writer = await scribe(world)
    found = await world.log("w").find_time(1)
    assert found == await writer.write()


@case("PersistentTopicsBase.internalGetMessageById")
async def the_first_entry_that_has_an_index_is_the_first(world: World) -> None:
    written = await (await scribe(world)).write_all([b"0", b"1"])
    log = world.log("w")
    assert await log.first_indexed() == await log.first_indexed_of_all() == written[0]


@case("PersistentTopicsBase.internalGetMessageById")
async def an_empty_topic_has_no_first_entry(world: World) -> None:
    await scribe(world)
    assert await world.log("w").first_indexed() is None


@case("PersistentTopicsBase.internalGetMessageById")
async def where_no_marker_stands_the_last_entry_is_readable(world: World) -> None:
    _, written = await filled(world, 1)
    assert await world.log("w").last_readable(written[-1], written[0]) == written[-1]
