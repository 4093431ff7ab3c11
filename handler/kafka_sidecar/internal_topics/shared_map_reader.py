"""The reader behind a shared map: every message of a compacted topic, from its beginning on, and whether one of them is
missing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from kafka_sidecar.internal_topics.compacted_topic import first_index_of
from kafka_sidecar.pulsar.entry import CompactionStats, Position, RawEntry
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.pulsar.events import ConsumerEvents
from kafka_sidecar.pulsar.messages import Message, read_messages
from kafka_sidecar.pulsar.raw_entries import permits_of
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

# Flow permits: messages that the broker may send ahead. They are small.
PERMITS: Final = 1_000
NOWHERE: Final = Position(-1, -1)

OnMessage = Callable[[Message, Position], None]


def take_messages(topic: str, entry: RawEntry, on_message: OnMessage) -> None:
    """What can't be read is passed over: anybody may have written it."""
    try:
        for message in read_messages(entry.message_metadata, entry.payload):
            on_message(message, entry.position)
    except Exception as error:
        metrics.UNREADABLE_ENTRIES.inc()
        log.warning("entry %s of %s is passed over: %s", entry.position, topic, error)


class Overtaken(Unavailable):
    """Compaction has passed the reader, which did not read all that counts."""


class SharedMapReader(ConsumerEvents):
    def __init__(
        self, topic: str, on_message: OnMessage, horizon: Position | None, last_index: int | None = None
    ) -> None:
        """`horizon`: up to where it is compacted. `last_index`: of the last entry up to there, where that is known."""
        self._topic = topic
        self._horizon = horizon
        self._behind_horizon = None if last_index is None else last_index + 1
        self._compacted = 0  # entries read up to the compaction horizon
        self._on_message = on_message
        self._taken = 0
        self._next_index: int | None = None  # expected index of the next message; None if unknown
        # Whether a gap in the indexes of messages is an error. During loading it is none: retention may have removed
        # entries, and CompactionStats show compactions.
        self.misses_nothing = False
        self.lost: asyncio.Future[PulsarError] = asyncio.get_running_loop().create_future()
        self.news = asyncio.Event()
        self.position = NOWHERE  # position of the last entry received
        self.first_index: int | None = None
        self._grant: Callable[[int], None] = lambda _: None

    def begin(self, grant: Callable[[int], None]) -> None:
        """`grant`: permits for its consumer."""
        self._grant = grant
        grant(PERMITS)

    def on_entry(self, entry: RawEntry) -> None:
        if self.lost.done():
            return  # entries behind a missing one do not count: the topic is read again
        first = first_index_of(entry)
        if self._is_behind_a_gap(entry, first) and self.misses_nothing:
            self.on_end(Overtaken(f"{self._topic} was compacted while it was read"))
            return
        if self.position == NOWHERE:
            self.first_index = first
        take_messages(self._topic, entry, self._on_message)
        self._taken += permits_of(entry)
        self.position = max(self.position, entry.position)
        if self._horizon is not None and entry.position <= self._horizon:
            self._compacted += 1
        if self._taken >= PERMITS // 2:
            self._grant(self._taken)
            self._taken = 0
        self.news.set()

    def _is_behind_a_gap(self, entry: RawEntry, first: int | None) -> bool:
        """Whether something before this entry has not come: compaction may just have left it out, and it may be what
        counts.
        """
        expected, is_compacted = self._next_index, False
        if self._horizon is not None:
            is_compacted = entry.position < self._horizon
            if expected is None and self.position <= self._horizon < entry.position:
                expected = self._behind_horizon
        self._next_index = None if entry.last_index is None or is_compacted else entry.last_index + 1
        return expected is not None and first is not None and first > expected

    def has_read_all(self, stats: CompactionStats) -> bool:
        """All that the log had when the broker made `stats`. Of what is compacted the number of entries tells: its last
        may be left out.
        """
        end = stats.log.last if stats.has_news else stats.compacted_to
        if end is None or self.position >= end:
            return True
        return not stats.has_news and not self.is_overtaken(stats) and self._compacted >= stats.compacted_entries

    def is_overtaken(self, stats: CompactionStats) -> bool:
        """Whether it was compacted behind what has come so far."""
        return (
            stats.compacted_to is not None
            and stats.compacted_to != self._horizon
            and self.position < stats.compacted_to
        )

    def on_end(self, reason: PulsarError) -> None:
        if not self.lost.done():
            self.lost.set_result(reason)
        self.news.set()
