"""Why offsets have no record, as far as `kafka-sidecar verify --json` tells: Kafka's protocol does not show it. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from handler.pipelines.kafka.topics import Partition


class Cause(NamedTuple):
    first: int
    last: int
    kind: str
    text: str


def read_causes(text: str) -> dict[Partition, list[Cause]]:
    """ValueError where this is not what verify prints."""
    try:
        found: dict[Partition, list[Cause]] = {}
        for one in json.loads(text)["partitions"]:
            topic, _, index = str(one["partition"]).rpartition("-partition-")
            causes = [
                Cause(int(finding["first_offset"]), int(finding["last_offset"]), str(finding["kind"]), str(finding["text"]))
                for finding in one["findings"]
                if finding["first_offset"] is not None
            ]
            name = (topic or one["partition"]).rpartition("/")[2]
            found[name, int(index) if topic else 0] = causes
        return found
    except (KeyError, TypeError) as error:
        raise ValueError(f"this is not what verify --json prints: {text[:100]}") from error


def cause_of(first: int, last: int, causes: Sequence[Cause]) -> str:
    """What is known of a gap; empty for nothing."""
    return "; ".join(dict.fromkeys(one.text for one in causes if one.first <= last and first <= one.last))
