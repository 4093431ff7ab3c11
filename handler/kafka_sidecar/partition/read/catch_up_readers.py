"""The readers of old data that a partition has at work: found, shared, limited in number, closed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kafka_sidecar.partition.fold.producers import ProducerTable
from kafka_sidecar.partition.follow.entry_contents import EntryContents
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.partition.read.catch_up_reader import CatchUpReader, PartitionForCatchUp
from kafka_sidecar.partition.read.fetch_cache import FetchedRun, PartitionCache
from kafka_sidecar.wire.error_code import ErrorCode

# This many consumers can read far apart in the old data of one partition. Each reader has a cursor on the broker and
# may hold limits.read_ahead_bytes.
MAX_READERS: Final = 8


class CatchUpReaders:
    def __init__(
        self,
        name: str,
        log_: EntryLog,
        cache: PartitionCache,
        read_ahead: int,
        contents: EntryContents,
        partition: PartitionForCatchUp,
    ) -> None:
        self._name = name
        self._log = log_
        self._cache = cache
        self._read_ahead = read_ahead
        self._contents = contents
        self._partition = partition
        self._readers: list[CatchUpReader] = []

    def run(self, offset: int, max_bytes: int, at_least_one: bool, now: float) -> FetchedRun | None:
        """The records that a reader holds from `offset` on. Each that reads for this consumer learns how far it has
        come.
        """
        run = None
        for reader in self._readers:
            if reader.is_near(offset):
                reader.touch(offset, now)
                run = run or reader.run(offset, max_bytes, at_least_one)
        return run

    def bring(self, offset: int, now: float) -> FetchedRun | None:
        """See to it that a reader brings `offset`; a run only where one has failed there."""
        for reader in list(self._readers):
            if reader.done:
                has_failed_here = reader.error is not ErrorCode.NONE and reader.next_offset == offset
                if reader.drained and (has_failed_here or reader.error is ErrorCode.NONE):
                    # A reader that failed at another offset keeps its error for its own consumer until it is idle.
                    self._close(reader)
                if has_failed_here:
                    return FetchedRun([], 0, offset, reader.error)
            elif reader.will_bring(offset, now):
                return None
        if len(self._readers) >= MAX_READERS:
            free = [reader for reader in self._readers if reader.has_brought or reader.is_stuck]
            if not free:
                return None  # The next reader that has what its consumer waits for is closed to make room
            self._close(min(free, key=lambda reader: (not reader.is_stuck, reader.touched_at)))
        self._partition.ask_log_start_soon()  # old data may turn out to be trimmed
        self._readers.append(
            CatchUpReader(self._name, self._log, self._cache, offset, self._read_ahead, self._contents, self._partition)
        )
        return None

    def tick(self, now: float, idle_seconds: float) -> None:
        for reader in list(self._readers):
            if reader.drained or now - reader.touched_at > idle_seconds:
                self._close(reader)

    def producer_tables(self) -> Iterator[ProducerTable]:
        return (reader.producers for reader in self._readers)

    def close(self) -> None:
        for reader in list(self._readers):
            self._close(reader)

    def _close(self, reader: CatchUpReader) -> None:
        if reader in self._readers:  # Closing a reader wakes waiting consumers, which may have closed other readers
            self._readers.remove(reader)
        reader.close()
