"""What becomes of what is sent."""

from __future__ import annotations

import pytest

from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from tests.contract.case import KNOWN_ALREADY, World, case, given, indexes, scribe, until


@case("ManagedLedgerImpl.asyncAddEntry")
async def the_first_entry_of_a_topic_is_entry_0(world: World) -> None:
    position = await (await scribe(world)).write()
    assert position.entry == 0


@case("AppendIndexMetadataInterceptor.interceptWithNumberOfMessages")
async def the_first_index_is_0(world: World) -> None:
    await (await scribe(world)).write()
    assert await indexes(world, 1) == [0]


@case("AppendIndexMetadataInterceptor.interceptWithNumberOfMessages")
async def an_entry_has_the_index_of_its_last_message(world: World) -> None:
    writer = await scribe(world)
    await writer.write(count=3)
    await writer.write()
    await writer.write(count=5)
    assert await indexes(world, 3) == [2, 3, 8]


@case("OpAddEntry.addComplete")
async def entries_of_a_ledger_are_numbered_without_holes(world: World) -> None:
    positions = await (await scribe(world)).write_all([b"x"] * 10)
    assert [position.entry for position in positions] == list(range(10))
    assert len({position.ledger for position in positions}) == 1


@case("Producer.MessagePublishContext.run")
async def receipts_come_in_the_order_of_what_was_sent(world: World) -> None:
    writer = await scribe(world)
    await writer.write_all([b"x"] * 15)
    assert [sequence for sequence, _ in writer.receipts] == list(range(15))
    positions = [position for _, position in writer.receipts]
    assert positions == sorted(positions)


@case("Producer.publishMessageToTopic")
async def what_is_sent_is_stored_in_its_order(world: World) -> None:
    payloads = [b"%d" % number for number in range(15)]
    await (await scribe(world)).write_all(payloads)
    assert [bytes(entry.payload) for entry in await given(world, 15)] == payloads


@case("Commands.parseMessageMetadata")
async def a_payload_comes_back_as_it_was_sent(world: World) -> None:
    payload = bytes(range(256)) * 300
    await (await scribe(world)).write(payload)
    (entry,) = await given(world, 1)
    assert bytes(entry.payload) == payload


@case("Commands.parseMessageMetadata")
async def names_sequences_and_properties_come_back(world: World) -> None:
    writer = await scribe(world, "somebody")
    await writer.receipt(writer.send(sequence=7, basis=(b"basis", b"\x00\xff bytes")))
    (entry,) = await given(world, 1)
    metadata = entry.message_metadata
    assert (metadata.producer_name, metadata.sequence_id) == (b"somebody", 7)
    assert [(one.key, one.value) for one in metadata.properties] == [(b"basis", b"\x00\xff bytes")]


@case("AppendBrokerTimestampMetadataInterceptor.intercept")
async def the_brokers_time_never_goes_back(world: World) -> None:
    await (await scribe(world)).write_all([b"x"] * 10)
    times = [entry.broker_timestamp for entry in await given(world, 10)]
    assert None not in times
    assert times == sorted(times)  # type: ignore[type-var]


@case("AppendIndexMetadataInterceptor.interceptWithNumberOfMessages")
async def two_writers_share_one_index(world: World) -> None:
    one, other = await scribe(world, "one"), await scribe(world, "other")
    for _ in range(4):
        await one.write(count=2)
        await other.write()
    assert await indexes(world, 8) == [1, 2, 4, 5, 7, 8, 10, 11]


@case("PersistentTopic.addProducer: NamingException")
async def a_second_writer_of_a_name_is_refused(world: World) -> None:
    first = await scribe(world, "same")
    with pytest.raises(PulsarError):
        await world.log("same").writer(first)
    assert await first.write() is not None, "the first goes on"


@case("AbstractTopic.removeProducer")
async def the_name_is_free_when_its_writer_is_closed(world: World) -> None:
    first = await scribe(world, "same")
    await first.write(b"1")
    first.writer.close()
    await (await scribe(world, "same")).write(b"2")
    assert [bytes(entry.payload) for entry in await given(world, 2)] == [b"1", b"2"]


