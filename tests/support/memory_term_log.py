"""The twin of a partition of an internal topic, `__consumer_offsets` mostly: records in memory, one writer at a time,
faults by script.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka_sidecar.coordination.codec import Codec
from kafka_sidecar.coordination.term_log import OnRecord, TermLog
from kafka_sidecar.groups.records.codec import GroupRecords
from kafka_sidecar.pulsar.errors import Fenced, PulsarError, Unavailable


@dataclass
class MemoryOffsets:
    """What is stored, and who may write."""

    stored: list[tuple[bytes, bytes | None]] = field(default_factory=list)
    owner: MemoryTermLog | None = None
    hold_receipts: bool = False
    tell_replaced: bool = True  # else whoever is replaced is cut off, and does not hear of it
    lose_writes: bool = False  # written, and no receipt: the connection is lost instead
    lose_when_read: int = 0  # so many readings end with the producer lost
    hold_reads: asyncio.Event = field(default_factory=asyncio.Event)  # set: they are not held
    fail_reads: int = 0  # so many end with something nobody thought of
    terms: int = 0
    cut_next: int | None = None  # of the next write only so many records land, then the connection is lost
    spare: int = 0  # so many writes come before that one
    max_size: int = 1_000_000
    codec: Codec[Any] = field(default_factory=GroupRecords)

    def __post_init__(self) -> None:
        self.hold_reads.set()

    def cut(self, records: int) -> int | None:
        """How much of a write lands, None for all of it."""
        if not records or self.cut_next is None:
            return None
        if self.spare:
            self.spare -= 1
            return None
        cut, self.cut_next = self.cut_next, None
        return cut

    def open(self) -> TermLog[Any]:
        return MemoryTermLog(self)


class MemoryTermLog(TermLog[Any]):
    def __init__(self, offsets: MemoryOffsets) -> None:
        self._offsets = offsets
        self._on_lost: Callable[[PulsarError], None] = lambda _: None
        self._held: list[Callable[[], None]] = []
        self._reaches_nobody = False
        self.lost_reason: PulsarError | None = None

    async def become_only_writer(self, on_lost: Callable[[PulsarError], None]) -> None:
        self._on_lost = on_lost
        before, self._offsets.owner = self._offsets.owner, self
        self._offsets.terms += 1
        if before is not None and self._offsets.tell_replaced:
            before.lose(Fenced("another has taken it"))

    async def read(self, on_record: OnRecord[Any]) -> None:
        await asyncio.sleep(0)
        await self._offsets.hold_reads.wait()
        for key, value in list(self._offsets.stored):
            record = self._offsets.codec.read(key, value)
            assert record is not None
            on_record(record, False)
        if self._offsets.fail_reads:
            self._offsets.fail_reads -= 1
            raise KeyError("compactedLedger")
        if self._offsets.lose_when_read:
            self._offsets.lose_when_read -= 1
            self.lose(Unavailable("the connection is lost"))

    def append_marker(self) -> None:
        self._reaches_nobody = self._offsets.owner is not self

    def append(self, records: Sequence[Any], stored: Callable[[], None]) -> None:
        if self._offsets.owner is not self and records and self._offsets.tell_replaced:
            raise Unavailable("fenced")
        if self._offsets.owner is not self and records:
            self._reaches_nobody = True
            return
        written = [self._offsets.codec.write(record) for record in records]
        cut = self._offsets.cut(len(records))
        self._offsets.stored += written[:cut]
        if self._offsets.lose_writes or cut is not None:
            self.lose(Unavailable("the connection is lost"))
        else:
            self.after_writes(stored)

    def delete_legacy(self) -> None:
        """Nothing here is in another's form."""

    def fits(self, record: Any) -> bool:
        return len(self._offsets.codec.write(record)[1] or b"") <= self._offsets.max_size

    def oldest_write(self) -> float | None:
        return None

    def after_writes(self, done: Callable[[], None]) -> None:
        if self._offsets.hold_receipts or self._reaches_nobody:
            self._held.append(done)
        else:
            self.let_go()
            done()

    def let_go(self) -> None:
        held, self._held = self._held, []
        for done in held:
            done()

    def lose(self, reason: PulsarError) -> None:
        self.fail(reason)

    def fail(self, reason: PulsarError) -> None:
        self.lost_reason = self.lost_reason or reason
        on_lost, self._on_lost = self._on_lost, lambda _: None
        on_lost(reason)

    def close(self) -> None:
        self._on_lost = lambda _: None
        self._held.clear()
        if self._offsets.owner is self:
            self._offsets.owner = None
