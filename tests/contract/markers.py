"""Markers of replicated subscriptions, which brokers keep to themselves."""

from __future__ import annotations

from kafka_sidecar.partition.fold.fold import BEFORE_ALL
from tests.contract.case import World, audience, case, given, indexes, scribe, until


@case("AppendIndexMetadataInterceptor.interceptWithNumberOfMessages")
async def a_marker_takes_an_index(world: World) -> None:
    writer = await scribe(world)
    await writer.write()
    await world.mark()
    await writer.write()
    assert await indexes(world, 2) == [0, 2]


@case("AbstractBaseDispatcher.filterEntriesForConsumer: Markers.isServerOnlyMarker")
async def no_reader_is_given_a_marker(world: World) -> None:
    writer = await scribe(world)
    written = []
    for number in range(3):
        written.append(await writer.write(b"%d" % number))
        await world.mark()
    written.append(await writer.write(b"end"))
    assert [entry.position for entry in await given(world, 4)] == written


@case("AbstractBaseDispatcher.filterEntriesForConsumer: Markers.isServerOnlyMarker")
async def a_marker_takes_no_permit(world: World) -> None:
    writer = await scribe(world)
    for _ in range(5):
        await world.mark()
    await writer.write(b"1")
    await world.mark()
    await writer.write(b"2")
    async with audience(world, permits=2) as one:
        await until(lambda: len(one.entries) == 2)
    assert one.payloads == [b"1", b"2"]


@case("PersistentTopicsBase.internalGetMessageById")
async def the_last_entry_that_readers_are_given_stands_before_markers(world: World) -> None:
    position = await (await scribe(world)).write()
    for _ in range(3):
        await world.mark()
    log = world.log("w")
    last = (await log.stats()).last
    assert last is not None
    assert last > position
    assert await log.last_readable(last, BEFORE_ALL) == position


@case("PersistentTopicsBase.internalGetMessageById")
async def where_there_are_markers_alone_readers_are_given_nothing(world: World) -> None:
    await scribe(world)
    for _ in range(3):
        await world.mark()
    log = world.log("w")
    last = (await log.stats()).last
    assert last is not None
    assert await log.last_readable(last, BEFORE_ALL) is None
    assert await log.index_of(last) == 2


@case("PersistentTopic.getLastDispatchablePosition (apache/pulsar#22572)")
async def the_last_entry_is_no_marker_but_to_older_brokers(world: World) -> None:
    position = await (await scribe(world)).write()
    await world.mark()
    async with audience(world) as one:
        last = await one.reader.last_position()
    assert last == (position.after() if world.names_markers else position)


@case("PersistentTopicsBase.internalGetMessageById")
async def a_marker_tells_its_index_to_who_asks_for_it(world: World) -> None:
    position = await (await scribe(world)).write(count=3)
    await world.mark()
    assert await world.log("w").index_of(position.after()) == 3


@case("PersistentTopicsBase.internalGetMessageIdByIndex")
async def an_index_of_a_marker_is_found_at_the_marker(world: World) -> None:
    writer = await scribe(world)
    position = await writer.write()
    await world.mark()
    await writer.write()
    assert await world.log("w").find_index(1) == position.after()


@case("ManagedLedgerImpl.getManagedLedgerInternalStats")
async def markers_count_as_entries_of_a_ledger(world: World) -> None:
    writer = await scribe(world)
    await writer.write()
    await world.mark()
    await writer.write()
    stats = await world.log("w").stats()
    assert [one.entries for one in stats.ledgers] == [3]
