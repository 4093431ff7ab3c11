"""Silence of a broker is told from its loss."""

from __future__ import annotations

import asyncio
import time
from contextlib import aclosing

import pytest

from handler.pulsar import raw_entries
from handler.pulsar.errors import Unavailable
from handler.pulsar.raw_entries import NoEntryCame, raw_entries_from
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog


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


def test_the_patience_grows_with_what_is_slow_and_falls_again() -> None:
    patience = raw_entries.Patience()
    assert patience.seconds == raw_entries.ENTRY_SECONDS
    for _ in range(3):
        patience.was_too_short(10.0)  # of three readers that waited side by side
    assert patience.seconds == 20.0
    patience.was_too_short(70.0)
    assert patience.seconds == raw_entries.LONGEST_SECONDS
    patience.has_come(30.0)
    assert patience.seconds == 60.0
    for _ in range(3):
        patience.has_come(0.01)
    assert patience.seconds == raw_entries.ENTRY_SECONDS
