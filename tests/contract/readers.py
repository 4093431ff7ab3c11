"""What readers are given."""

from __future__ import annotations

from kafka_sidecar.pulsar.entry import Position
from tests.contract.case import World, audience, case, filled, given, scribe, until


@case("ManagedLedgerImpl.newNonDurableCursor")
async def one_that_begins_nowhere_begins_with_the_first_entry(world: World) -> None:
    written = await (await scribe(world)).write_all([b"0", b"1", b"2"])
    assert [entry.position for entry in await given(world, 3)] == written


@case("PersistentTopic.getNonDurableSubscription")
async def one_that_begins_at_an_entry_is_given_that(world: World) -> None:
    written = await (await scribe(world)).write_all([b"0", b"1", b"2"])
    assert [entry.position for entry in await given(world, 2, written[1])] == written[1:]


@case("ManagedCursorImpl.getNextValidPosition")
async def one_that_begins_behind_a_ledger_is_given_the_next(world: World) -> None:
    _, written = await filled(world, 1)
    assert [entry.position for entry in await given(world, 1, written[-2].after())] == written[-1:]


@case("ManagedLedgerImpl.isValidPosition")
async def one_that_begins_far_behind_a_ledgers_end_is_given_the_next(world: World) -> None:
    _, written = await filled(world, 1)
    assert [entry.position for entry in await given(world, 1, Position(written[0].ledger, 500))] == written[-1:]


@case("ManagedLedgerImpl.getFirstPosition")
async def one_that_begins_before_the_first_ledger_is_given_the_first_entry(world: World) -> None:
    written = await (await scribe(world)).write_all([b"0", b"1"])
    assert [entry.position for entry in await given(world, 2, Position(0, 0))] == written


@case("PersistentDispatcherSingleActiveConsumer.readMoreEntries")
async def without_permits_nothing_is_given(world: World) -> None:
    await (await scribe(world)).write_all([b"0", b"1"])
    async with audience(world, permits=0) as silent:
        assert len(await given(world, 2)) == 2, "another reader was served meanwhile"
        assert silent.entries == []


@case("Consumer.sendMessages: messagePermits")
async def a_permit_is_a_message(world: World) -> None:
    await (await scribe(world)).write_all([b"%d" % number for number in range(6)])
    async with audience(world, permits=2) as one:
        await until(lambda: len(one.entries) == 2)
        await given(world, 6)
        assert len(one.entries) == 2
        one.reader.grant(3)
        await until(lambda: len(one.entries) == 5)
        await given(world, 6)
        assert len(one.entries) == 5


@case("Consumer.sendMessages: messagePermits")
async def an_entry_of_several_messages_takes_as_many_permits(world: World) -> None:
    writer = await scribe(world)
    for _ in range(3):
        await writer.write(count=10)
    async with audience(world, permits=1) as one:
        await until(lambda: len(one.entries) == 1)
        one.reader.grant(9)
        await given(world, 3)
        assert len(one.entries) == 1, "the debt was paid, and no more"
        one.reader.grant(1)
        await until(lambda: len(one.entries) == 2)


@case("PersistentDispatcherSingleActiveConsumer.consumerFlow")
async def permits_that_are_left_serve_what_comes_later(world: World) -> None:
    writer = await scribe(world)
    async with audience(world, permits=10) as one:
        for number in range(4):
            await writer.write(b"%d" % number)
        await until(lambda: len(one.entries) == 4)
    assert one.payloads == [b"0", b"1", b"2", b"3"]


@case("OpReadEntry.checkReadCompletion")
async def entries_come_in_order_and_once(world: World) -> None:
    _, written = await filled(world, 2)
    async with audience(world, permits=7) as one:
        while len(one.entries) < len(written):
            before = len(one.entries)
            one.reader.grant(3)
            await until(lambda before=before: len(one.entries) > before)  # type: ignore[misc]
    assert one.positions == written


@case("ServerCnx.handleSubscribe")
async def readers_do_not_take_from_each_other(world: World) -> None:
    written = await (await scribe(world)).write_all([b"0", b"1", b"2"])
    async with audience(world) as one, audience(world) as other:
        await until(lambda: len(one.entries) == len(other.entries) == 3)
    assert one.positions == other.positions == written


@case("Consumer.close")
async def one_that_is_closed_is_given_nothing_more(world: World) -> None:
    writer = await scribe(world)
    async with audience(world) as one:
        await writer.write()
        await until(lambda: one.entries)
    await writer.write()
    assert len(await given(world, 2)) == 2
    assert len(one.entries) == 1


@case("ServerCnx.handleGetLastMessageId")
async def an_empty_topic_has_no_last_entry(world: World) -> None:
    async with audience(world) as one:
        assert await one.reader.last_position() is None


@case("ServerCnx.handleGetLastMessageId")
async def the_last_entry_is_the_one_that_was_written_last(world: World) -> None:
    writer = await scribe(world)
    async with audience(world) as one:
        for _ in range(3):
            position = await writer.write()
            assert await one.reader.last_position() == position


@case("ServerCnx.handleGetLastMessageId")
async def the_last_entry_may_stand_in_the_ledger_before(world: World) -> None:
    writer = await scribe(world)
    position = await writer.write()
    await world.unload()
    async with audience(world) as one:
        assert await one.reader.last_position() == position


@case("ManagedCursorImpl.asyncResetCursor")
async def one_may_go_on_behind_a_later_entry(world: World) -> None:
    written = await (await scribe(world)).write_all([b"%d" % number for number in range(8)])
    async with audience(world, permits=2) as one:
        await until(lambda: len(one.entries) == 2)
        one.reader.skip_to(written[4])
        one.reader.grant(10)
        await until(lambda: len(one.entries) == 5)
    assert one.positions == [*written[:2], *written[5:]]


@case("AbstractTopic.close: disconnectClients")
async def an_unload_ends_readers_and_writers(world: World) -> None:
    writer = await scribe(world)
    async with audience(world) as one:
        await writer.write()
        await until(lambda: one.entries)
        await world.unload()
        await until(lambda: one.ended is not None and writer.ended is not None)


@case("ManagedCursorImpl.readEntries")
async def one_that_comes_after_an_unload_is_given_what_was_stored_before(world: World) -> None:
    written = await (await scribe(world)).write_all([b"0", b"1"])
    await world.unload()
    written.append(await (await scribe(world)).write(b"2"))
    assert [entry.position for entry in await given(world, 3)] == written
    assert [entry.position for entry in await given(world, 2, written[1])] == written[1:]