@case("Producer.close: pendingPublishAcks")
async def what_was_sent_before_a_writer_is_closed_is_stored(world: World) -> None:
    first = await scribe(world)
    for number in range(10):
        first.send(b"%d" % number)
    first.writer.close()
    await (await scribe(world)).write(b"10")
    assert [bytes(entry.payload) for entry in await given(world, 11)] == [b"%d" % number for number in range(11)]


@case("ServerCnx.channelInactive")
async def what_lands_of_a_connection_that_breaks_is_what_was_sent_first(world: World) -> None:
    first = await scribe(world)
    await first.write(b"0")
    for number in range(1, 12):
        first.send(b"%d" % number)
    first.writer.abort_connection(Unavailable("the test breaks it"))
    await until(lambda: first.ended is not None)
    second = await scribe(world)
    last = await second.write(b"end")
    stored = [bytes(entry.payload) for entry in await given(world, last.entry + 1)]
    assert stored == [*(b"%d" % number for number in range(last.entry)), b"end"]


@case("ServerCnx.channelInactive")
async def the_name_is_free_when_its_connection_broke(world: World) -> None:
    first = await scribe(world, "same")
    await first.write(b"1")
    first.writer.abort_connection(Unavailable("the test breaks it"))
    await (await scribe(world, "same")).write(b"2")


@case("PersistentTopic.publishMessage")
async def without_deduplication_a_sequence_may_come_again(world: World) -> None:
    writer = await scribe(world)
    await writer.write(b"a", sequence=5)
    writer.receipts.clear()
    await writer.write(b"b", sequence=5)
    assert [bytes(entry.payload) for entry in await given(world, 2)] == [b"a", b"b"]


# --- deduplication


@case("MessageDeduplication.isDuplicate", deduplicates=True)
async def what_was_stored_is_not_stored_again(world: World) -> None:
    writer = await scribe(world)
    await writer.write(b"a", sequence=5)
    writer.receipts.clear()
    assert await writer.write(b"b", sequence=5) == KNOWN_ALREADY
    await writer.write(b"c", sequence=6)
    assert [bytes(entry.payload) for entry in await given(world, 2)] == [b"a", b"c"]


@case("MessageDeduplication.isDuplicate", deduplicates=True)
async def a_lower_sequence_is_taken_for_stored(world: World) -> None:
    writer = await scribe(world)
    await writer.write(b"a", sequence=5)
    assert await writer.write(b"b", sequence=3) == KNOWN_ALREADY


@case("MessageDeduplication.isDuplicate", deduplicates=True)
async def sequences_may_have_holes(world: World) -> None:
    writer = await scribe(world)
    assert (await writer.write(b"a", sequence=5)).entry == 0
    assert (await writer.write(b"b", sequence=50)).entry == 1


@case("MessageDeduplication.highestSequencedPushed", deduplicates=True)
async def each_name_has_sequences_of_its_own(world: World) -> None:
    one, other = await scribe(world, "one"), await scribe(world, "other")
    await one.write(b"a", sequence=5)
    assert (await other.write(b"b", sequence=5)).entry == 1


@case("MessageDeduplication.highestSequencedPushed", deduplicates=True)
async def sequences_are_known_when_their_writer_comes_again(world: World) -> None:
    first = await scribe(world)
    await first.write(b"a", sequence=5)
    first.writer.close()
    second = await scribe(world)
    assert await second.write(b"b", sequence=5) == KNOWN_ALREADY


@case("MessageDeduplication.replayCursor", deduplicates=True)
async def sequences_are_known_after_an_unload(world: World) -> None:
    first = await scribe(world)
    await first.write(b"a", sequence=5)
    await world.unload()
    second = await scribe(world)
    assert await second.write(b"b", sequence=5) == KNOWN_ALREADY
    assert (await second.write(b"c", sequence=6)) > Position(0, 0)
    assert await indexes(world, 2) == [0, 1]


@case("MessageDeduplication.isDuplicate", deduplicates=True)
async def what_is_not_stored_again_takes_no_index(world: World) -> None:
    writer = await scribe(world)
    await writer.write(sequence=1)
    writer.receipts.clear()
    await writer.write(sequence=1)
    await writer.write(sequence=2)
    assert await indexes(world, 2) == [0, 1]
