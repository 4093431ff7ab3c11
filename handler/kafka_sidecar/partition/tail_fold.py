"""Entries that the tail reader brings, folded: other writers', and the partition's own where a receipt did not tell
enough.
"""

from __future__ import annotations

import logging
import math
from typing import Final

from kafka_sidecar.errors import EntryUnreadable
from kafka_sidecar.partition.fold.fold import Fold, index_of
from kafka_sidecar.partition.fold.producer_state import THE_PAST
from kafka_sidecar.partition.folded_entries import FoldedEntries
from kafka_sidecar.partition.follow.entry_contents import EntryContents
from kafka_sidecar.partition.follow.read_to_end import ReadToEnd
from kafka_sidecar.partition.follow.replay import Replay
from kafka_sidecar.partition.follow.tail_gap import TailGap
from kafka_sidecar.partition.log.entries import is_from_before_index
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.partition.snapshots.gap_check import GapCheck
from kafka_sidecar.partition.write.appender import Appender
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.raw_entries import permits_of
from kafka_sidecar.telemetry import metrics

log = logging.getLogger(__name__)

# Another writer that has appended will probably append again, so for 5 s all entries are read as they come.
FOREIGN_SECONDS: Final = 5.0


class TailFold:
    def __init__(
        self,
        name: str,
        log_: EntryLog,
        fold: Fold,
        contents: EntryContents,
        appender: Appender,
        to_end: ReadToEnd,
        folded: FoldedEntries,
        replay: Replay,
        gaps: GapCheck,
        tail_gap: TailGap,
    ) -> None:
        self._name = name
        self._log = log_
        self._fold = fold
        self._contents = contents
        self._appender = appender
        self._to_end = to_end
        self._folded = folded
        self._replay = replay
        self._gaps = gaps
        self._tail_gap = tail_gap
        self.foreign_at = -math.inf  # When an entry of another writer was last read

    def others_write(self, now: float) -> bool:
        return now - self.foreign_at < FOREIGN_SECONDS

    def take(self, entry: RawEntry, now: float, is_open: bool) -> None:
        """Raises IndexAlarm where the log contradicts itself, and PartitionEnded."""
        self._take(entry, now, is_open)
        self._appender.on_fold_moved()

    def _take(self, entry: RawEntry, now: float, is_open: bool) -> None:
        position = entry.position
        fold = self._fold
        if self._is_passed_over(entry, is_open):
            fold.pass_over(position)
            self._log.note_entries_without_index()
            self._to_end.reached(position)
            return
        last_index = index_of(entry)
        if fold.last_position is not None and position <= fold.last_position:
            fold.check_again(position, last_index)
            fold.note_time(entry)
            return
        try:
            content = self._contents.read(entry)
            fold.check_count(position, last_index, content)
        except EntryUnreadable as error:
            self.foreign_at = now
            said = last_index - permits_of(entry) + 1  # The broker gives an index to each message of an entry
            if self._is_held(position, fold.base_by(said, last_index)):
                return
            metrics.UNREADABLE_ENTRIES.inc()
            log.error("partition %s: %s", self._name, error)
            folded = fold.unreadable(position, last_index, error, permits_of(entry))
            if position in self._contents.skipped:
                self._folded.add_skipped(folded, len(entry.payload))
            else:
                self._folded.add_unreadable(folded, len(entry.payload))
            return
        if fold.lacks_proof(content):
            self.foreign_at = now
            self._folded.add(fold.begin_behind(position, last_index, content), content)
            return
        if self._is_held(position, last_index - content.offset_count + 1):
            return
        folded = fold.by_reading(position, last_index, content)
        fold.note_time(entry)
        if folded.sure_from == THE_PAST and is_open:
            self._replay.start()  # The replay starts now, so that later batches can be judged at once
        self._folded.add(folded, content)
        if content.writer is None or content.writer != self._appender.writer_name:
            self.foreign_at = now
        else:
            self._appender.on_read(content, folded.verdicts)

    def _is_held(self, position: Position, base_offset: int) -> bool:
        """Whether it has to be asked first what is missing before an entry. A fold that knows nothing of what stood
        before begins with it: then retention may have taken no more than what tells of transactions.
        """
        if self._tail_gap.holds(position, base_offset):
            return True
        fold = self._fold
        began = fold.replayed_from
        if fold.last_position is None and not fold.has_learnt:
            if began is not None and began.ledger != position.ledger:
                self._gaps.begin(began)
            elif fold.misses_before(position, base_offset):
                self._gaps.begin(None)
        return False

    def _is_passed_over(self, entry: RawEntry, is_open: bool) -> bool:
        """Whether an entry without an index stands before all that have one. One that comes later is an alarm."""
        fold = self._fold
        if fold.last_position is not None or not is_from_before_index(entry):
            return False
        return not is_open or (fold.passed_to is not None and entry.position <= fold.passed_to)
