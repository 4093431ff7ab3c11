"""The property that names the entries which an operator has skipped."""

from __future__ import annotations

import pytest

from handler.pulsar.entry import Position
from handler.topics.skipped import MOST, SKIPPED, skipped_of, with_skipped


def test_each_partition_has_its_own() -> None:
    properties: dict[str, str] = {}
    for partition, position in ((0, Position(12, 3)), (1, Position(5, 0)), (0, Position(12, 7)), (0, Position(12, 3))):
        properties[SKIPPED] = with_skipped(properties, partition, position)
    assert properties[SKIPPED] == "0/12:3 1/5:0 0/12:7"
    assert skipped_of(properties, 0) == {Position(12, 3), Position(12, 7)}
    assert skipped_of(properties, 1) == {Position(5, 0)}
    assert skipped_of({}, 0) == frozenset()


def test_what_somebody_else_has_written_there_is_passed_over() -> None:
    assert skipped_of({SKIPPED: "nonsense 0/1 /:3 0/x:1 0/12:3 1/2/3:4"}, 0) == {Position(12, 3)}


def test_there_is_a_bound() -> None:
    full = {SKIPPED: " ".join(f"0/1:{entry}" for entry in range(MOST))}
    with pytest.raises(ValueError, match="delete the records"):
        with_skipped(full, 0, Position(2, 0))
    assert with_skipped(full, 0, Position(1, 0)) == full[SKIPPED]
