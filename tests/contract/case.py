"""A case of the contract, what it is played on, and hands to play it with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

from kafka_sidecar.partition.log.port import EntryLog, LogReader, LogWriter
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.pulsar.events import ConsumerEvents, ProducerEvents
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata

# managedLedgerMaxEntriesPerLedger of the brokers that cases are played on.
ENTRIES_OF_A_LEDGER: Final = 20
MOST_SECONDS: Final = 30.0
# Of a model of which nobody has asked to deduplicate, this is answered by no receipt.
KNOWN_ALREADY: Final = Position(2**64 - 1, 2**64 - 1)


class World(Protocol):
    """One topic of one partition, at a broker."""

    names_markers: bool  # as the last entry, as brokers without apache/pulsar#22572 do

    def log(self, writer: str) -> EntryLog: ...
    async def unload(self) -> None: ...
    async def roll(self) -> None:
        """The ledger has `ENTRIES_OF_A_LEDGER`, so the next entry begins another."""
        ...

    async def trim(self) -> None:
        """Retention takes all ledgers but the one that is written."""
        ...

    async def make_anew(self) -> None:
        """It is deleted, and another of its name is made."""
        ...

    async def mark(self) -> None:
        """Replicated subscriptions write a marker."""
        ...


W = TypeVar("W")


@dataclass(frozen=True, slots=True)
class Case(Generic[W]):
    source: str  # class and method of Pulsar's that does it
    play: Callable[[W], Awaitable[None]]
    deduplicates: bool = False

    @property
    def name(self) -> str:
        return self.play.__name__


CASES: Final[list[Case[World]]] = []


def case(
    source: str, *, deduplicates: bool = False
) -> Callable[[Callable[[World], Awaitable[None]]], Callable[[World], Awaitable[None]]]:
    def add(play: Callable[[World], Awaitable[None]]) -> Callable[[World], Awaitable[None]]:
        CASES.append(Case(source, play, deduplicates))
        return play

    return add


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(MOST_SECONDS):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.002)


@dataclass
class Scribe(ProducerEvents):
    """A writer, and what it is told."""

    receipts: list[tuple[int, Position]] = field(default_factory=list)
    errors: list[tuple[int, int]] = field(default_factory=list)
    ended: PulsarError | None = None
    sent: int = 0
    writer: LogWriter = field(init=False)

    def on_receipt(self, sequence: int, ledger: int, entry: int) -> None:
        self.receipts.append((sequence, Position(ledger, entry)))

    def on_send_error(self, sequence: int, code: int, message: str) -> None:
        self.errors.append((sequence, code))

    def on_end(self, reason: PulsarError) -> None:
        self.ended = reason

    def send(
        self,
        payload: bytes = b"x",
        *,
        count: int = 1,
        sequence: int | None = None,
        basis: tuple[bytes, bytes] | None = None,
    ) -> int:
        """The sequence that its receipt will have."""
        sequence = self.sent if sequence is None else sequence
        self.sent = sequence + 1
        fields = b"" if count == 1 else MessageMetadata(num_messages_in_batch=count).SerializePartialToString()
        self.writer.send(sequence, count, fields, payload, basis)
        return sequence

    async def receipt(self, sequence: int) -> Position:
        await until(lambda: self.errors or any(one == sequence for one, _ in self.receipts))
        assert not self.errors
        return next(position for one, position in self.receipts if one == sequence)

    async def write(self, payload: bytes = b"x", *, count: int = 1, sequence: int | None = None) -> Position:
        return await self.receipt(self.send(payload, count=count, sequence=sequence))

    async def write_all(self, payloads: list[bytes]) -> list[Position]:
        return [await self.receipt(one) for one in [self.send(payload) for payload in payloads]]


async def scribe(world: World, name: str = "w") -> Scribe:
    """Once the broker lets one of this name in."""
    one = Scribe()
    async with asyncio.timeout(MOST_SECONDS):
        while True:
            try:
                one.writer = await world.log(name).writer(one)
            except PulsarError:  # the topic is being loaded, or the name is not free yet
                await asyncio.sleep(0.02)
            else:
                return one


@dataclass
class Audience(ConsumerEvents):
    """A reader, and what it is given."""

    entries: list[RawEntry] = field(default_factory=list)
    ended: PulsarError | None = None
    reader: LogReader = field(init=False)

    def on_entry(self, entry: RawEntry) -> None:
        self.entries.append(entry)

    def on_end(self, reason: PulsarError) -> None:
        self.ended = reason

    @property
    def positions(self) -> list[Position]:
        return [entry.position for entry in self.entries]

    @property
    def payloads(self) -> list[bytes]:
        return [bytes(entry.payload) for entry in self.entries]


@asynccontextmanager
async def audience(world: World, start: Position | None = None, permits: int = 100) -> AsyncIterator[Audience]:
    one = Audience()
    async with asyncio.timeout(MOST_SECONDS):
        while True:
            try:
                one.reader = await world.log("r").reader(start, one)
                break
            except PulsarError:  # the topic is being loaded
                await asyncio.sleep(0.02)
    if permits:
        one.reader.grant(permits)
    try:
        yield one
    finally:
        one.reader.close()


async def given(world: World, count: int, start: Position | None = None) -> list[RawEntry]:
    """The first entries that a reader gets, which are all that there are."""
    async with audience(world, start, 1_000) as one:
        await until(lambda: len(one.entries) >= count)
        return one.entries


async def indexes(world: World, count: int, start: Position | None = None) -> list[int | None]:
    return [entry.last_index for entry in await given(world, count, start)]


async def filled(world: World, ledgers: int, name: str = "w") -> tuple[Scribe, list[Position]]:
    """So many full ledgers, and one entry in another."""
    writer = await scribe(world, name)
    written: list[Position] = []
    for number in range(ledgers):
        written += await writer.write_all([b"%d.%d" % (number, entry) for entry in range(ENTRIES_OF_A_LEDGER)])
        await world.roll()
    written.append(await writer.write(b"last"))
    return writer, written
