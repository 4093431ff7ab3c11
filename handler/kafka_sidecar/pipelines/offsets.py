"""What Spark's Kafka source says of offsets, as JSON: `{"topic": {"0": 42}}`. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final

Offsets = dict[tuple[str, int], int]  # by topic and partition: the offset of the next record to read

# Both versions of Spark's Kafka source describe themselves so: KafkaV2[Subscribe[t]], KafkaSourceV1[Assign[t-0]].
KAFKA_SOURCE: Final = "Kafka"


def read_offsets(text: str) -> Offsets:
    """ValueError where this is not what a Kafka source says."""
    try:
        return {
            (topic, int(index)): int(offset)
            for topic, partitions in json.loads(text).items()
            for index, offset in partitions.items()
        }
    except (AttributeError, TypeError) as error:
        raise ValueError(f"these are no offsets of Kafka topics: {text[:200]}") from error


def of_sources(ends: Iterable[tuple[str, str | None]]) -> Offsets:
    """How far a query has come that has several sources, by the description and the end of each; one that is none of
    Kafka's is left out.

    Where two read the same partition the one that is behind counts: the other's records are there all the same.
    """
    found: Offsets = {}
    for description, end in ends:
        if description.startswith(KAFKA_SOURCE) and end:
            for partition, offset in read_offsets(end).items():
                found[partition] = min(offset, found.get(partition, offset))
    return found
