"""Whether the tail reader stands at the topic that the broker serves.

A broker that closes a topic ends the subscriptions that the topic has (PersistentTopic.close). A subscription that is being made at
that moment may be added behind those. Then it stands at what is closed: it is handed nothing, it names an old entry as the last,
and nobody ever ends it. So a reader that has brought nothing since it was opened proves nothing. Where the broker has entries that
such a reader should have brought, it is opened again.
"""

from __future__ import annotations

import logging
import math
from typing import Final

from handler.partition.fold.fold import BEFORE_ALL, Fold
from handler.partition.log.port import EntryLog
from handler.partition.read.tail_reader import TailReader
from handler.pulsar.entry import Position
from handler.tasks import KeptAlive
from handler.telemetry import metrics
from handler.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

# A broker hands an entry out within 10 ms, a slow one within a second.
PATIENCE_SECONDS: Final = 5.0
# Each look in vain doubles the patience: a log may hold nothing that readers are given.
LONGEST_PATIENCE_SECONDS: Final = 60.0


class TailWatch:
    def __init__(self, name: str, log_: EntryLog, fold: Fold, tail: TailReader) -> None:
        self._name = name
        self._log = log_
        self._fold = fold
        self._tail = tail
        self._known: Position | None = None
        self._looked_to = BEFORE_ALL  # up to there is nothing that readers are given, behind what is folded
        self._seen = (0, 0)  # how far the tail reader had come at the last tick
        self._waits_since = -math.inf  # it had come further, or the broker was asked
        self._patience = PATIENCE_SECONDS
        self._look = KeptAlive("tail_watch", name, self._look_once)

    def note(self, position: Position | None) -> None:
        """This entry stands in the log: another way than the tail reader has told it."""
        if position is not None and (self._known is None or position > self._known):
            self._known = position

    def tick(self, now: float) -> None:
        come_to = self._come_to()
        if come_to != self._seen:
            if self._has_begun_soon(now):
                self._patience = PATIENCE_SECONDS
            self._seen, self._waits_since = come_to, now
        elif self._tail.is_open and now - self._waits_since >= self._patience and self._may_lack():
            self._waits_since = now
            self._look.start()

    def stop(self) -> None:
        self._look.stop()

    def _has_begun_soon(self, now: float) -> bool:
        """Whether the first entry has just come, and in time. A storage that is slow once is slow again."""
        openings, brought = self._seen
        if not self._tail.brought:
            return False
        return openings != self._tail.openings or (not brought and now - self._waits_since <= PATIENCE_SECONDS)

    def _come_to(self) -> tuple[int, int]:
        return self._tail.openings, self._tail.brought

    def _may_lack(self) -> bool:
        if not self._tail.brought:
            return True
        return self._known is not None and self._known > max(self._fold.reached or BEFORE_ALL, self._looked_to)

    async def _look_once(self) -> None:
        """Ask the broker. May raise PulsarError, and is called again then."""
        come_to = self._come_to()
        behind = self._behind()
        last = (await self._log.stats()).last
        readable = None if last is None or last <= behind else await self._log.last_readable(last, behind)
        if self._come_to() != come_to:
            return
        self._patience = min(2 * self._patience, LONGEST_PATIENCE_SECONDS)
        if readable is not None and readable > behind:
            metrics.SILENT_READERS.inc()
            log.warning("the tail reader of %s is opened again: the broker holds entry %s and has not handed it out", self._name, readable)
            self._tail.restart()
        elif last is not None and self._tail.brought:
            self._looked_to = max(self._looked_to, last)

    def _behind(self) -> Position:
        """What stands behind this the tail reader was to bring. It begins with the last entry that is folded."""
        if self._tail.brought:
            return max(self._fold.reached or BEFORE_ALL, self._looked_to)
        begin = self._tail.begins_at
        return BEFORE_ALL if begin is None else Position(begin.ledger, begin.entry - 1)
