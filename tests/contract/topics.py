"""Topics: what becomes of one that is deleted and made anew.

They are played last. In a 2.9 broker the task that takes old ledgers ends for good when it meets a topic that is being
deleted.
"""

from __future__ import annotations

from tests.contract.case import World, audience, case, given, indexes, scribe, until


@case("PersistentTopic.delete")
async def a_topic_that_is_made_anew_has_ledgers_with_greater_ids_and_begins_at_index_0(world: World) -> None:
    before = await (await scribe(world)).write(count=4)
    await world.make_anew()
    assert (await world.log("w").stats()).last is None
    after = await (await scribe(world)).write(count=2)
    assert after.ledger > before.ledger
    assert await indexes(world, 1) == [1]


@case("PersistentTopic.delete")
async def a_broker_ends_all_connections_to_a_topic_that_is_deleted(world: World) -> None:
    writer = await scribe(world)
    await writer.write()
    async with audience(world) as one:
        await until(lambda: one.entries)
        await world.make_anew()
        await until(lambda: one.ended is not None and writer.ended is not None)


@case("ManagedCursorImpl.initializeCursorPosition")
async def a_reader_that_begins_at_a_place_in_the_deleted_topic_is_given_the_whole_new_one(world: World) -> None:
    before = await (await scribe(world)).write()
    await world.make_anew()
    written = await (await scribe(world)).write()
    assert [entry.position for entry in await given(world, 1, before)] == [written]
