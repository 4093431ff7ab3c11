"""Moved log starts, as sidecars write them, and the compaction that follows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from kafka_sidecar.internal_topics.compacted_topic import DELETES
from kafka_sidecar.internal_topics.log_starts import LogStarts, stored_starts
from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.messages import write_batch
from tests.support.internal_topic import InternalTopic, Writer

PARTITION = "persistent://public/default/t-partition-0"
EARLY, LATE = MovedStart(Position(5, 1), 10), MovedStart(Position(5, 9), 90)
Open = Callable[[], LogStarts]


class Silent:
    def on_receipt(self, sequence: int, ledger: int, entry: int) -> None: ...


def write(topic: InternalTopic, *values: MovedStart | None, key: str = PARTITION) -> None:
    """A deletion is one of the value before it."""
    writer, before = Writer(topic, cast(Any, Silent())), values[0]
    for value in values:
        deletes = () if value is not None else ((DELETES, cast(MovedStart, before).encode()),)
        writer.send_batch(0, 1, write_batch([(key.encode(), value and value.encode())], 1, *deletes))
        before = value
    topic.there = True


def compact(topic: InternalTopic, *left_out: int) -> None:
    topic.compacted_to, topic.left_out = Position(topic.ledger, len(topic.entries) - 1), set(left_out)


async def stored(topic: InternalTopic) -> dict[str, MovedStart]:
    return await stored_starts(cast(Any, topic), cast(Any, topic), "public/__kafka")
