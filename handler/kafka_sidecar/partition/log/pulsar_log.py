"""The entry log over Pulsar: the one place where a partition meets the Pulsar client."""

from __future__ import annotations

import asyncio
import uuid
from typing import Final, Protocol

from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.partition.log.log_config import LogConfig
from kafka_sidecar.partition.log.port import EntryLog, LogReader, LogWriter
from kafka_sidecar.pulsar.admin import BEFORE_FIRST, PulsarAdmin
from kafka_sidecar.pulsar.client import PulsarClient
from kafka_sidecar.pulsar.entry import LedgerInfo, LogStats, Position
from kafka_sidecar.pulsar.errors import Refused, TopicMissing, Unavailable
from kafka_sidecar.pulsar.events import ConsumerEvents, ProducerEvents
from kafka_sidecar.pulsar.raw_entries import Patience

# To check whether one entry is a Pulsar marker takes an admin request of about 3 ms, and the log end has to be found
# within 15 s (`ReadToEnd`). A partition can't be opened if more markers than this stand behind its last message on a
# broker before 3.3. On any broker it can't be opened if it holds only markers, and more than this.
PULSAR_MARKERS_AT_MOST: Final = 30_000
# Admin requests in flight at a time. Each response carries a whole entry, so the search begins with one request and
# then doubles.
QUESTIONS_AT_ONCE: Final = 16


class StoredTopics(Protocol):
    """What is known of topics. Calls may raise PulsarError."""

    async def log_of(self, partition: str) -> str:
        """Pulsar's topic that holds the entries of a partition: one without partitions is partition 0 to Kafka
        clients.
        """
        ...

    def id_of(self, partition: str) -> uuid.UUID | None:
        """Of the partition's topic as it is known; None where it is not."""
        ...

    async def id_now(self, partition: str) -> uuid.UUID | None: ...
    async def config_of(self, partition: str) -> LogConfig: ...
    async def counts_records(self, partition: str) -> bool: ...
    async def skipped(self, partition: str) -> frozenset[Position]: ...
    async def moved_start_of(self, partition: str) -> MovedStart | None: ...
    async def transactions_from(self, partition: str) -> Position | None: ...
    async def begin_transactions(self, partition: str, behind: Position) -> None: ...


