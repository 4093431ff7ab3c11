"""Entries read on an executor: rows with their batches, and what went wrong in the place of the rest."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from kafka_sidecar.pipelines.reindex import entries
from kafka_sidecar.pipelines.reindex.entries import EntryRow, rows_of
from kafka_sidecar.pipelines.reindex.heads import Piece
from kafka_sidecar.pipelines.reindex.source import PulsarSource
from kafka_sidecar.pulsar.entry import LogStats
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from tests.support.batches import batch, records_batch
from tests.support.memory_log import MemoryLog


async def rows(log: MemoryLog, first: int = 0, last: int | None = None) -> list[EntryRow]:
    piece = Piece("t", 0, 1, first, len(log.entries) - 1 if last is None else last)
    return [one async for one in rows_of(log, piece, first)]


async def test_entries_are_rows_with_their_batches() -> None:
    log = MemoryLog()
    log.write(records_batch([(b"k", b"a", 5)]))
    log.append(
        MessageMetadata(producer_name=b"native", sequence_id=0, publish_time=7, partition_key=b"k"), 1, b"native"
    )
    first, second = await rows(log)
    assert (first.entry, first.records, first.problem) == (0, 1, "")
    assert bytes(first.data)[17:] == records_batch([(b"k", b"a", 5)])[17:]
    assert b"native" in second.data


async def test_a_marker_of_pulsars_own_at_the_end_leaves_an_empty_row() -> None:
    log = MemoryLog()
    log.write(batch(b"a", b"b"))
    log.mark()
    log.roll()
    log.write(batch())
    assert [(one.entry, one.records) for one in await rows(log, last=1)] == [(0, 2), (1, 0)]


async def test_a_ledger_that_retention_has_removed_is_no_empty_one() -> None:
    log = MemoryLog()
    log.write(batch(b"a", b"b"))
    log.write(batch(b"a", b"b"))
    log.roll()
    log.write(batch())
    log.trim(2)
    (row,) = await rows(log, last=1)
    assert (row.entry, row.problem, row.is_lasting) == (
        1,
        "entries 1:0 to 1:1 were removed before they could be read",
        True,
    )


async def test_what_can_not_be_read_is_said_where_it_is() -> None:
    log = MemoryLog()
    log.write(batch())
    broken = bytearray(records_batch([(None, b"a", 5)]))
    broken[16] = 9  # its magic
    metadata = MessageMetadata(producer_name=b"of KoP", sequence_id=0, publish_time=1)
    metadata.properties.add(key=b"entry.format", value=b"kafka")
    log.append(metadata, 1, bytes(broken))
    log.write(batch())
    found = await rows(log)
    assert [bool(one.problem) for one in found] == [False, True, False]
    assert found[1].is_lasting
    assert "entry 1:1 can't be read as Kafka records" in found[1].problem


async def test_a_transaction_without_an_index_is_not_guessed() -> None:
    log = MemoryLog()
    log.write(batch(producer_id=5, epoch=0, sequence=0, transactional=True))
    (row,) = await rows(log)
    assert row.is_lasting
    assert "nobody can tell whether it was committed" in row.problem


class Source:
    def __init__(self, log: MemoryLog) -> None:
        self._log = log

    def log(self, _topic: str, _partition: int) -> MemoryLog:
        return self._log


async def test_it_goes_on_behind_a_lost_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog()
    for _ in range(10):
        log.write(batch())
    opened = asynccontextmanager(lambda _: _one(Source(log)))
    monkeypatch.setattr(entries, "opened", opened)
    monkeypatch.setattr(entries, "RETRY_SECONDS", 0)
    found = []
    async for one in entries.read_piece(SOURCE, Piece("t", 0, 1, 0, 9)):
        found.append(one.entry)
        if one.entry in (0, 4):
            log.disconnect()
    assert found == list(range(10))


async def test_what_can_not_be_read_now_is_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog()
    log.write(batch())
    monkeypatch.setattr(entries, "opened", asynccontextmanager(lambda _: _one(Source(log))))
    monkeypatch.setattr(entries, "PATIENCE_SECONDS", 0)
    monkeypatch.setattr(entries, "RETRY_SECONDS", 0)
    monkeypatch.setattr(log, "stats", _unavailable)
    (row,) = [one async for one in entries.read_piece(SOURCE, Piece("t", 0, 1, 0, 9))]
    assert (row.entry, row.is_lasting) == (0, False)
    assert row.problem == "entry 1:0 can't be read now: the broker is away"


SOURCE = PulsarSource(url="pulsar://nowhere:1", admin_url="http://nowhere:1")


async def _one(source: Source) -> AsyncGenerator[Source, None]:
    yield source


async def _unavailable() -> LogStats:
    raise Unavailable("the broker is away")
