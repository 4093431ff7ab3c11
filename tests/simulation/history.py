"""What clients did and were told, for the checker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

# The values of transactional producers begin with it.
TRANSACTIONAL: Final = b"t"


class Violation(Exception):
    """Something happened that may not, whatever the faults."""


@dataclass(slots=True)
class Seen:
    """What consumers of one isolation level found at an offset; None where no record is. It is the same for ever."""

    values: dict[int, bytes | None] = field(default_factory=dict)
    shown_late: set[int] = field(default_factory=set)

    def see(self, offset: int, value: bytes | None, by: str, lost_its_reason: Callable[[int], bool]) -> None:
        before = self.values.setdefault(offset, value)
        if before == value:
            return
        if before is None and lost_its_reason(offset):
            self.shown_late.add(offset)
        elif value is not None or offset not in self.shown_late:
            raise Violation(f"offset {offset} was {before!r} and is {value!r} for {by}")


@dataclass(slots=True)
class History:
    """What clients did to the topic that has the name now. What they did to a topic before it is judged when that is
    deleted.
    """

    generation: int = 0  # how often the topic was made anew
    acknowledged: dict[bytes, list[int]] = field(default_factory=dict)  # offsets told, by value
    acknowledged_late: dict[bytes, list[int]] = field(default_factory=dict)  # what was sent to a topic that is deleted
    acknowledged_before: set[bytes] = field(default_factory=set)  # of the topics that had the name before
    begun_in: dict[tuple[int, int], int] = field(
        default_factory=dict
    )  # in which generation a producer began an epoch; else in the first
    seen: Seen = field(default_factory=Seen)
    seen_committed: Seen = field(default_factory=Seen)
    committed: dict[bytes, None] = field(default_factory=dict)  # of transactions
    aborted: dict[bytes, None] = field(default_factory=dict)
    undecided: dict[bytes, int] = field(default_factory=dict)  # offsets, of transactions that go on
    given_up: set[bytes] = field(default_factory=set)  # by their producers: in the log or not
    corrupt: dict[int, str] = field(default_factory=dict)  # offsets at which consumers were told so, and who was
    counts: Counter[str] = field(default_factory=Counter)
    end: int = 0  # behind all that was acknowledged so far
    low_watermark: int = 0  # the greatest that DeleteRecords was told
    # Whether retention has taken all that tells why the batch at an offset is hidden. It may be shown from then on (ADR
    # 21).
    lost_its_reason: Callable[[int], bool] = lambda _: False

    @property
    def operations(self) -> int:
        """Requests that carried or returned a record, or ended a transaction."""
        return self.counts["produce"] + self.counts["fetch"] + self.counts["end transaction"]

    def begin_generation(self) -> None:
        self.generation += 1
        self.acknowledged_before.update(self.acknowledged)
        self.acknowledged = {}
        self.seen, self.seen_committed, self.corrupt = Seen(), Seen(), {}
        self.end = self.low_watermark = 0

    def is_stray(self, producer: int, epoch: int) -> bool:
        """Whether it is of an epoch that was begun before the topic was made anew: it may be taken or not."""
        return self.begun_in.get((producer, epoch), 0) < self.generation

    def acknowledge(self, values: list[bytes], base_offset: int, generation: int) -> None:
        """A sidecar has acknowledged what was sent to this generation of the topic."""
        is_late = generation != self.generation
        if not is_late:
            self.end = max(self.end, base_offset + len(values))
        acknowledged = self.acknowledged_late if is_late else self.acknowledged
        for number, value in enumerate(values):
            acknowledged.setdefault(value, []).append(base_offset + number)
            if value.startswith(TRANSACTIONAL) and not (is_late or value in self.committed or value in self.aborted):
                self.undecided[value] = base_offset + number

    def decide(self, values: list[bytes], *, committed: bool) -> None:
        """How a transaction ends, before anybody can know."""
        (self.committed if committed else self.aborted).update(dict.fromkeys(values))
        for value in values:
            self.undecided.pop(value, None)

    def give_up(self, values: list[bytes]) -> None:
        """A producer sends them no more, and does not know what became of them."""
        self.given_up.update(values)

    def is_settled(self, value: bytes) -> bool:
        """Whether its producer does not send it again."""
        return any(
            value in settled for settled in (self.acknowledged, self.aborted, self.acknowledged_before, self.given_up)
        )

    def is_for_all(self, value: bytes) -> bool:
        """Whether consumers of read_committed are to be given it."""
        return value in self.committed or not value.startswith(TRANSACTIONAL)

    def check_stable(self, last_stable_offset: int, log_start: int, by: str) -> None:
        """The last stable offset of any sidecar stands before all that is undecided, and is left in the log."""
        first = min((offset for offset in self.undecided.values() if offset >= log_start), default=last_stable_offset)
        if last_stable_offset > first:
            raise Violation(
                f"the last stable offset is {last_stable_offset} for {by}, and what is undecided begins at {first}"
            )

    def see(self, offset: int, value: bytes | None, by: str) -> None:
        self.seen.see(offset, value, by, self.lost_its_reason)

    def see_committed(self, offset: int, value: bytes | None, by: str) -> None:
        if value is not None and not self.is_for_all(value):
            was = "aborted" if value in self.aborted else "not committed yet"
            raise Violation(f"{value!r} at offset {offset} was {was}, and is given to {by}")
        self.seen_committed.see(offset, value, by, self.lost_its_reason)