class PulsarLog(EntryLog):
    """`find_index` asks the broker where it can (Pulsar ≥ 4.0.8), else searches ledgers, then entries."""

    def __init__(
        self, client: PulsarClient, admin: PulsarAdmin, partition: str, writer_name: str, topics: StoredTopics
    ) -> None:
        self.patience = Patience()
        self._partition = partition
        self._topic: str | None = None
        self._client = client
        self._admin = admin
        self._writer_name = writer_name
        self._topics = topics
        self._opened_as: uuid.UUID | None = None
        self._broker_finds_index = True
        self._begins_without_index = False
        self._first_indexed: Position | None = None

    async def topic(self) -> str:
        """Pulsar's topic that holds the entries."""
        if self._topic is None:
            self._topic = await self._topics.log_of(self._partition)
        return self._topic

    async def writer(self, events: ProducerEvents) -> LogWriter:
        return await self._client.producer(await self.topic(), self._writer_name, events)

    async def config(self) -> LogConfig:
        config = await self._topics.config_of(self._partition)
        self._opened_as = self._topics.id_of(self._partition)
        return config

    async def counts_records(self) -> bool:
        return await self._topics.counts_records(self._partition)

    async def skipped(self) -> frozenset[Position]:
        return await self._topics.skipped(self._partition)

    async def is_another(self) -> bool:
        try:
            return self._opened_as is not None and await self._topics.id_now(self._partition) != self._opened_as
        except TopicMissing:  # The topic was deleted; it may be about to be created again
            return True

    async def moved_start(self) -> MovedStart | None:
        return await self._topics.moved_start_of(self._partition)

    async def transactions_from(self) -> Position | None:
        return await self._topics.transactions_from(self._partition)

    async def begin_transactions(self, behind: Position) -> None:
        await self._topics.begin_transactions(self._partition, behind)

    async def reader(self, start: Position | None, events: ConsumerEvents) -> LogReader:
        return await self._client.reader(await self.topic(), start, events)

    async def stats(self) -> LogStats:
        return await self._admin.topics.log_stats(await self.topic())

    async def index_property(self) -> int | None:
        return await self._admin.topics.index_property(await self.topic())

    async def index_of(self, position: Position) -> int | None:
        try:
            return await self._admin.topics.index_of(await self.topic(), position)
        except TopicMissing:
            return None

    async def last_readable(self, last: Position, behind: Position) -> Position | None:
        """`last` itself, unless that is a marker of Pulsar's own: brokers keep those to themselves."""
        topic = await self.topic()
        if not await self._admin.topics.is_marker(topic, last):
            return last
        stats = await self.stats()
        position = stats.entry_before(last)
        at_once, left = 1, PULSAR_MARKERS_AT_MOST
        while left > 0:
            asked: list[Position] = []
            while position is not None and position > behind and len(asked) < at_once:
                asked.append(position)
                position = stats.entry_before(position)
            answers = await asyncio.gather(
                *[self._admin.topics.is_marker(topic, one) for one in asked], return_exceptions=True
            )
            for one, answer in zip(asked, answers, strict=True):
                if isinstance(answer, BaseException):
                    raise answer
                if not answer:
                    return one
            if len(asked) < at_once:
                return position
            left -= at_once
            at_once = min(2 * at_once, QUESTIONS_AT_ONCE, left)
        raise Unavailable(f"the last {PULSAR_MARKERS_AT_MOST} entries of {topic} are markers")

    async def first_indexed(self) -> Position | None:
        """By halves: the first ledger with an entry that has one, then the entry in it. An interceptor is switched
        while a broker restarts, and that begins a ledger.
        """
        ledgers = (await self.stats()).ledgers
        known = self._first_indexed
        if known is not None and any(one.ledger == known.ledger for one in ledgers):
            return known
        low, high = 0, len(ledgers)
        while low < high:
            middle = (low + high) // 2
            if await self._has_index(Position(ledgers[middle].ledger, ledgers[middle].entries - 1)):
                high = middle
            else:
                low = middle + 1
        self._first_indexed = await self._first_in(ledgers[low]) if low < len(ledgers) else None
        return self._first_indexed

    async def first_indexed_of_all(self) -> Position | None:
        for ledger in (await self.stats()).ledgers:
            if await self._has_index(Position(ledger.ledger, ledger.entries - 1)):
                self._first_indexed = await self._first_in(ledger)
                return self._first_indexed
        return None

    async def _first_in(self, ledger: LedgerInfo) -> Position:
        low, high = 0, ledger.entries - 1
        while low < high:
            middle = (low + high) // 2
            if await self._has_index(Position(ledger.ledger, middle)):
                high = middle
            else:
                low = middle + 1
        return Position(ledger.ledger, low)

    async def _has_index(self, position: Position) -> bool:
        return await self._admin.topics.index_of(await self.topic(), position) is not None

    def note_entries_without_index(self) -> None:
        self._begins_without_index = True
        self._broker_finds_index = False

    async def find_time(self, timestamp: int) -> Position | None:
        return await self._admin.topics.find_time(await self.topic(), timestamp)

    async def find_index(self, index: int) -> Position | None:
        if self._broker_finds_index:
            try:
                found = await self._admin.topics.find_index(await self.topic(), index)
                return (await self.stats()).first if found is BEFORE_FIRST else found
            except Refused:
                self._broker_finds_index = False
            except Unavailable:  # The broker's binary search may have met a ledger whose storage is unavailable
                position = await self._search_backwards(index)
                if position is None:
                    raise
                return position
        return await self._search_index(index)

    async def _search_backwards(self, index: int) -> Position | None:
        """Ledger by ledger, the last one first. It finds what stands behind a ledger's first entry. May raise
        PulsarError.
        """
        for ledger in reversed((await self.stats()).ledgers):
            first = await self._index_in(ledger, 0)
            if first is None:
                return None
            if first < index:
                last = await self._index_in(ledger, ledger.entries - 1)
                return None if last is None or last < index else await self._search_ledger(index, ledger)
        return None

    async def _index_in(self, ledger: LedgerInfo, entry: int) -> int | None:
        return await self._admin.topics.index_of(await self.topic(), Position(ledger.ledger, entry))

    async def _search_index(self, index: int) -> Position | None:
        """By halves: the first ledger whose last entry reaches `index`, then the entry in it."""
        ledgers = (await self.stats()).ledgers
        search = self._first_reaching_of_some if self._begins_without_index else self._first_reaching
        ledger = await search(index, ledgers)
        return None if ledger is None else await self._search_ledger(index, ledger)

    async def _search_ledger(self, index: int, ledger: LedgerInfo) -> Position:
        """The entry, in a ledger that reaches `index`."""
        low, high = 0, ledger.entries - 1
        while low < high:
            middle = (low + high) // 2
            found = await self._index_in(ledger, middle)
            if found is not None and found >= index:
                high = middle
            else:
                low = middle + 1
        return Position(ledger.ledger, low)

    async def _first_reaching_of_some(self, index: int, ledgers: tuple[LedgerInfo, ...]) -> LedgerInfo | None:
        """The same where some ledgers have no indexes: an interceptor is switched while a broker restarts, and that
        begins a ledger.
        """
        for ledger in ledgers:
            found = await self._index_in(ledger, ledger.entries - 1)
            if found is not None and found >= index:
                return ledger
        return None

    async def _first_reaching(self, index: int, ledgers: tuple[LedgerInfo, ...]) -> LedgerInfo | None:
        low, high = 0, len(ledgers)
        while low < high:
            middle = (low + high) // 2
            ledger = ledgers[middle]
            found = await self._index_in(ledger, ledger.entries - 1)
            if found is not None and found >= index:
                high = middle
            else:
                low = middle + 1
        return ledgers[low] if low < len(ledgers) else None
