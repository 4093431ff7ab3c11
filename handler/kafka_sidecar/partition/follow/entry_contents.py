"""What is in an entry that a partition reads, by whichever reader."""

from __future__ import annotations

from typing import Protocol

from kafka_sidecar.errors import EntryUnreadable
from kafka_sidecar.partition.follow.failures import EntryFailures
from kafka_sidecar.partition.follow.unannounced_transactions import UnannouncedTransactions
from kafka_sidecar.partition.log.entries import Content, read_entry, read_headers
from kafka_sidecar.partition.snapshots.fold_snapshots import FoldSnapshots
from kafka_sidecar.pulsar.entry import Position, RawEntry


class PartitionForContents(Protocol):
    """The partition, as far as the contents of its entries matter to it."""

    def fold_again(self, why: str) -> None:
        """What is folded is not enough. The partition ends, by PartitionEnded."""
        ...


class EntryContents:
    def __init__(
        self,
        name: str,
        failures: EntryFailures,
        unannounced: UnannouncedTransactions,
        kept: FoldSnapshots,
        partition: PartitionForContents,
    ) -> None:
        self._name = name
        self._failures = failures
        self._unannounced = unannounced
        self._snapshots = kept
        self._partition = partition
        self.skipped: frozenset[Position] = frozenset()  # the unreadable entries that an operator has skipped

    def read(self, entry: RawEntry) -> Content:
        """The content of an entry. Raises EntryUnreadable, and PartitionEnded where the partition is opened again
        because of it.
        """
        self._check_given_up(entry)
        content = read_entry(entry)
        self._note(content, entry.position)
        return content

    def read_headers(self, entry: RawEntry) -> Content:
        """The same without its data."""
        self._check_given_up(entry)
        content = read_headers(entry)
        self._note(content, entry.position)
        return content

    def _check_given_up(self, entry: RawEntry) -> None:
        if self._failures.is_given_up(self._name, entry.position):
            raise EntryUnreadable(
                f"entry {entry.position}: this sidecar failed at it twice, and takes it for one that can't be read"
            )

    def _note(self, content: Content, position: Position) -> None:
        kept = self._snapshots
        if (
            kept.is_for_clients
            and self._unannounced.begin_in(content, position, kept.none_up_to)
            and not self._unannounced.announce()
        ):
            self._failures.note_transactions(self._name)
            self._partition.fold_again(
                "it has transactions that nobody has announced: the log is folded from its start"
            )
