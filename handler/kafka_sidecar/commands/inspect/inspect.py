"""`kafka-sidecar inspect`: an entry, a partition's fold, a group's records, as they are in Pulsar. Nothing is
written.
"""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError

from kafka_sidecar.config import Config
from kafka_sidecar.coordination.shards import shard_of
from kafka_sidecar.coordination.term_log import MARKER_KEY
from kafka_sidecar.errors import CommandFailed, EntryUnreadable
from kafka_sidecar.groups.records import Key, Record, Value
from kafka_sidecar.groups.records.codec import GroupRecords
from kafka_sidecar.internal_topics.compacted_topic import CompactedTopic
from kafka_sidecar.model.partition_name import partition_name
from kafka_sidecar.partition.fold.fold import BEFORE_ALL, Fold, Folded
from kafka_sidecar.partition.follow.read_entries import base_offset_of, end_before
from kafka_sidecar.partition.log.entries import Content, read_entry
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.partition.log.topic_logs import TopicLogs, opened
from kafka_sidecar.partition.search.timestamp_search import TimestampAndOffset
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.pulsar.messages import Message, read_messages
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.pulsar.raw_entries import HasReader, NoEntryCame, raw_entries_from
from kafka_sidecar.topics.names import InvalidTopicName
from kafka_sidecar.wire.records import CODEC_MASK, CONTROL, NO_PRODUCER_ID, NO_TIMESTAMP, TRANSACTIONAL, BatchHeader

NAME: Final = "inspect"
CODECS: Final = dict(enumerate(("none", "gzip", "snappy", "lz4", "zstd")))
# Entries on their way at a time.
PERMITS: Final = 256
# Of producers and of entries that the fold refuses: more are not read on a screen.
LINES: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectOptions:
    what: str  # entry, partition or group
    name: str  # of the topic, or the group
    partition: int = 0
    offset: int | None = None
    position: Position | None = None
    entries: int = 2_000


async def inspect(config: Config, wanted: InspectOptions) -> int:
    try:
        async with opened(config) as logs:
            if wanted.what == "group":
                lines = _group(logs, config, wanted.name)
            else:
                log = await _log(logs, wanted)
                lines = entry_lines(log, wanted) if wanted.what == "entry" else fold_lines(log, wanted.entries)
            async for line in lines:
                print(line)
    except (PulsarError, InvalidTopicName) as error:
        raise CommandFailed(str(error)) from error
    return 0


async def _log(logs: TopicLogs, wanted: InspectOptions) -> EntryLog:
    topic = await logs.catalog.find(logs.catalog.names.parse(wanted.name))
    if not 0 <= wanted.partition < topic.partitions:
        raise CommandFailed(
            f"{wanted.name} has partitions 0 to {topic.partitions - 1}: there is no partition {wanted.partition}"
        )
    return logs.log(topic.name.partition(wanted.partition), NAME)


# --- an entry


async def entry_lines(log: EntryLog, wanted: InspectOptions) -> AsyncIterator[str]:
    position = wanted.position
    if position is None:
        position = await log.find_index(wanted.offset or 0)
    if position is None:
        raise CommandFailed(f"offset {wanted.offset} is beyond the end of the log")
    stats = await log.stats()
    if stats.last is None or not position <= stats.last:
        raise CommandFailed(f"there is no entry {position}: the last one is {stats.last}")
    async with aclosing(raw_entries_from(log, position, 1)) as entries:
        entry = await anext(entries)
    if entry.position != position:
        raise CommandFailed(f"there is no entry {position} that readers are given: the next one is {entry.position}")
    metadata = _metadata(entry)
    yield f"position          {entry.position}"
    yield f"index             {entry.last_index}"
    yield f"broker timestamp  {_time(entry.broker_timestamp)}"
    yield f"producer          {metadata.producer_name.decode(errors='replace')}, sequence {metadata.sequence_id}"
    for pair in metadata.properties:
        yield f"property          {pair.key.decode(errors='replace')} = {pair.value.decode(errors='replace')}"
    yield f"payload           {len(entry.payload)} bytes"
    try:
        content = read_entry(entry)
        base = 1 - content.offset_count if entry.last_index is None else await base_offset_of(log, entry)
    except EntryUnreadable as error:
        yield f"unreadable        {error}"
        return
    yield f"offsets           {base} to {entry.last_index}"
    yield f"written by        {_writer(content)}"
    for header, _ in content.batches:
        yield f"batch             {_batch(header, base)}"
        base += header.offset_count


def _writer(content: Content) -> str:
    if content.known_there is not None:
        return "a sidecar of another cluster"
    return "a sidecar" if content.writer is not None else "others"


def _metadata(entry: RawEntry) -> MessageMetadata:
    try:
        return entry.message_metadata
    except DecodeError as error:
        raise CommandFailed(f"entry {entry.position} is not a message of Pulsar's: {error}") from error


def _batch(header: BatchHeader, base: int) -> str:
    kinds = [
        kind for flag, kind in ((TRANSACTIONAL, "transactional"), (CONTROL, "control")) if header.attributes & flag
    ]
    parts = [
        f"offsets {base} to {base + header.offset_count - 1}",
        f"{header.record_count} records",
        f"{header.size} bytes",
        CODECS.get(header.attributes & CODEC_MASK, "an unknown codec"),
        f"{_time(header.base_timestamp)} to {_time(header.max_timestamp)}",
        *kinds,
    ]
    if header.producer_id != NO_PRODUCER_ID:
        parts.append(
            f"producer id {header.producer_id} epoch {header.producer_epoch} sequences {header.base_sequence} to "
            f"{header.last_sequence}"
        )
    return ", ".join(parts)


