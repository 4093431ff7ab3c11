"""Why offsets have no record, as far as `kafka-sidecar verify --json` tells: Kafka's protocol does not show it.
Pure.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from kafka_sidecar.kafka_client.topics import Partition
from kafka_sidecar.model.partition_name import split_partition_name


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
            topic, index = split_partition_name(str(one["partition"])) or (str(one["partition"]), 0)
            causes = [
                Cause(
                    int(finding["first_offset"]),
                    int(finding["last_offset"]),
                    str(finding["kind"]),
                    str(finding["text"]),
                )
                for finding in one["findings"]
                if finding["first_offset"] is not None
            ]
            found[topic.rpartition("/")[2], index] = causes
        log_rows(text)
        return found
    except (KeyError, TypeError) as error:
        raise ValueError(f"this is not what verify --json prints: {text[:100]}") from error


def log_rows(text: str) -> list[list[object]]:
    """What the logs are made of, as a table."""
    rows: list[list[object]] = [
        ["partition", "entries", "in which format", "batches", "bytes", "ledgers", "what was found"]
    ]
    for one in json.loads(text)["partitions"]:
        formats, counts = (
            ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in one[key].items() if count)
            for key in ("formats", "counts")
        )
        rows.append([one["partition"], one["entries"], formats, one["batches"], one["bytes"], one["ledgers"], counts])
    return rows


def cause_of(first: int, last: int, causes: Sequence[Cause]) -> str:
    """What is known of a gap; empty for nothing."""
    return "; ".join(dict.fromkeys(one.text for one in causes if one.first <= last and first <= one.last))
