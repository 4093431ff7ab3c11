"""What internal topics are built on: one producer at a time, an election, and compaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import pytest

from kafka_sidecar.pulsar.admin import AlreadyExists
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.pulsar.events import ConsumerEvents, ProducerEvents
from kafka_sidecar.pulsar.messages import read_messages, write_batch
from kafka_sidecar.pulsar.ports import Admin, BatchProducer, Client
from kafka_sidecar.pulsar.producer import WAIT_FOR_EXCLUSIVE
from tests.contract.case import ENTRIES_OF_A_LEDGER, Case, until

SUBSCRIPTION: Final = "leaders"


class Internal(Protocol):
    """A topic of one partition, and sidecars that use it."""

    topic: str
    partition: str

    @property
    def admin(self) -> Admin: ...
    def client(self, name: str) -> Client: ...
    async def cut(self, name: str) -> None:
        """All connections of that client break."""
        ...

    def roll(self) -> None:
        """The ledger has `ENTRIES_OF_A_LEDGER`, so the next entry begins another."""
        ...


INTERNAL: Final[list[Case[Internal]]] = []


def case(source: str) -> Callable[[Callable[[Internal], Awaitable[None]]], Callable[[Internal], Awaitable[None]]]:
    def add(play: Callable[[Internal], Awaitable[None]]) -> Callable[[Internal], Awaitable[None]]:
        INTERNAL.append(Case(source, play))
        return play

    return add


@dataclass
class Keeper(ProducerEvents):
    """Who writes keyed messages."""

    producer: BatchProducer = field(init=False)
    receipts: dict[int, Position] = field(default_factory=dict)
    ended: PulsarError | None = None
    sent: int = 0

    def on_receipt(self, sequence: int, ledger: int, entry: int) -> None:
        self.receipts[sequence] = Position(ledger, entry)

    def on_send_error(self, sequence: int, code: int, message: str) -> None:
        raise AssertionError(message)

    def on_end(self, reason: PulsarError) -> None:
        self.ended = reason

    async def write(self, *messages: tuple[bytes, bytes | None]) -> Position:
        sequence = self.sent
        self.sent += 1
        self.producer.send_batch(sequence, len(messages), write_batch(messages, 1))
        await until(lambda: sequence in self.receipts)
        return self.receipts[sequence]


async def keeper(internal: Internal, name: str) -> Keeper:
    """Once nobody else writes."""
    one = Keeper()
    one.producer = await internal.client(name).producer(
        internal.partition, f"keeper-{name}", one, access_mode=WAIT_FOR_EXCLUSIVE, wait_seconds=20.0, purpose="lead"
    )
    return one


@dataclass
class Voter(ConsumerEvents):
    told: list[bool] = field(default_factory=list)
    ended: PulsarError | None = None
    candidate: Any = None

    def on_entry(self, entry: RawEntry) -> None: ...
    def on_active(self, active: bool) -> None:
        self.told.append(active)

    def on_end(self, reason: PulsarError) -> None:
        self.ended = reason

    @property
    def is_active(self) -> bool:
        return self.told[-1:] == [True]


async def voter(internal: Internal, name: str, priority: int) -> Voter:
    one = Voter()
    one.candidate = await internal.client(name).candidate(
        internal.partition, SUBSCRIPTION, name, priority, one, {b"kafka.node": name.encode()}
    )
    return one


async def named_active(internal: Internal) -> str:
    stats = await internal.admin.topics.partition_stats(internal.topic)
    return str(stats[0]["subscriptions"][SUBSCRIPTION]["activeConsumerName"])


@dataclass
class Reading(ConsumerEvents):
    entries: list[RawEntry] = field(default_factory=list)
    ended: PulsarError | None = None

    def on_entry(self, entry: RawEntry) -> None:
        self.entries.append(entry)

    def on_end(self, reason: PulsarError) -> None:
        self.ended = reason

    @property
    def messages(self) -> list[tuple[bytes | None, bytes | None]]:
        found = [message for entry in self.entries for message in read_messages(entry.message_metadata, entry.payload)]
        return [(one.key, one.value or None) for one in found]


@asynccontextmanager
async def reading(internal: Internal, start: Position | None = None) -> AsyncIterator[Reading]:
    one = Reading()
    reader = await internal.client("reader").reader(internal.partition, start, one, compacted=True, purpose="load")
    reader.grant(1_000)
    try:
        yield one
    finally:
        reader.close()


async def compacted(internal: Internal) -> None:
    before = await internal.admin.topics.compacted_ledger(internal.partition)
    await internal.admin.topics.compact(internal.partition)
    async with asyncio.timeout(30):
        while await internal.admin.topics.compacted_ledger(internal.partition) == before:  # noqa: ASYNC110
            await asyncio.sleep(0.02)


# --- one producer at a time


@case("AbstractTopic.incrementTopicEpochIfNeeded: WaitForExclusive")
async def who_waits_to_write_alone_is_let_in_when_the_one_before_has_closed(internal: Internal) -> None:
    first = await keeper(internal, "a")
    waiting = asyncio.ensure_future(keeper(internal, "b"))
    await first.write((b"k", b"1"))
    assert not waiting.done()
    first.producer.close()
    second = await waiting
    await second.write((b"k", b"2"))


@case("ServerCnx.channelInactive, AbstractTopic.handleProducerRemoved")
async def who_waits_to_write_alone_is_let_in_when_the_connection_of_the_one_before_breaks(internal: Internal) -> None:
    first = await keeper(internal, "a")
    waiting = asyncio.ensure_future(keeper(internal, "b"))
    await asyncio.sleep(0.05)
    await internal.cut("a")
    second = await waiting
    await until(lambda: first.ended is not None)
    await second.write((b"k", b"2"))


@case("AbstractTopic.waitingExclusiveProducers")
async def those_who_wait_are_let_in_one_after_the_other(internal: Internal) -> None:
    first = await keeper(internal, "a")
    second, third = asyncio.ensure_future(keeper(internal, "b")), asyncio.ensure_future(keeper(internal, "c"))
    await asyncio.sleep(0.1)
    first.producer.close()
    done, waiting = await asyncio.wait({second, third}, return_when=asyncio.FIRST_COMPLETED)
    assert len(done) == 1
    await done.pop().result().write((b"k", b"2"))
    assert not waiting.copy().pop().done()
    (second if second.done() else third).result().producer.close()
    await (await waiting.pop()).write((b"k", b"3"))


@case("ServerCnx.handleProducer: the connection of the one who waits is closed")
async def who_has_gone_while_waiting_is_passed_over(internal: Internal) -> None:
    first = await keeper(internal, "a")
    gone = asyncio.ensure_future(keeper(internal, "b"))
    await asyncio.sleep(0.1)
    await internal.cut("b")
    with pytest.raises(PulsarError):
        await gone
    waiting = asyncio.ensure_future(keeper(internal, "c"))
    await asyncio.sleep(0.1)
    first.producer.close()
    await (await waiting).write((b"k", b"3"))


# --- an election


@case("AbstractDispatcherSingleActiveConsumer.pickAndScheduleActiveConsumer")
async def the_candidate_with_the_lowest_priority_level_is_elected(internal: Internal) -> None:
    first = await voter(internal, "a", 5)
    await until(lambda: first.is_active)
    second = await voter(internal, "b", 9)
    await until(lambda: second.told == [False])
    third = await voter(internal, "c", 1)
    await until(lambda: third.is_active and not first.is_active)
    assert await named_active(internal) == "c"


@case("AbstractDispatcherSingleActiveConsumer.removeConsumer")
async def when_the_elected_one_leaves_the_next_is_elected(internal: Internal) -> None:
    first, second = await voter(internal, "a", 1), await voter(internal, "b", 2)
    await until(lambda: first.is_active)
    first.candidate.close()
    await until(lambda: second.is_active)
    assert await named_active(internal) == "b"


@case("ServerCnx.channelInactive: Consumer.close")
async def when_the_connection_of_the_elected_one_breaks_the_next_is_elected(internal: Internal) -> None:
    first, second = await voter(internal, "a", 1), await voter(internal, "b", 2)
    await until(lambda: first.is_active)
    await internal.cut("a")
    await until(lambda: second.is_active)


@case("PersistentDispatcherSingleActiveConsumer.scheduleReadOnActiveConsumer: activeConsumerFailoverDelayTimeMillis")
async def the_stats_name_the_elected_one_before_it_is_told(internal: Internal) -> None:
    first = await voter(internal, "a", 5)
    await until(lambda: first.is_active)
    second = await voter(internal, "b", 1)
    assert await named_active(internal) == "b"
    assert not second.is_active
    await until(lambda: second.is_active)


# --- compaction


@case("PublishingOrderCompactor, RawBatchConverter.rebatchMessage")
async def the_last_message_of_each_key_is_left_at_its_place(internal: Internal) -> None:
    one = await keeper(internal, "a")
    await one.write((b"k", b"1"), (b"l", b"1"))
    second = await one.write((b"k", b"2"), (b"m", b"1"))
    third = await one.write((b"m", b"2"))
    await compacted(internal)
    fourth = await one.write((b"l", b"2"))
    async with reading(internal) as found:
        await until(lambda: found.entries and found.entries[-1].position == fourth)
    assert found.messages == [(b"l", b"1"), (b"k", b"2"), (b"m", b"2"), (b"l", b"2")]
    assert [entry.position for entry in found.entries[1:3]] == [second, third]
    assert [entry.message_metadata.num_messages_in_batch for entry in found.entries] == [2, 2, 1, 1]


@case("PublishingOrderCompactor: a message without a payload")
async def a_deletion_is_gone_with_what_it_deletes(internal: Internal) -> None:
    one = await keeper(internal, "a")
    await one.write((b"k", b"1"))
    await one.write((b"l", b"1"))
    await one.write((b"k", None))
    await one.write((b"m", b"1"))
    await compacted(internal)
    last = await one.write((b"n", b"1"))
    async with reading(internal) as found:
        await until(lambda: found.entries and found.entries[-1].position == last)
    assert found.messages == [(b"l", b"1"), (b"m", b"1"), (b"n", b"1")]


@case("CompactedTopicUtils.asyncReadCompactedEntries: the read position is at or before the horizon")
async def who_begins_in_the_middle_of_what_is_compacted_is_given_what_is_left_of_it(internal: Internal) -> None:
    one = await keeper(internal, "a")
    await one.write((b"k", b"1"))
    second = await one.write((b"l", b"1"))
    await one.write((b"k", b"2"))
    await compacted(internal)
    last = await one.write((b"n", b"1"))
    async with reading(internal, second) as found:
        await until(lambda: found.entries and found.entries[-1].position == last)
    assert found.messages == [(b"l", b"1"), (b"k", b"2"), (b"n", b"1")]


@case("TwoPhaseCompactor: compacting what is compacted already")
async def what_is_compacted_again_is_the_last_of_all(internal: Internal) -> None:
    one = await keeper(internal, "a")
    await one.write((b"k", b"1"), (b"l", b"1"))
    await compacted(internal)
    await one.write((b"k", b"2"))
    await compacted(internal)
    last = await one.write((b"n", b"1"))
    async with reading(internal) as found:
        await until(lambda: found.entries and found.entries[-1].position == last)
    assert found.messages == [(b"l", b"1"), (b"k", b"2"), (b"n", b"1")]


@case("PersistentTopic.triggerCompaction: AlreadyRunningException")
async def a_topic_that_has_been_compacted_says_so(internal: Internal) -> None:
    one = await keeper(internal, "a")
    await one.write((b"k", b"1"))
    before = await internal.admin.topics.compaction_stats(internal.partition)
    assert (before.compacted_to, before.compacted_ledger, before.cursors_ledger, before.has_news) == (
        None,
        -1,
        -1,
        True,
    )
    await compacted(internal)
    after = await internal.admin.topics.compaction_stats(internal.partition)
    assert after.compacted_to == after.log.last
    assert after.compacted_ledger == after.cursors_ledger >= 0
    assert (after.compacted_entries, after.has_news) == (1, False)
    await one.write((b"k", b"2"))
    try:
        for _ in range(2):
            await internal.admin.topics.compact(internal.partition)
    except AlreadyExists:
        pass  # the first of them is under way


@case("RawReader, AbstractTwoPhaseCompactor: an empty topic")
async def compacting_an_empty_topic_makes_the_cursor_and_no_ledger(internal: Internal) -> None:
    await internal.admin.topics.compact(internal.partition)
    async with asyncio.timeout(30):
        while (stats := await internal.admin.topics.compaction_stats(internal.partition)).compacted_to is None:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert (stats.compacted_ledger, stats.cursors_ledger, stats.has_news) == (-1, -1, False)


@case("ManagedLedgerImpl.internalTrimLedgers: the cursor of compaction")
async def retention_takes_what_is_compacted_and_readers_are_given_what_is_left_of_it(internal: Internal) -> None:
    one = await keeper(internal, "a")
    for number in range(ENTRIES_OF_A_LEDGER):
        await one.write((b"k%d" % (number % 3), b"%d" % number))
    internal.roll()
    await compacted(internal)
    behind = [await one.write((b"k0", b"behind")) for _ in range(ENTRIES_OF_A_LEDGER)]
    internal.roll()
    behind.append(await one.write((b"k0", b"behind")))
    await internal.admin.policies.set_retention(internal.topic, 0, 0)
    looks = 0
    async with asyncio.timeout(60):
        while (stats := await internal.admin.topics.compaction_stats(internal.partition)).log.first != behind[0]:
            await asyncio.sleep(0.05)
            looks += 1
            if looks % 100 == 0:  # brokers take ledgers when one ends: the policy may have come a moment later
                behind += [await one.write((b"k0", b"behind")) for _ in range(ENTRIES_OF_A_LEDGER)]
                internal.roll()
    assert stats.log.last == behind[-1], "what is not compacted is held, though its ledger is closed"
    assert stats.compacted_entries == 3
    async with reading(internal) as found:
        await until(lambda: found.entries and found.entries[-1].position == behind[-1])
    assert found.messages[:3] == [
        (b"k%d" % (number % 3), b"%d" % number) for number in range(ENTRIES_OF_A_LEDGER - 3, ENTRIES_OF_A_LEDGER)
    ]
    assert len(found.messages) == 3 + len(behind)
