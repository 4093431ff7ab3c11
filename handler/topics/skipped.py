"""Entries that nobody can read and that an operator has skipped: a property of their topic. Pure.

kafka.skipped = 0/12:3 0/12:7 1/5:0        partition/ledger:entry
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from handler.pulsar.entry import Position

SKIPPED: Final = "kafka.skipped"
# Of a topic. A property is not made for more, and who has more deletes records.
MOST: Final = 500


def skipped_of(properties: Mapping[str, str], partition: int) -> frozenset[Position]:
    """What somebody else has written there is passed over."""
    found = (_parsed(one) for one in properties.get(SKIPPED, "").split()[:MOST])
    return frozenset(one[1] for one in found if one is not None and one[0] == partition)


def with_skipped(properties: Mapping[str, str], partition: int, position: Position) -> str:
    """The property with one more. ValueError where there are too many."""
    one = f"{partition}/{position.ledger}:{position.entry}"
    known = properties.get(SKIPPED, "").split()
    if one in known:
        return " ".join(known)
    if len(known) >= MOST:
        raise ValueError(f"{MOST} entries of the topic are skipped, and no more can be: delete the records up to this one")
    return " ".join([*known, one])


def _parsed(text: str) -> tuple[int, Position] | None:
    partition, _, position = text.partition("/")
    ledger, _, entry = position.partition(":")
    try:
        return int(partition), Position(int(ledger), int(entry))
    except ValueError:
        return None
