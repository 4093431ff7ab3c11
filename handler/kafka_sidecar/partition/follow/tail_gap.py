"""Where the tail stands before missing offsets, until it is known what is missing. Nothing behind them is folded before
that.

    an entry in another ledger, and offsets are missing before it
       │
       ▼
    held: is what stood before it still there, or does the log go on right behind that?
       │ yes: markers of Pulsar's own, or offsets that no entry has ──▶ the tail is read again, and goes on over the gap
       ▼ no
    retention took entries unread ──▶ the partition ends, and is opened from what is left and what others have kept

So a fold knows all that its part of the log says, or is no more.
"""

from __future__ import annotations

from typing import Protocol

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.loop.supervised import SupervisedTask
from kafka_sidecar.partition.fold.fold import Fold
from kafka_sidecar.partition.follow.read_entries import begins_right_behind
from kafka_sidecar.partition.follow.read_to_end import MustOpenAgain
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.pulsar.entry import Position


class PartitionWithTail(Protocol):
    def end_for(self, error: SidecarError) -> None:
        """It serves no more; the next request opens it again."""
        ...

    def read_tail_again(self) -> None:
        """From the last entry that is folded."""
        ...


class TailGap:
    def __init__(self, name: str, log_: EntryLog, fold: Fold, partition: PartitionWithTail) -> None:
        self._name = name
        self._log = log_
        self._fold = fold
        self._partition = partition
        # Position and base offset of the first entry behind the missing offsets.
        self._held: tuple[Position, int] | None = None
        self._passes: tuple[Position, int] | None = None  # an entry that was held back, and may be folded now
        self._task = SupervisedTask("tail_gap", name, self._ask, on_final=partition.end_for)

    def holds(self, position: Position, base_offset: int) -> bool:
        """Whether an entry may not be folded yet. It comes again, when it may."""
        if self._held is not None and position > self._held[0]:
            # An earlier entry is held back, and this one stands behind the same gap, whatever its base offset.
            return True
        if not self._fold.is_gap(position, base_offset) or (position, base_offset) == self._passes:
            return False
        if self._held is None:
            self._held = (position, base_offset)
            self._task.start()
        return True

    def stop(self) -> None:
        self._task.stop()

    async def _ask(self) -> None:
        fold = self._fold
        last = fold.last_position or fold.begins_behind
        if not (await self._log.stats()).may_hold(last) and not await begins_right_behind(
            self._log, last, fold.next_offset
        ):
            self._partition.end_for(MustOpenAgain(f"{self._name} lost entries behind {last} before they were read"))
            return
        self._passes, self._held = self._held, None
        self._partition.read_tail_again()
