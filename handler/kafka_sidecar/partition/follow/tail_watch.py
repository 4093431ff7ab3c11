"""Whether the tail reader stands at the topic that the broker serves.

A broker that closes a topic ends the subscriptions that the topic has (PersistentTopic.close). A subscription that is
being made at that moment may be added behind those. Then it stands at what is closed: it is handed nothing, it names an
old entry as the last, and nobody ever ends it. So a reader that has brought nothing since it was opened proves nothing.
Where the broker has entries that such a reader should have brought, it is opened again.
"""

from __future__ import annotations

import contextlib
import logging
import math
from typing import Final

from kafka_sidecar.loop.supervised import SupervisedTask
from kafka_sidecar.partition.fold.fold import BEFORE_ALL, Fold
from kafka_sidecar.partition.follow.tail_reader import TailReader
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

# Silence of the tail reader after which the broker is checked for missed entries. A broker dispatches an entry within
# 10 ms, a slow one within 1 s.
PATIENCE_SECONDS: Final = 5.0
# Each check in vain doubles the time to the next one, up to this limit: a log may hold only entries that readers do not
# get.
LONGEST_PATIENCE_SECONDS: Final = 60.0
# A reader that names the right last entry, but gets no entries for this long, is reopened all the same. Each reopening
# doubles the time, up to 10 minutes. An entry that arrives resets it.
LONGEST_SILENCE_SECONDS: Final = 60.0
MOST_SILENCE_SECONDS: Final = 600.0


class TailWatch:
    def __init__(self, name: str, log_: EntryLog, fold: Fold, tail: TailReader) -> None:
        self._name = name
        self._log = log_
        self._fold = fold
        self._tail = tail
        self._known: Position | None = None
        # From the last folded entry up to this position, the log holds nothing that readers get.
        self._looked_to = BEFORE_ALL
        self._seen = (0, 0, 0)  # the tail reader's counters at the last tick: openings, entries, delays
        # Loop time of the tail reader's last progress, and of the last check at the broker.
        self._came_at = self._asked_at = -math.inf
        self._is_silent_for = 0.0
        self._longest_silence = LONGEST_SILENCE_SECONDS
        self._patience = PATIENCE_SECONDS
        self._look = SupervisedTask("tail_watch", name, self._look_once)

    def note(self, position: Position | None) -> None:
        """This entry stands in the log: it is known by another way than the tail reader."""
        if position is not None and (self._known is None or position > self._known):
            self._known = position

    def tick(self, now: float) -> None:
        come_to = self._come_to()
        if come_to != self._seen:
            if self._tail.brought:
                self._patience, self._longest_silence = PATIENCE_SECONDS, LONGEST_SILENCE_SECONDS
            self._seen, self._came_at = come_to, now
        elif not self._tail.is_open:
            self._look.stop()
        elif now - max(self._came_at, self._asked_at) >= self._patience and self._may_lack():
            self._asked_at, self._is_silent_for = now, now - self._came_at
            self._patience = min(2 * self._patience, LONGEST_PATIENCE_SECONDS)
            self._look.start()

    def stop(self) -> None:
        self._look.stop()

    def _come_to(self) -> tuple[int, int, int]:
        return self._tail.openings, self._tail.brought, self._tail.delays

    def _may_lack(self) -> bool:
        if not self._tail.brought:
            return True
        return self._known is not None and self._known > max(self._fold.reached or BEFORE_ALL, self._looked_to)

    async def _look_once(self) -> None:
        with contextlib.suppress(PulsarError):  # the next check repeats the request
            await self._ask()

    async def _ask(self) -> None:
        """May raise PulsarError."""
        come_to = self._come_to()
        behind = self._behind()
        last = (await self._log.stats()).last
        readable = None if last is None or last <= behind else await self._log.last_readable(last, behind)
        if readable is not None and readable > behind:
            named = await self._tail.named_last()
            if self._come_to() != come_to:
                return
            if named is not None and named >= readable:
                # Either the broker is slow, or it has forgotten the reader and nothing was written since. In the second
                # case the reader names an outdated last entry as soon as something is written.
                self._patience = PATIENCE_SECONDS
                if self._is_silent_for < self._longest_silence:
                    return
                self._longest_silence = min(2 * self._longest_silence, MOST_SILENCE_SECONDS)
            metrics.SILENT_READERS.inc()
            log.warning(
                "the tail reader of %s is opened again: the broker holds entry %s and has not handed it out",
                self._name,
                readable,
            )
            self._tail.restart()
        elif self._come_to() == come_to and last is not None and self._tail.brought:
            self._looked_to = max(self._looked_to, last)

    def _behind(self) -> Position:
        """What stands behind this the tail reader was to bring. It begins with the last entry that is folded."""
        if self._tail.brought:
            return max(self._fold.reached or BEFORE_ALL, self._looked_to)
        begin = self._tail.begins_at
        return BEFORE_ALL if begin is None else Position(begin.ledger, begin.entry - 1)
