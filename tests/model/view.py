"""The topic as a partition of a sidecar has it."""

from __future__ import annotations

from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.partition.log.log_config import LogConfig
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.pulsar.entry import LogStats, Position
from kafka_sidecar.pulsar.errors import TopicMissing
from kafka_sidecar.pulsar.events import ConsumerEvents, ProducerEvents
from kafka_sidecar.pulsar.raw_entries import Patience
from tests.model.conduct import Caller
from tests.model.connections import Reader, Writer
from tests.model.topic import Topic


class View(EntryLog):
    def __init__(self, topic: Topic, writer_name: str, caller: Caller) -> None:
        self.patience = Patience()
        self._topic = topic
        self._name = writer_name
        self._caller = caller
        self._opened_as = topic.generation

    async def _ask(self) -> None:
        await self._caller.ask()
        if self._topic.is_missing:
            raise TopicMissing("it is deleted")

    async def config(self) -> LogConfig:
        await self._ask()
        self._opened_as = self._topic.generation
        return self._topic.log_config

    async def is_another(self) -> bool:
        return self._topic.generation != self._opened_as

    async def counts_records(self) -> bool:
        return self._topic.counts

    async def skipped(self) -> frozenset[Position]:
        return self._topic.skips

    async def moved_start(self) -> MovedStart | None:
        await self._ask()
        return self._topic.start_moved_to

    async def transactions_from(self) -> Position | None:
        await self._ask()
        return self._topic.transactions_behind

    async def begin_transactions(self, behind: Position) -> None:
        await self._ask()
        known = self._topic.transactions_behind
        self._topic.transactions_behind = behind if known is None else min(known, behind)
        await self._caller.hear()

    async def writer(self, events: ProducerEvents) -> Writer:
        await self._ask()
        return self._topic.writer_as(self._name, events, self._caller)

    async def reader(self, start: Position | None, events: ConsumerEvents) -> Reader:
        await self._ask()
        return self._topic.reader_as(self._name, start, events, self._caller)

    async def stats(self) -> LogStats:
        await self._ask()
        found = self._topic.stats_now()
        await self._caller.hear()
        return found

    async def index_property(self) -> int | None:
        await self._ask()
        return self._topic.stored_index

    async def index_of(self, position: Position) -> int | None:
        await self._ask()
        return next((one.last_index for one in self._topic.present if one.position == position), None)

    async def last_readable(self, last: Position, behind: Position) -> Position | None:
        await self._ask()
        found = (
            one.position
            for one in reversed(self._topic.present)
            if one.position <= last and (one.position <= behind or not self._topic.is_hidden(one))
        )
        return next(found, None)

    async def first_indexed(self) -> Position | None:
        """By halves, as it is done: of several stretches the last one may be found."""
        if not self._topic.finds_last_stretch:
            return await self.first_indexed_of_all()
        await self._ask()
        found = None
        for entry in reversed(self._topic.present):
            if entry.last_index is None:
                break
            found = entry.position
        return found

    async def first_indexed_of_all(self) -> Position | None:
        await self._ask()
        return next((one.position for one in self._topic.present if one.last_index is not None), None)

    def note_entries_without_index(self) -> None:
        self._topic.noted_without_index = True

    async def find_index(self, index: int) -> Position | None:
        await self._ask()
        return next(
            (one.position for one in self._topic.present if one.last_index is not None and one.last_index >= index),
            None,
        )

    async def find_time(self, timestamp: int) -> Position | None:
        await self._ask()
        found = (one.position for one in self._topic.present if (one.broker_timestamp or 0) >= timestamp)
        return next(found, self._topic.next_position)
