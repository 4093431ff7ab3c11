"""Offsets of transactions that have not ended, as the log of a shard has them. Pure.

When its transaction commits, an offset counts if nothing was committed of its partition behind it: a member that has
taken over may have gone on (GroupMetadata.completePendingTxnOffsetCommit).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple, TypeVar

from kafka_sidecar.groups.records import OffsetCommitKey, PendingOffsetKey, PendingOffsetValue, Record

# Limit of producers whose last ended transaction is remembered until the term ends.
MAX_ENDED: Final = 10_000
# Limit of records in one write: 50 records with the longest names and metadata fit into a Pulsar entry.
MOST_TOGETHER: Final = 50


@dataclass(slots=True)
class _Pending:
    value: PendingOffsetValue
    order: int
    is_overtaken: bool = False


class Completion(NamedTuple):
    """`offsets` come first. The records of one partition belong together: if the log held only some of them, another
    transaction's offset would be lost.
    """

    offsets: list[list[Record]]  # the records of each partition
    gone: list[Record]

    @property
    def records(self) -> list[Record]:
        return [*chain.from_iterable(self.offsets), *self.gone]

    @property
    def partitions(self) -> set[OffsetCommitKey]:
        """Of which an offset is committed."""
        return {record.key for record in chain.from_iterable(self.offsets) if isinstance(record.key, OffsetCommitKey)}

    def parts(self) -> Iterator[list[Record]]:
        """The offsets, so many at a time that an entry has room for them. None of a partition's records is in another
        part.
        """
        part: list[Record] = []
        for records in self.offsets:
            if part and len(part) + len(records) > MOST_TOGETHER:
                yield part
                part = []
            part = part + records
        if part:
            yield part


class PendingOffsets:
    def __init__(self) -> None:
        self._of_producer: dict[int, dict[PendingOffsetKey, _Pending]] = {}
        self._of_partition: dict[OffsetCommitKey, dict[PendingOffsetKey, _Pending]] = {}
        self._order = 0
        self._ended: OrderedDict[int, int] = (
            OrderedDict()
        )  # by producer id: the highest transaction number that has ended in this term

    def __len__(self) -> int:
        return sum(map(len, self._of_producer.values()))

    # --- as the log says

    def apply(self, key: PendingOffsetKey, value: PendingOffsetValue | None) -> None:
        """A record of one is in the log."""
        _forget(self._of_producer, key.producer_id, key)
        _forget(self._of_partition, key.committed, key)
        if value is not None:
            self._order += 1
            pending = _Pending(value, self._order)
            self._of_producer.setdefault(key.producer_id, {})[key] = pending
            self._of_partition.setdefault(key.committed, {})[key] = pending

    def overtake(self, committed: OffsetCommitKey) -> None:
        """An offset was committed, or deleted, behind those that are pending of its partition."""
        for pending in self._of_partition.get(committed, {}).values():
            pending.is_overtaken = True

    # --- for requests

    def of_group(self, group: str) -> frozenset[tuple[str, int]]:
        """The partitions whose next committed offset is not known yet (KIP-447)."""
        return frozenset((one.topic, one.partition) for one in self._of_partition if one.group == group)

    def keys(self) -> Iterator[PendingOffsetKey]:
        """Of all that is pending."""
        return chain.from_iterable(self._of_producer.values())

    def of_partitions(self, those: Iterable[OffsetCommitKey]) -> Iterator[Record]:
        """What is pending of them."""
        for committed in those:
            for key, one in self._of_partition.get(committed, {}).items():
                yield Record(key, one.value)

    def has_ended(self, producer_id: int, transaction: int) -> bool:
        return transaction <= self._ended.get(producer_id, -1)

    def end(self, producer_id: int, transaction: int) -> None:
        """What comes later of this transaction is refused."""
        self._ended[producer_id] = max(transaction, self._ended.get(producer_id, -1))
        self._ended.move_to_end(producer_id)
        if len(self._ended) > MAX_ENDED:
            self._ended.popitem(last=False)

    def completion(
        self, producer_id: int, transaction: int, committed: bool, overtaken: Collection[OffsetCommitKey] = ()
    ) -> Completion:
        """What the log is to have when a transaction has ended: the offsets that count, and nothing of it pending.
        `overtaken`: partitions that somebody commits behind it, and whose records are not in the log yet.

        Nor of an earlier one: before a producer begins its next transaction all markers are written. What is pending
        all the same came behind its marker, and counts no more, however that transaction ended.
        """
        offsets: list[list[Record]] = []
        gone: list[Record] = []
        for key, pending in self._of_producer.get(producer_id, {}).items():
            if pending.value.transaction > transaction:
                continue
            gone.append(Record(key, None))
            if (
                committed
                and pending.value.transaction == transaction
                and not pending.is_overtaken
                and key.committed not in overtaken
            ):
                # Pending offsets that came after this one are written again behind its commit. Otherwise the commit,
                # whose record is behind theirs, would overtake them.
                others = self._of_partition[key.committed].items()
                later = [
                    Record(other, one.value) for other, one in others if one.order > pending.order and other != key
                ]
                offsets.append([Record(key.committed, pending.value.value), *later])
        return Completion(offsets, gone)


K = TypeVar("K")


def _forget(index: dict[K, dict[PendingOffsetKey, _Pending]], at: K, key: PendingOffsetKey) -> None:
    of_one = index.get(at)
    if of_one is not None:
        of_one.pop(key, None)
        if not of_one:
            del index[at]
