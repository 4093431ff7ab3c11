"""Spark's data source for a log that Kafka clients can't read: pieces of it, by Pulsar's positions, read on the
executors.

A row is an entry, with its record batches as they would be served. Each piece has a row for its last entry, whatever
came of it: with that row its reader knows that there is no more.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import asdict
from typing import Any, Final, NamedTuple

import pyarrow
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from kafka_sidecar.errors import EntryUnreadable
from kafka_sidecar.partition.log.entries import read_entry
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.partition.read.chunked_messages import read_chunked
from kafka_sidecar.pipelines.reindex.batches import SCHEMA
from kafka_sidecar.pipelines.reindex.heads import Piece
from kafka_sidecar.pipelines.reindex.source import PulsarSource, opened
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.pulsar.raw_entries import raw_entries_from
from kafka_sidecar.wire.records import CONTROL, TRANSACTIONAL

FORMAT: Final = "pulsar-entries"
# Rows are handed to Spark in batches of 8 MiB.
BATCH_BYTES: Final = 8 * 1_024 * 1_024
# A task waits up to 60 s for a broker that is away; then another round tries.
PATIENCE_SECONDS: Final = 60.0
RETRY_SECONDS: Final = 0.5
# Entries that a reader has in flight, so that the broker does not wait for permits.
AHEAD_BYTES: Final = 8 * 1_024 * 1_024
MOST_PERMITS: Final = 1_000

_ARROW: Final = pyarrow.schema(
    (
        ("topic", pyarrow.string()),
        ("partition", pyarrow.int32()),
        ("ledger", pyarrow.int64()),
        ("entry", pyarrow.int64()),
        ("records", pyarrow.int32()),
        ("data", pyarrow.binary()),
        ("problem", pyarrow.string()),
        ("is_lasting", pyarrow.bool_()),
    )
)


class EntryRow(NamedTuple):
    topic: str
    partition: int
    ledger: int
    entry: int
    records: int = 0
    data: bytes | bytearray = b""
    problem: str = ""
    is_lasting: bool = False  # True if another attempt would not read the entry either


def options_of(source: PulsarSource, pieces: Sequence[Piece]) -> dict[str, str]:
    return {"source": json.dumps(asdict(source)), "pieces": json.dumps(pieces)}


class LogEntries(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: Any) -> DataSourceReader:
        pieces = [Piece(*one) for one in json.loads(self.options["pieces"])]
        return _Reader(PulsarSource(**json.loads(self.options["source"])), pieces)


class _Reader(DataSourceReader):
    def __init__(self, source: PulsarSource, pieces: Sequence[Piece]) -> None:
        self._source = source
        self._pieces = pieces

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(piece) for piece in self._pieces]

    def read(self, partition: InputPartition) -> Iterator[pyarrow.RecordBatch]:
        rows = read_piece(self._source, partition.value)
        with asyncio.Runner() as runner:
            try:
                while found := runner.run(_some(rows)):
                    columns = [
                        pyarrow.array(column, field.type)
                        for column, field in zip(zip(*found, strict=True), _ARROW, strict=True)
                    ]
                    yield pyarrow.RecordBatch.from_arrays(columns, schema=_ARROW)
            finally:
                runner.run(rows.aclose())


async def _some(rows: AsyncGenerator[EntryRow, None]) -> list[EntryRow]:
    found, size = [], 0
    async for row in rows:
        found.append(row)
        size += len(row.data)
        if size >= BATCH_BYTES:
            break
    return found


async def read_piece(source: PulsarSource, piece: Piece) -> AsyncGenerator[EntryRow, None]:
    """Its entries in order. What goes wrong is a row where it went wrong, and the last one."""
    loop = asyncio.get_running_loop()
    at, until = piece.first, loop.time() + PATIENCE_SECONDS
    async with opened(source) as pulsar:
        log = pulsar.log(piece.topic, piece.partition)
        while at <= piece.last:
            try:
                async for row in rows_of(log, piece, at):
                    yield row
                    at, until = row.entry + 1, loop.time() + PATIENCE_SECONDS
            except PulsarError as error:
                if loop.time() >= until or not getattr(error, "retriable", False):
                    yield _row(piece, at)._replace(problem=f"entry {piece.ledger}:{at} can't be read now: {error}")
                    return
                await asyncio.sleep(RETRY_SECONDS)


def _row(piece: Piece, entry: int) -> EntryRow:
    return EntryRow(piece.topic, piece.partition, piece.ledger, entry)


async def rows_of(log: EntryLog, piece: Piece, first: int) -> AsyncGenerator[EntryRow, None]:
    """From entry `first` on."""
    expected = first
    begin, last = Position(piece.ledger, first), Position(piece.ledger, piece.last)
    async with aclosing(raw_entries_from(log, begin, await _permits(log, piece))) as entries:
        async for raw in entries:
            if raw.position > last:
                break
            yield await _understood(log, piece, raw)
            expected = raw.position.entry + 1
            if expected > piece.last:
                return
    # The missing entries are Pulsar's own markers, which brokers do not send to clients, unless the whole ledger was
    # deleted.
    end = _row(piece, piece.last)
    if any(one.ledger == piece.ledger for one in (await log.stats()).ledgers):
        yield end
    else:
        text = (
            f"entries {piece.ledger}:{expected} to {piece.ledger}:{piece.last} were removed before they could be read"
        )
        yield end._replace(problem=text, is_lasting=True)


async def _permits(log: EntryLog, piece: Piece) -> int:
    """A permit is a message; an entry has one at least."""
    for one in (await log.stats()).ledgers:
        if one.ledger == piece.ledger:
            return max(1, min(MOST_PERMITS, AHEAD_BYTES * one.entries // max(1, one.size)))
    return 1


async def _understood(log: EntryLog, piece: Piece, raw: RawEntry) -> EntryRow:
    row = _row(piece, raw.position.entry)
    try:
        content = read_entry(raw)
        data = content.data
        if content.lacks_chunks:
            whole = await read_chunked(log, raw)
            if whole is None:
                return row._replace(
                    problem=f"the message whose last part is entry {raw.position} lacks others", is_lasting=True
                )
            data = whole
    except PulsarError:
        raise
    except EntryUnreadable as error:
        return row._replace(problem=str(error), is_lasting=True)
    except Exception as error:  # any client may have written the entry, so every kind of error is possible
        return row._replace(problem=f"entry {raw.position} can't be read: {error}", is_lasting=True)
    if any(header.attributes & TRANSACTIONAL and not header.attributes & CONTROL for header, _ in content.batches):
        text = (
            f"entry {raw.position} is of a Kafka transaction: without an index nobody can tell whether it was committed"
        )
        return row._replace(problem=text, is_lasting=True)
    return row._replace(records=content.offset_count if data else 0, data=data)
