"""Which source offsets are which target offsets: runs, a record of them for each transaction, and what they make of an
offset. Pure.

A run says: `length` source offsets from `source` on are the target offsets from `target` on. It ends where one of both
logs has an offset without a copied record: a marker, an aborted record, what compaction has removed. Where that happens
again and again in the same way, as with transactions of ten records and their markers, runs that are alike are one that
is repeated.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

FORMAT: Final = 1


class Run(NamedTuple):
    source: int
    target: int
    length: int
    # Number of equal runs: each begins `stride` source offsets after the previous one, and its copies directly follow
    # those of the previous one in the target.
    times: int = 1
    stride: int = 0

    @property
    def source_end(self) -> int:
        return self.source + (self.times - 1) * self.stride + self.length

    def before(self, source: int) -> list[Run]:
        """What of it is before this source offset."""
        if source >= self.source_end:
            return [self]
        whole = 0 if self.times == 1 else max(0, (source - self.source - self.length) // self.stride + 1)
        found = [self._replace(times=whole, stride=self.stride if whole > 1 else 0)] if whole else []
        begin = self.source + whole * self.stride
        if source > begin:
            found.append(Run(begin, self.target + whole * self.length, source - begin))
        return found

    def with_more(self, run: Run) -> Run | None:
        """Both as one, where that is one more of the same, or several."""
        stride = self.stride or run.source - self.source
        is_alike = run.length == self.length and run.stride in (0, stride)
        if (
            is_alike
            and run.source == self.source + self.times * stride
            and run.target == self.target + self.times * self.length
        ):
            return self._replace(times=self.times + run.times, stride=stride)
        return None


@dataclass(frozen=True, slots=True)
class Copied:
    """What one transaction has copied of a partition: the value of a record in the mirror's own topic."""

    next_source: int  # source offset from which copying is resumed
    target_end: int  # target offset behind the last copied record
    runs: tuple[Run, ...]
    target_topic: str = ""
    source_cluster: str = ""
    # Topic ids that the clusters gave to the source topic and the target topic; empty for a cluster without ids (before
    # Kafka 2.8).
    source_id: str = ""
    target_id: str = ""
    # Begin and end of the target offsets that may hold duplicates. Only without transactions.
    repeats: tuple[int, int] | None = None


def joined(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Runs in their order; what goes on in both logs is one, and so are those that are alike."""
    whole: list[Run] = []
    for run in runs:
        last = whole[-1] if whole else None
        goes_on = (
            last is not None and run.source == last.source + last.length and run.target == last.target + last.length
        )
        if last is not None and goes_on and run.times == last.times == 1:
            whole[-1] = last._replace(length=last.length + run.length)
        elif run.length:
            whole.append(run)
    found: list[Run] = []
    for run in whole:
        more = found[-1].with_more(run) if found else None
        if more is None:
            found.append(run)
        else:
            found[-1] = more
    return tuple(found)


def encode_key(topic: str, partition: int) -> bytes:
    return json.dumps([topic, partition], separators=(",", ":")).encode()


def decode_key(key: bytes) -> tuple[str, int]:
    topic, partition = json.loads(key)
    return str(topic), int(partition)


def encode(copied: Copied) -> bytes:
    written = [run if run.times > 1 else run[:3] for run in copied.runs]
    fields: dict[str, object] = {
        "format": FORMAT,
        "next": copied.next_source,
        "end": copied.target_end,
        "runs": written,
    }
    fields |= {
        "topic": copied.target_topic,
        "cluster": copied.source_cluster,
        "source": copied.source_id,
        "target": copied.target_id,
    }
    if copied.repeats is not None:
        fields["repeats"] = copied.repeats
    return json.dumps(fields, separators=(",", ":")).encode()


def decode(value: bytes) -> Copied:
    """ValueError where no mirror has written this."""
    try:
        fields = json.loads(value)
        if fields["format"] > FORMAT:
            raise ValueError(f"these offset runs are of format {fields['format']}: a newer mirror has written them")
        begin_end = fields.get("repeats")
        return Copied(
            next_source=int(fields["next"]),
            target_end=int(fields["end"]),
            runs=tuple(Run(*(int(number) for number in run)) for run in fields["runs"]),
            target_topic=str(fields["topic"]),
            source_cluster=str(fields["cluster"]),
            source_id=str(fields["source"]),
            target_id=str(fields["target"]),
            repeats=None if begin_end is None else (int(begin_end[0]), int(begin_end[1])),
        )
    except (KeyError, TypeError, IndexError) as error:
        raise ValueError(f"these are no offset runs: {value[:200]!r}") from error


class NotReached(Exception):
    """The mirror has not copied so far; `next_source` is how far it is."""

    def __init__(self, next_source: int) -> None:
        super().__init__(f"the mirror has copied up to source offset {next_source}")
        self.next_source = next_source


def _make_room(runs: list[Run], source: int) -> None:
    """Without transactions records are copied again: the last copy counts."""
    while runs and runs[-1].source_end > source:
        left = runs.pop().before(source)
        if left:
            runs.extend(left)
            return


class Place(NamedTuple):
    """Where a source offset is in the target. `first_source` is the source offset whose record stands there, None at
    the end.
    """

    target: int
    first_source: int | None


class Translation:
    """All runs of one partition."""

    def __init__(self, records: Iterable[Copied]) -> None:
        runs: list[Run] = []
        self.next_source = 0
        self.target_end = 0
        self.latest: Copied | None = None
        for record in records:
            if self.latest is not None and record.next_source < self.next_source:
                continue  # written without transactions by a driver that was wrongly thought dead
            for run in record.runs:
                _make_room(runs, run.source)
                runs.append(run)
            self.latest, self.next_source, self.target_end = record, record.next_source, record.target_end
        self.runs: Sequence[Run] = joined(runs)
        self._starts = [run.source for run in self.runs]

    def place_of(self, offset: int) -> Place:
        """Where a group goes on in the target that has committed `offset` in the source. NotReached where nobody can
        tell yet.
        """
        if self.latest is None or offset > self.next_source:
            raise NotReached(self.next_source)
        number = bisect_right(self._starts, offset) - 1
        if number >= 0:
            run = self.runs[number]
            piece = min((offset - run.source) // run.stride, run.times - 1) if run.stride else 0
            begin, target = run.source + piece * run.stride, run.target + piece * run.length
            if offset < begin + run.length:
                return Place(target + offset - begin, offset)
            if piece + 1 < run.times:
                return Place(target + run.length, begin + run.stride)
        if number + 1 < len(self.runs):
            behind = self.runs[number + 1]
            return Place(behind.target, behind.source)
        return Place(self.target_end, None)
