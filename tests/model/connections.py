"""Producers and consumers, as both ends see them."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.pulsar.events import ConsumerEvents, ProducerEvents
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.pulsar.raw_entries import permits_of
from tests.model.conduct import Way

if TYPE_CHECKING:
    from tests.model.topic import Topic


_position: Final = attrgetter("position")


class Connection:
    """To the broker, of one producer or consumer."""

    def __init__(self, topic: Topic, way: Way) -> None:
        self.topic = topic
        self.way = way
        self.is_open = True  # as its client sees it
        topic.connections[self] = None

    @property
    def is_connected(self) -> bool:
        return self in self.topic.connections

    def down(self, arrive: Callable[[], None]) -> None:
        self.way.down(lambda: arrive() if self.is_open else None)

    def vanish(self) -> None:
        """The process at its other end is gone, and hears no more."""
        self.is_open = False
        self.cut()

    def forget(self) -> None:
        self.topic.connections.pop(self, None)

    def cut(self, reason: PulsarError | None = None) -> None:
        self.forget()
        if self.is_open:
            self.way.end(lambda: self.lose(reason or Unavailable("cut")))

    def lose(self, reason: PulsarError) -> None:
        self.forget()
        if self.is_open:
            self.is_open = False
            self.tell_end(reason)

    def tell_end(self, reason: PulsarError) -> None:
        raise NotImplementedError


class Writer(Connection):
    def __init__(self, topic: Topic, name: str, events: ProducerEvents, way: Way) -> None:
        super().__init__(topic, way)
        self.events = events
        self.name = name
        topic.known_writers[name] = self

    @property
    def max_message_size(self) -> int:
        return self.topic.max_message_size

    @property
    def is_known(self) -> bool:
        """To the broker."""
        return self.topic.known_writers.get(self.name) is self

    def send(
        self, sequence: int, count: int, fields: bytes, payload: bytes | bytearray, basis: tuple[bytes, bytes] | None
    ) -> None:
        if not self.is_open:
            return
        metadata = MessageMetadata(producer_name=self.name.encode(), sequence_id=sequence, publish_time=1)
        metadata.MergeFromString(fields)
        if basis is not None:
            metadata.properties.add(key=basis[0], value=basis[1])
        data = bytes(payload)
        self.way.send(lambda: self._land(sequence, metadata, count, data), payload, data)

    def _land(self, sequence: int, metadata: MessageMetadata, count: int, data: bytes) -> None:
        if self.is_known or self.way.lands_though_unknown():
            self.topic.land(self, sequence, metadata, count, data)

    def cut(self, reason: PulsarError | None = None) -> None:
        if self.way.is_unknown_at_once():
            self.be_unknown()
        else:
            self.way.up(
                self.be_unknown
            )  # ServerCnx.channelInactive: what is on its way lands first, and keeps the name taken
        super().cut(reason)

    def close(self) -> None:
        self.is_open = False
        self.way.up(self._closed)  # behind what was sent

    def _closed(self) -> None:
        self.be_unknown()
        self.forget()

    def be_unknown(self) -> None:
        if self.is_known:
            del self.topic.known_writers[self.name]

    def abort_connection(self, reason: PulsarError) -> None:
        self.cut(reason)

    def tell_end(self, reason: PulsarError) -> None:
        self.events.on_end(reason)


class Reader(Connection):
    def __init__(self, topic: Topic, start: Position | None, events: ConsumerEvents, way: Way) -> None:
        super().__init__(topic, way)
        self.permits = 0
        self.is_forgotten = topic.conduct.forgets_reader()
        self._next = start
        self._events = events
        self._is_woken = False
        self._last_of_closed = topic.last_named()

    def grant(self, permits: int) -> None:
        self.way.up(lambda: self._granted(permits))

    def _granted(self, permits: int) -> None:
        self.permits += permits
        self.wake()

    def skip_to(self, position: Position) -> None:
        self.way.up(lambda: self._skipped(position))

    def _skipped(self, position: Position) -> None:
        if self._next is None or self._next <= position:
            self._next = position.after()

    def wake(self) -> None:
        if self.is_open and not self._is_woken and self.is_connected:
            self._is_woken = True
            self.way.dispatch(self._hand_out)

    def _hand_out(self) -> None:
        self._is_woken = False
        if self.is_forgotten:
            return
        given = 0
        for entry in self._from_here():
            if not self.is_open or self.permits <= 0 or not self.is_connected:
                return
            if self.topic.is_hidden(entry):
                continue
            if entry.position.ledger in self.topic.silent:
                return
            if given >= self.way.entries_at_once:
                self.wake()
                return
            given += 1
            self._hand_out_one(entry)

    def _from_here(self) -> Iterator[RawEntry]:
        """What stands where it reads, and behind that."""
        entries, next_ = self.topic.entries, self._next
        first = self.topic.trimmed if next_ is None else bisect_left(entries, next_, self.topic.trimmed, key=_position)
        return islice(entries, first, len(entries))

    def _hand_out_one(self, entry: RawEntry) -> None:
        self.permits -= permits_of(entry)
        self.topic.bytes_read += len(entry.payload)
        self._next = entry.position.after()
        self.down(lambda: self._events.on_entry(entry))

    async def last_position(self) -> Position | None:
        answer: asyncio.Future[Position | None] = asyncio.get_running_loop().create_future()
        self.way.up(lambda: self._tell_last(answer))
        return await answer

    def _tell_last(self, answer: asyncio.Future[Position | None]) -> None:
        if self.is_connected:
            last = self._last_of_closed if self.is_forgotten else self.topic.last_named()
            self.way.answer(lambda: None if answer.done() else answer.set_result(last))
        else:
            self.way.answer(lambda: None if answer.done() else answer.set_exception(Unavailable("cut")))

    def close(self) -> None:
        self.is_open = False
        self.forget()

    def tell_end(self, reason: PulsarError) -> None:
        self._events.on_end(reason)
