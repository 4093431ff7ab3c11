"""What is where in an archive of files, and which offsets are in it. Pure.

    batch=0000000012/topic=orders/date=2026-11-20/hour=9/part-….parquet
    batch=0000000012/_offsets.json                                         from which offset on, and up to which, of
                                                                           each partition
    batch=0000000000-0000000011/…                                          after compaction
    _staging/                                                              what is being written

Readers pass over names that begin with `_`. A directory `batch=…` is renamed into place when all of it is written, so a
reader of the archive has each record once or not yet; and how far the archive is stands in the archive.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from kafka_sidecar.kafka_client.topics import Partition

STAGING: Final = "_staging"
OFFSETS: Final = "_offsets.json"
INTENT: Final = "_intent.json"
_BATCH: Final = re.compile(r"batch=(\d{10})(?:-(\d{10}))?")
FORMAT: Final = 1

Ranges = dict[Partition, tuple[int, int]]  # by partition: the first offset, and the offset behind the last


@dataclass(frozen=True, slots=True)
class Contents:
    """Of a batch, or of all."""

    ranges: Ranges
    ids: Mapping[str, str]  # topic ids by topic; clusters before Kafka 2.8 have none


class BatchRange(NamedTuple):
    """Batches from `first` to `last`, in one directory."""

    first: int
    last: int

    @property
    def directory(self) -> str:
        return f"batch={self.first:010d}" + (f"-{self.last:010d}" if self.last != self.first else "")


def read_directory(name: str) -> BatchRange | None:
    """None for any other name."""
    found = _BATCH.fullmatch(name)
    if found is None:
        return None
    first = int(found.group(1))
    return BatchRange(first, first if found.group(2) is None else int(found.group(2)))


def batch_ranges(names: Iterable[str]) -> list[BatchRange]:
    return sorted(one for one in map(read_directory, names) if one is not None)


def encode(contents: Contents) -> str:
    topics: dict[str, dict[str, tuple[int, int]]] = {}
    for (topic, index), one in sorted(contents.ranges.items()):
        topics.setdefault(topic, {})[str(index)] = one
    return json.dumps({"format": FORMAT, "offsets": topics, "ids": dict(contents.ids)}, separators=(",", ":"))


def decode(text: str) -> Contents:
    """ValueError where no archive has written this."""
    try:
        fields = json.loads(text)
        if fields["format"] > FORMAT:
            raise ValueError(f"this archive is of format {fields['format']}: a newer version has written it")
        ranges = {
            (topic, int(index)): (int(begin), int(end))
            for topic, partitions in fields["offsets"].items()
            for index, (begin, end) in partitions.items()
        }
        return Contents(ranges, {topic: str(one) for topic, one in fields["ids"].items()})
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"these are no offsets of an archive: {text[:200]}") from error


def united(contents: Iterable[Contents]) -> Contents:
    """Of batches that follow each other."""
    found: Ranges = {}
    ids: dict[str, str] = {}
    for one in contents:
        ids |= one.ids
        for at, (begin, end) in one.ranges.items():
            found[at] = (found[at][0] if at in found else begin, end)
    return Contents(found, ids)


def remade(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """Topics whose name another archived topic had."""
    return [topic for topic, one in sorted(now.items()) if one and before.get(topic, one) != one]


def next_ranges(
    archived: Mapping[Partition, int], firsts: Mapping[Partition, int], ends: Mapping[Partition, int], most_records: int
) -> tuple[Ranges, Ranges]:
    """What the next batch takes, in proportion to what there is; and what the source has removed before it could be
    archived.
    """
    begins = {at: max(archived.get(at, firsts[at]), firsts[at]) for at in ends}
    lost = {at: (archived[at], firsts[at]) for at in ends if at in archived and firsts[at] > archived[at]}
    behind = {at: max(0, ends[at] - begins[at]) for at in ends}
    total = sum(behind.values())
    share = min(1.0, most_records / total) if total else 1.0
    taken = {
        at: (begins[at], begins[at] + min(behind[at], max(1, int(behind[at] * share)))) for at in ends if behind[at]
    }
    return taken, lost


@dataclass(frozen=True, slots=True)
class SizedRange:
    range: BatchRange
    bytes: int


def to_compact(sizes: Iterable[SizedRange], target_bytes: int) -> list[Sequence[BatchRange]]:
    """Neighbours that become one directory: as many as fit into the target's size, and at least two."""
    found: list[Sequence[BatchRange]] = []
    group: list[BatchRange] = []
    size = 0
    for one in sorted(sizes, key=lambda sized: sized.range):
        if group and size + one.bytes > target_bytes:
            found.append(group)
            group, size = [], 0
        group.append(one.range)
        size += one.bytes
    found.append(group)
    return [group for group in found if len(group) > 1]
