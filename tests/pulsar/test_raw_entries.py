"""Silence of a broker is told from its loss."""

from __future__ import annotations

import asyncio
import contextlib
import time
from contextlib import aclosing

import pytest

from kafka_sidecar.pulsar import raw_entries
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.pulsar.events import ConsumerEvents
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.pulsar.raw_entries import FIRST_PERMITS, NoEntryCame, Patience, TakesPermits, raw_entries_from
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog

METADATA = MessageMetadata(producer_name=b"p", sequence_id=0, publish_time=1).SerializeToString()


async def test_silence_behind_the_last_entry_is_a_failure_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_entries, "ENTRY_SECONDS", 0.05)
    log = MemoryLog()
    position = log.write(batch(b"a"))
    async with aclosing(raw_entries_from(log, None)) as entries:
        assert (await anext(entries)).position == position
        with pytest.raises(NoEntryCame):
            await anext(entries)


async def test_a_broker_that_is_lost_is_not_silence() -> None:
    log = MemoryLog()
    log.write(batch(b"a"))
    async with aclosing(raw_entries_from(log, None)) as entries:
        await anext(entries)
        asyncio.get_running_loop().call_soon(log.readers[-1].lose, Unavailable("the connection was lost"))
        with pytest.raises(Unavailable) as lost:
            await anext(entries)
    assert not isinstance(lost.value, NoEntryCame)


def test_what_came_while_the_process_stood_still_is_not_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_entries, "ENTRY_SECONDS", 0.5)

    async def read() -> None:
        log = MemoryLog()
        position = log.write(batch(b"a"))
        async with aclosing(raw_entries_from(log, None)) as entries:
            assert (await anext(entries)).position == position
            later = asyncio.ensure_future(anext(entries))
            for _ in range(5):  # until it waits
                await asyncio.sleep(0)
            log.write(batch(b"b"))
            time.sleep(0.6)  # noqa: ASYNC251 - both timers are late then, and the entry's is the first
            assert (await later).position > position

    with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
        runner.run(read())


class SlowLedger:
    """The first entry is at hand. The second one stands in a ledger that each reader waits for anew."""

    def __init__(self, seconds: float) -> None:
        self.patience = Patience()
        self.seconds = seconds
        self.readers = 0
        self._log = MemoryLog()
        self._log.write(batch(b"a"))
        self._log.roll()
        self._log.write(batch(b"b"))

    async def reader(self, _: Position | None, events: ConsumerEvents) -> TakesPermits:
        self.readers += 1
        first, second = self._log.entries
        loop = asyncio.get_running_loop()
        loop.call_soon(events.on_entry, first)
        self._later = loop.call_later(self.seconds, events.on_entry, second)
        return self

    def grant(self, permits: int) -> None: ...
    def close(self) -> None:
        self._later.cancel()


async def test_a_reader_that_comes_from_a_ledger_at_hand_gets_through_a_slow_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(raw_entries, "ENTRY_SECONDS", 0.05)
    log, came = SlowLedger(0.3), 0
    while came < 2 and log.readers < 8:
        came = 0
        async with aclosing(raw_entries_from(log, None)) as entries:
            with contextlib.suppress(NoEntryCame):
                while came < 2:
                    await anext(entries)
                    came += 1
    assert came == 2
    assert log.readers <= 4  # 0.05, 0.1, 0.2 and 0.4 s


PLACE, NEXT = Position(5, 3), Position(5, 4)


def test_the_patience_grows_at_the_place_where_readers_wait_in_vain() -> None:
    patience = raw_entries.Patience()
    assert patience.at(PLACE, None) == raw_entries.ENTRY_SECONDS
    for _ in range(3):
        patience.was_too_short(PLACE, None, 10.0)  # of three readers that waited side by side
    assert patience.at(PLACE, None) == 20.0
    assert patience.at(None, None) == raw_entries.ENTRY_SECONDS
    patience.was_too_short(PLACE, None, 70.0)
    assert patience.at(PLACE, None) == raw_entries.LONGEST_SECONDS


def test_the_patience_stays_where_a_reader_comes_to_the_place_through_entries_that_are_at_hand() -> None:
    patience = raw_entries.Patience()
    patience.was_too_short(PLACE, PLACE, 10.0)
    patience.has_begun(0.01)
    patience.has_come(PLACE, None, 0.01)
    assert patience.at(PLACE, PLACE) == patience.at(NEXT, None) == 20.0
    patience.has_come(PLACE, PLACE, 15.0)
    assert patience.at(PLACE, PLACE) == 30.0
    assert patience.at(None, None) == 20.0  # elsewhere it is as slow


def test_the_patience_falls_again_as_readers_begin_faster() -> None:
    patience = raw_entries.Patience()
    patience.has_begun(30.0)
    assert patience.at(PLACE, None) == 60.0
    for _ in range(3):
        patience.has_begun(0.01)
    assert patience.at(PLACE, None) == raw_entries.ENTRY_SECONDS


def test_a_wait_that_was_in_vain_for_another_reason_makes_nobody_wait_elsewhere() -> None:
    """The broker had forgotten the reader, or nothing was there and now is."""
    patience = raw_entries.Patience()
    patience.was_too_short(PLACE, None, 60.0)
    for seconds in (40.0, 20.0, 10.0):
        patience.has_come(PLACE, None, 0.01)
        assert patience.at(PLACE, None) == seconds
        assert patience.at(NEXT, None) == raw_entries.ENTRY_SECONDS


def test_the_places_where_readers_wait_in_vain_are_bounded() -> None:
    patience = raw_entries.Patience()
    for entry in range(3 * raw_entries.MOST_PLACES):
        patience.was_too_short(Position(1, entry), None, 10.0)
    assert len(patience._in_vain) == raw_entries.MOST_PLACES


@pytest.mark.parametrize(
    ("size", "at_once"), [(100, 256), (1024 * 1024, 16), (5 * 1024 * 1024, 3), (64 * 1024 * 1024, 1)]
)
async def test_fewer_entries_are_on_their_way_where_they_are_large(size: int, at_once: int) -> None:
    log = Endless(size)
    for first in (
        FIRST_PERMITS,
        at_once,
    ):  # how large they are is known when the first has come, and to the next reader from its start
        log.granted.clear()
        async with aclosing(raw_entries_from(log, None, 256)) as entries:
            assert [(await anext(entries)).position.entry for _ in range(600)] == list(range(600))
        assert log.granted[0] == first
        assert max(log.granted[1:]) <= at_once


class Endless:
    """A log of entries that say that they are so large."""

    def __init__(self, size: int) -> None:
        self.patience = Patience()
        self.granted: list[int] = []
        self._size = size

    async def reader(self, start: Position | None, events: ConsumerEvents) -> TakesPermits:
        return _OfEndless(self, self._size, events)


class _OfEndless:
    def __init__(self, log: Endless, size: int, events: ConsumerEvents) -> None:
        self._log = log
        self._payload = memoryview(bytes(size))
        self._events = events
        self._next = 0

    def grant(self, permits: int) -> None:
        self._log.granted.append(permits)
        for _ in range(permits):
            self._events.on_entry(RawEntry(Position(1, self._next), self._next, 1, METADATA, self._payload))
            self._next += 1

    def close(self) -> None: ...