def _time(milliseconds: int | None) -> str:
    if milliseconds is None or milliseconds < 0:
        return "none"
    try:
        return datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):  # a producer may write any 64 bits
        return f"{milliseconds} ms"


# --- a partition


async def fold_lines(log: EntryLog, entries: int) -> AsyncIterator[str]:
    """The end of the log, folded as a sidecar does when it opens the partition."""
    stats = await log.stats()
    yield f"ledgers           {len(stats.ledgers)}, {sum(one.entries for one in stats.ledgers)} entries"
    if stats.last is None:
        last_index = await log.index_property()
        yield f"empty             the next offset is {(-1 if last_index is None else last_index) + 1}"
        return
    start = stats.before(stats.last, entries, 2**63)
    fold = Fold(None if start == stats.first else start)
    refused = 0
    greatest = TimestampAndOffset(-1, NO_TIMESTAMP)
    async for folded, content in _folded(log, fold, start, await log.last_readable(stats.last, BEFORE_ALL)):
        for line in _refusals(folded, content):
            refused += 1
            if refused <= LINES:
                yield line
        if content is not None and content.max_timestamp > greatest.timestamp:
            greatest = TimestampAndOffset(folded.base_offset, content.max_timestamp)
    yield f"first entry       {stats.first}"
    yield f"last entry        {fold.last_position}"
    yield (
        f"folded            offsets {fold.first_offset} to {fold.next_offset - 1}, from entry {start}; {refused} "
        "batches hidden"
    )
    yield f"greatest time     {_time(greatest.timestamp)}, in the entry at offset {greatest.offset}"
    yield f"producers         {len(fold.producers)}"
    for producer_id, state in list(fold.producers.states.items())[-LINES:]:
        yield f"  {producer_id}: epoch {state.epoch}, last sequence {state.last}, at entry {state.at}"
    for producer_id in list(fold.producers.unsure)[-LINES:]:
        yield f"  {producer_id}: not known for certain, look at more entries"


async def _folded(
    log: EntryLog, fold: Fold, start: Position, last: Position | None
) -> AsyncIterator[tuple[Folded, Content | None]]:
    async for entry in _until(log, start, last):
        index = entry.last_index
        if index is None:
            raise CommandFailed(
                f"entry {entry.position} has no index: set brokerEntryMetadataInterceptors on every broker"
            )
        try:
            content = read_entry(entry)
            if fold.lacks_proof(content):
                fold.follows_offset = await end_before(log, entry.position)
            fold.check_count(entry.position, index, content)
        except EntryUnreadable as error:
            yield fold.unreadable(entry.position, index, error), None
        else:
            yield fold.by_reading(entry.position, index, content), content


def _refusals(folded: Folded, content: Content | None) -> Iterator[str]:
    """A line for each batch that no consumer gets."""
    base = folded.base_offset
    counts = [folded.next_offset - base] if content is None else [header.offset_count for header, _ in content.batches]
    for verdict, count in zip(folded.verdicts, counts, strict=True):
        if verdict.is_hidden:
            why = "a duplicate" if verdict.duplicate else verdict.error.name
            yield f"hidden            entry {folded.position}, offsets {base} to {base + count - 1}: {why}"
        base += count


async def _until(log: HasReader, start: Position | None, last: Position | None) -> AsyncIterator[RawEntry]:
    if last is None:
        return
    async with aclosing(raw_entries_from(log, start, PERMITS)) as entries:
        async for entry in entries:
            yield entry
            if entry.position >= last:
                return


# --- a group


async def _group(logs: TopicLogs, config: Config, group: str) -> AsyncIterator[str]:
    topic = f"persistent://{config.groups.namespace}/__consumer_offsets"
    count = await logs.admin.topics.partitions(topic)
    if count == 0:
        raise CommandFailed(f"{topic} was made without partitions: there are no groups in it")
    number = shard_of(group, count)
    shard = partition_name(topic, number)
    log = logs.log(shard, NAME)
    last = (await log.stats()).last
    yield f"shard             {shard}"
    last = None if last is None else await log.last_readable(last, BEFORE_ALL)
    records: dict[Key, Value] = {}
    reading = GroupReading(group)
    silent = False
    try:
        async for entry in _until(CompactedTopic(logs.client, shard), None, last):
            for record in reading.records(entry):
                records.pop(record.key, None)
                if record.value is not None:
                    records[record.key] = record.value
    except NoEntryCame:
        silent = True
    if silent:  # compaction leaves out a deletion, also where it is the last entry
        yield f"incomplete?       nothing came behind the entries that were read; the last one is {last}"
    if reading.passed_over:
        yield f"passed over       {reading.passed_over} messages that can't be read"
    yield f"records           {len(records)}"
    for key, value in records.items():
        yield f"{key}\n    {value}"


class GroupReading:
    """The records of one group in the entries of its shard, in the order of the log."""

    def __init__(self, group: str) -> None:
        self.passed_over = 0  # anybody may write into the topic
        self._group = group
        codec = GroupRecords()
        self._read = codec.read
        self._legacy_reader = codec.legacy_reader()  # a transaction of Kafka-on-Pulsar's may end entries later

    def records(self, entry: RawEntry) -> list[Record]:
        try:
            messages = read_messages(entry.message_metadata, entry.payload)
        except Exception:
            self.passed_over += 1
            return []
        return [record for message in messages for record in self.of_message(message)]

    def of_message(self, message: Message) -> list[Record]:
        if message.key is None:
            return []
        try:
            legacy = self._legacy_reader.records(message.value) if message.value else None
            pairs = legacy if legacy is not None else [(message.key, message.value or None)]
            records = [self._read(key, value) for key, value in pairs]
        except Exception:
            self.passed_over += message.key != MARKER_KEY
            return []
        return [record for record in records if record is not None and record.key.group == self._group]
