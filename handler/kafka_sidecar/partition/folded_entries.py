"""What hears of an entry that the fold has taken: the cache, the time index, reads to the end, consumers that wait."""

from __future__ import annotations

from collections.abc import Callable

from kafka_sidecar.partition.fold.fold import Fold, Folded
from kafka_sidecar.partition.follow.read_to_end import ReadToEnd
from kafka_sidecar.partition.log.entries import Content, served_data
from kafka_sidecar.partition.read.fetch_cache import CachedEntry, PartitionCache
from kafka_sidecar.partition.search.partition_times import PartitionTimes
from kafka_sidecar.partition.write.append import Append
from kafka_sidecar.wire.error_code import ErrorCode


class FoldedEntries:
    def __init__(
        self,
        fold: Fold,
        cache: PartitionCache,
        times: PartitionTimes,
        to_end: ReadToEnd,
        changed: Callable[[], None],
        serve_again: Callable[[], None],
    ) -> None:
        """`serve_again`: drop all that is ready to be served."""
        self._fold = fold
        self._cache = cache
        self._times = times
        self._to_end = to_end
        self._changed = changed
        self._serve_again = serve_again

    def add_own(self, base_offset: int, append: Append) -> None:
        """An entry of the appender's was folded by its receipt."""
        next_offset = base_offset + append.offset_count
        self._cache.put(CachedEntry(base_offset, next_offset, append.data, ErrorCode.NONE))
        if (index := self._times.index) is not None and (position := self._fold.last_position) is not None:
            index.add(position, base_offset, next_offset, append.max_timestamp, len(append.data))
        if self._to_end.is_awaited:
            assert self._fold.last_position is not None
            self._to_end.reached(self._fold.last_position)
        self._changed()

    def add(self, folded: Folded, content: Content) -> None:
        # Offsets missing before the entry are not cached: a reader of old data finds out whether retention has removed
        # them. Two kinds of entries are not cached either: those that this fold cannot judge, and those whose record
        # begins in earlier entries (chunks). A reader of old data goes back as far as it needs for them.
        if folded.changes_earlier:
            self._serve_again()
        if folded.conclusive and not content.lacks_chunks:
            data = served_data(content, folded.verdicts)
            self._cache.put(CachedEntry(folded.base_offset, folded.next_offset, data, ErrorCode.NONE))
        if self._times.index is not None:
            self._times.add(folded, content)
        self._to_end.reached(folded.position)
        self._changed()

    def add_unreadable(self, folded: Folded, size: int) -> None:
        self._add_without_records(
            CachedEntry(folded.base_offset, folded.next_offset, None, ErrorCode.CORRUPT_MESSAGE), folded, size
        )

    def add_skipped(self, folded: Folded, size: int) -> None:
        """One that can't be read, and that an operator has skipped."""
        self._add_without_records(CachedEntry.hole(folded.base_offset, folded.next_offset), folded, size)

    def _add_without_records(self, entry: CachedEntry, folded: Folded, size: int) -> None:
        self._cache.put(entry)
        self._times.add_unreadable(folded, size)
        self._to_end.reached(folded.position)
        self._changed()
