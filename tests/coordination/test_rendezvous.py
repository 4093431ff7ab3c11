"""Parts over members: about as many for each, the same for whoever works it out, and little moves."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.coordination.rendezvous import shared_out

NAMES = st.lists(st.text("abcdef0123456789", min_size=1, max_size=8), min_size=1, max_size=12, unique=True)


@given(NAMES, st.integers(1, 64))
def test_nobody_has_more_than_its_share(names: list[str], parts: int) -> None:
    found = shared_out("topic", parts, names)
    assert len(found) == parts
    assert set(found) <= set(names)
    assert max(found.count(name) for name in names) <= math.ceil(parts / len(names))
    assert shared_out("topic", parts, list(reversed(names))) == found, "whoever works it out finds the same"


def moved(parts: int, before: list[str], after: list[str]) -> float:
    """Of the least that has to move, on the average of many topics."""
    changes = 0
    for topic in map(str, range(100)):
        changes += sum(
            old != new
            for old, new in zip(shared_out(topic, parts, before), shared_out(topic, parts, after), strict=True)
        )
    return changes / 100 / (parts / max(len(before), len(after)))


def test_one_who_comes_or_goes_moves_little_more_than_its_own_share() -> None:
    for members in (1, 2, 4):
        names = [str(number) for number in range(members + 1)]
        for parts in (16, 48, 200):
            assert moved(parts, names[:-1], names) < 1.6
            assert moved(parts, names, names[:-1]) < 1.6


def test_topics_of_one_partition_are_spread_as_well() -> None:
    found = [shared_out(f"topic-{number}", 1, ["1", "2", "3"])[0] for number in range(900)]
    assert min(found.count(name) for name in ("1", "2", "3")) > 240
