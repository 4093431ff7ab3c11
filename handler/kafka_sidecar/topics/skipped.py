"""Entries that nobody can read and that an operator has skipped: each is a property of their topic. Pure.

kafka.skipped.0.12.3 = 4711        partition, ledger, entry: the offset that the operator has named

A property for each, because Pulsar has no way to change one that another may be changing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kafka_sidecar.pulsar.entry import Position

PREFIX: Final = "kafka.skipped."
# Limit of skipped entries of a topic, since topic properties are not made for more. Beyond it, operators delete the
# records.
MOST: Final = 500


def skipped_of(properties: Mapping[str, str], partition: int) -> frozenset[Position]:
    """What somebody else has written there is passed over."""
    found = [_parsed(key) for key in properties if key.startswith(PREFIX)]
    return frozenset(one[1] for one in found[:MOST] if one is not None and one[0] == partition)


def skipping(properties: Mapping[str, str], partition: int, position: Position, offset: int) -> dict[str, str]:
    """The property of one more. ValueError where there are too many."""
    key = f"{PREFIX}{partition}.{position.ledger}.{position.entry}"
    if key not in properties and sum([one.startswith(PREFIX) for one in properties]) >= MOST:
        raise ValueError(
            f"{MOST} entries of the topic are skipped, and no more can be: delete the records up to this one"
        )
    return {key: str(offset)}


def _parsed(key: str) -> tuple[int, Position] | None:
    try:
        partition, ledger, entry = map(int, key.removeprefix(PREFIX).split("."))
    except ValueError:
        return None
    return partition, Position(ledger, entry)
