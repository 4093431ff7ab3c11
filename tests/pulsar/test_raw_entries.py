"""Silence of a broker is told from its loss."""

from __future__ import annotations

import asyncio
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
