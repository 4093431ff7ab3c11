"""Ledgers: when they begin and end, and what retention takes."""

from __future__ import annotations

from kafka_sidecar.pulsar.entry import Position
from tests.contract.case import ENTRIES_OF_A_LEDGER, World, audience, case, filled, given, indexes, scribe, until


@case("ManagedLedgerImpl.initialize")
async def an_unload_begins_a_ledger_with_a_greater_id(world: World) -> None:
    before = await (await scribe(world)).write()
    await world.unload()
    after = await (await scribe(world)).write()
    assert after.ledger > before.ledger
    assert after.entry == 0


@case("ManagedLedgerInterceptorImpl.onManagedLedgerLastLedgerInitialize")
async def the_index_goes_on_after_an_unload(world: World) -> None:
    await (await scribe(world)).write(count=4)
    await world.unload()
    await (await scribe(world)).write(count=2)
    assert await indexes(world, 2) == [3, 5]


@case("ManagedLedgerInterceptorImpl.onManagedLedgerPropertiesInitialize")
async def the_index_goes_on_after_an_unload_of_which_nothing_was_written(world: World) -> None:
    await (await scribe(world)).write(count=4)
    await world.unload()
    await scribe(world)
    await world.unload()
    await (await scribe(world)).write()
    assert await indexes(world, 2) == [3, 4]


@case("ManagedLedgerImpl.currentLedgerIsFull")
async def a_full_ledger_ends_and_its_writer_goes_on(world: World) -> None:
    writer, written = await filled(world, 1)
    assert written[-1].ledger > written[0].ledger
    assert written[-1].entry == 0
    assert writer.ended is None


@case("ManagedLedgerImpl.currentLedgerIsFull")
async def the_index_goes_on_over_a_full_ledger(world: World) -> None:
    _, written = await filled(world, 2)
    assert await indexes(world, len(written)) == list(range(len(written)))


@case("ManagedLedgerImpl.currentLedgerIsFull")
async def readers_go_on_over_a_full_ledger(world: World) -> None:
    async with audience(world) as one:
        _, written = await filled(world, 2)
        await until(lambda: len(one.entries) == len(written))
    assert one.positions == written


@case("ManagedLedgerImpl.getLedgersInfo")
async def ledgers_are_told_with_their_entries(world: World) -> None:
    _, written = await filled(world, 2)
    stats = await world.log("w").stats()
    assert [(one.ledger, one.entries) for one in stats.ledgers] == [
        (written[0].ledger, ENTRIES_OF_A_LEDGER),
        (written[ENTRIES_OF_A_LEDGER].ledger, ENTRIES_OF_A_LEDGER),
        (written[-1].ledger, 1),
    ]
    assert (stats.first, stats.last) == (written[0], written[-1])


@case("ManagedLedgerImpl.getManagedLedgerInternalStats")
async def an_empty_topic_has_no_ledger_with_entries(world: World) -> None:
    await scribe(world)
    stats = await world.log("w").stats()
    assert (stats.first, stats.last) == (None, None)


@case("ManagedLedgerImpl.getManagedLedgerInternalStats")
async def a_ledger_that_has_nothing_yet_is_left_out(world: World) -> None:
    written = await (await scribe(world)).write()
    await world.unload()
    await scribe(world)
    stats = await world.log("w").stats()
    assert [(one.ledger, one.entries) for one in stats.ledgers] == [(written.ledger, 1)]


@case("ManagedLedgerImpl.getManagedLedgerInternalStats: currentLedgerEntries")
async def what_was_stored_a_moment_ago_is_counted(world: World) -> None:
    writer = await scribe(world)
    for number in range(3):
        position = await writer.write()
        stats = await world.log("w").stats()
        assert (stats.last, sum(one.entries for one in stats.ledgers)) == (position, number + 1)


@case("ManagedLedgerImpl.internalTrimLedgers")
async def retention_takes_whole_ledgers_and_leaves_the_one_that_is_written(world: World) -> None:
    _, written = await filled(world, 2)
    await world.trim()
    stats = await world.log("w").stats()
    assert (stats.first, stats.last) == (written[-1], written[-1])


@case("ManagedCursorImpl.getNextValidPosition")
async def one_that_begins_where_retention_has_taken_is_given_the_first_that_is_left(world: World) -> None:
    _, written = await filled(world, 2)
    await world.trim()
    for start in (None, written[0], written[5], written[ENTRIES_OF_A_LEDGER]):
        assert [entry.position for entry in await given(world, 1, start)] == written[-1:]


@case("ManagedLedgerImpl.internalTrimLedgers: getSlowestReaderPosition")
async def a_reader_keeps_no_ledger_and_goes_on_behind_what_was_taken(world: World) -> None:
    async with audience(world, permits=1) as one:
        _, written = await filled(world, 2)
        await until(lambda: len(one.entries) == 1)
        await world.trim()
        one.reader.grant(100)
        await until(lambda: one.entries[-1].position == written[-1])
    assert one.positions[0] == written[0]
    assert set(one.positions) <= set(written)


@case("ManagedLedgerInterceptorImpl.onManagedLedgerLastLedgerInitialize")
async def the_index_goes_on_when_retention_has_taken_what_was_before(world: World) -> None:
    writer, written = await filled(world, 1)
    await world.trim()
    await writer.write()
    assert await indexes(world, 2) == [ENTRIES_OF_A_LEDGER, ENTRIES_OF_A_LEDGER + 1]
    assert len(written) == ENTRIES_OF_A_LEDGER + 1


@case("ManagedLedgerInterceptorImpl.onManagedLedgerPropertiesInitialize")
async def the_index_goes_on_when_retention_has_taken_all(world: World) -> None:
    await (await scribe(world)).write_all([b"x"] * 5)
    await world.unload()
    await scribe(world, "keeps it open")
    await world.trim()
    assert (await world.log("w").stats()).first is None
    assert await world.log("w").index_property() == 4
    await world.unload()
    await (await scribe(world)).write()
    assert await indexes(world, 1) == [5]


@case("PersistentTopic.getInternalStats")
async def a_topic_that_retention_has_emptied_names_the_ledger_that_is_written_next(world: World) -> None:
    await (await scribe(world)).write_all([b"x"] * 5)
    await world.unload()
    writer = await scribe(world, "keeps it open")
    await world.trim()
    begins_behind = (await world.log("w").stats()).end
    assert begins_behind is not None
    written = await writer.write()
    assert written == begins_behind.after()
    assert (await world.log("w").stats()).end == written


@case("ManagedLedgerImpl.getLastConfirmedEntry")
async def the_last_entry_of_a_topic_that_retention_has_emptied_is_none(world: World) -> None:
    await (await scribe(world)).write_all([b"x"] * 5)
    await world.unload()
    await scribe(world, "keeps it open")
    await world.trim()
    async with audience(world) as one:
        last = await one.reader.last_position()
        assert last is None or last not in [Position(last.ledger, entry) for entry in range(5)]
