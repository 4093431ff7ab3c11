"""What a shared map has now, read once by a process that does not follow it."""

from __future__ import annotations

from contextlib import aclosing
from typing import TypeVar

from kafka_sidecar.internal_topics import shared_map_reader
from kafka_sidecar.internal_topics.compacted_topic import MARKER_KEY, CompactedTopic, deleted_by
from kafka_sidecar.internal_topics.shared_map import MergeRule, log_of
from kafka_sidecar.internal_topics.shared_map_reader import take_messages
from kafka_sidecar.pulsar.admin import COMPACTION
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.pulsar.messages import Message
from kafka_sidecar.pulsar.ports import Admin, Client
from kafka_sidecar.pulsar.raw_entries import NoEntryCame, raw_entries_from

V = TypeVar("V")


async def stored_values(client: Client, admin: Admin, topic: str, rule: MergeRule[V]) -> dict[str, V]:
    """May raise PulsarError."""
    values: dict[str, V] = {}
    if not await admin.topics.is_partitioned(topic):
        return values

    def take(message: Message, _: Position) -> None:
        if message.key is not None and message.key != MARKER_KEY:
            _take(values, message.key.decode(), message, rule)

    log_topic = log_of(topic)
    stats = await admin.topics.compaction_stats(log_topic)
    # Retention may have emptied the log: its compacted ledger can still be read.
    last = stats.log.last or stats.compacted_to
    try:
        async with aclosing(
            raw_entries_from(CompactedTopic(client, log_topic), None, shared_map_reader.PERMITS)
        ) as entries:
            while last is not None:
                entry = await anext(entries)
                take_messages(log_topic, entry, take)
                if entry.position >= last:
                    break
    except NoEntryCame as silence:
        # Compaction drops deletions. If the last entry is one, the reader never gets it, although it has read
        # everything up to there.
        compacted_to = await admin.subscriptions.acknowledged(log_topic, COMPACTION)
        if last is None or compacted_to is None or compacted_to < last:
            raise Unavailable(f"{topic} was not read to its end, entry {last}: {silence}") from silence
    return values


def _take(values: dict[str, V], key: str, message: Message, rule: MergeRule[V]) -> None:
    known, deleted = values.get(key), deleted_by(message)
    if message.value:
        value = rule.decode(message.value)
        if known is None or not rule.supersedes(known, value):
            values[key] = value
    elif known is None or deleted is None or not rule.supersedes(known, rule.decode(deleted)):
        values.pop(key, None)
