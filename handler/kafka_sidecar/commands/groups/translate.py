"""`kafka-sidecar groups translate`: offsets that a group committed with Kafka-on-Pulsar before 2.8 become continuous
ones.

Each is looked up in the log: which entry is meant, and which index the broker gave it. What can't be decided is listed
and stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from aiokafka.errors import KafkaError

from kafka_sidecar.config import Config
from kafka_sidecar.errors import CommandFailed, EntryUnreadable
from kafka_sidecar.kafka_client.committed import commit, committed_offsets
from kafka_sidecar.partition.fold.fold import BEFORE_ALL
from kafka_sidecar.partition.follow.read_entries import base_offset_of, first_entry
from kafka_sidecar.partition.log.packed_offsets import PackedOffset, Undecided, place_of
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.partition.log.topic_logs import TopicLogs, opened
from kafka_sidecar.pulsar.errors import PulsarError, TopicMissing
from kafka_sidecar.pulsar.raw_entries import raw_entries_from
from kafka_sidecar.topics.names import InvalidTopicName

NAME: Final = "translate"


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslateOptions:
    group: str
    bootstrap: str
    dry_run: bool


@dataclass(frozen=True, slots=True)
class Translation:
    topic: str
    partition: int
    packed: PackedOffset
    offset: int | None  # None where it can't be decided
    text: str


async def translate(config: Config, wanted: TranslateOptions, say: Callable[[str], None]) -> int:
    """Carry it out, or say what would be done. 1 where an offset is left as it was."""
    try:
        packed = _packed(await committed_offsets(wanted.bootstrap, wanted.group))
        async with opened(config) as logs:
            translations = [
                await _translation(logs, topic, index, offset) for (topic, index), offset in sorted(packed.items())
            ]
        _show(wanted, translations, say)
        decided = {(one.topic, one.partition): one.offset for one in translations if one.offset is not None}
        if not wanted.dry_run:
            await commit(wanted.bootstrap, wanted.group, decided)
            say(f"{len(decided)} offsets translated")
    except (KafkaError, OSError) as error:
        raise CommandFailed(f"the sidecar at {wanted.bootstrap} can't be asked: {error}") from error
    except (PulsarError, InvalidTopicName) as error:
        raise CommandFailed(str(error)) from error
    return 1 if any(one.offset is None for one in translations) else 0


def _packed(committed: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], PackedOffset]:
    """Those that are offsets of Kafka-on-Pulsar before 2.8."""
    offsets = {partition: PackedOffset.of(offset) for partition, offset in committed.items()}
    return {partition: packed for partition, packed in offsets.items() if packed is not None}


async def _translation(logs: TopicLogs, topic: str, index: int, packed: PackedOffset) -> Translation:
    try:
        log = logs.log(logs.catalog.names.parse(topic).partition(index), NAME)
        return await translated(log, topic, index, packed)
    except TopicMissing:
        return Translation(topic, index, packed, None, "the topic is gone")


async def translated(log: EntryLog, topic: str, index: int, packed: PackedOffset) -> Translation:
    """The continuous offset of a place in a log. May raise PulsarError."""
    try:
        offset, text = await _offset(log, packed)
    except (Undecided, EntryUnreadable) as error:
        return Translation(topic, index, packed, None, str(error))
    return Translation(topic, index, packed, offset, text)


async def _offset(log: EntryLog, packed: PackedOffset) -> tuple[int, str]:
    stats = await log.stats()
    place = place_of(packed, stats)
    last = None if stats.last is None else await log.last_readable(stats.last, BEFORE_ALL)
    if last is None:
        last_index = await log.index_property()
        return (0 if last_index is None else max(0, last_index + 1)), "the end: the log is empty"
    if place is None:
        first = await first_entry(log)
        return (0 if first is None else first.base_offset), "the log start: retention has removed its ledger"
    is_behind = place > last
    async with aclosing(raw_entries_from(log, last if is_behind else place, 1)) as entries:
        entry = await anext(entries)
    if entry.last_index is None:
        return (
            0,
            "the log start: the entry is from before the interceptor was on; `pipeline reindex` copies it to where it "
            "has an offset",
        )
    if is_behind:
        return entry.last_index + 1, "the end"
    base = await base_offset_of(log, entry)
    if entry.position != place:
        return base, f"the next entry that there is, {entry.position}"
    return min(base + packed.in_batch, entry.last_index + 1), f"entry {place}"


def _show(wanted: TranslateOptions, translations: list[Translation], say: Callable[[str], None]) -> None:
    if not translations:
        say(f"Nothing to translate: the group {wanted.group} has no offset of Kafka-on-Pulsar before 2.8.")
        return
    wide = max(len("TOPIC"), *(len(one.topic) for one in translations))
    say(f"{'TOPIC':{wide}}  PARTITION  {'LEDGER:ENTRY:BATCH':>20}  {'OFFSET':>12}")
    for one in translations:
        offset = "not decided" if one.offset is None else str(one.offset)
        say(f"{one.topic:{wide}}  {one.partition:>9}  {one.packed!s:>20}  {offset:>12}  {one.text}")
    if wanted.dry_run:
        say("Nothing was changed: this was a dry run.")
