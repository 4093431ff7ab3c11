"""The properties that name the entries which an operator has skipped."""

from __future__ import annotations

import pytest

from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.topics.skipped import MOST, PREFIX, skipped_of, skipping


def test_each_partition_has_its_own() -> None:
    properties: dict[str, str] = {}
    for partition, position in ((0, Position(12, 3)), (1, Position(5, 0)), (0, Position(12, 7)), (0, Position(12, 3))):
        properties |= skipping(properties, partition, position, 4)
    assert properties == {"kafka.skipped.0.12.3": "4", "kafka.skipped.1.5.0": "4", "kafka.skipped.0.12.7": "4"}
    assert skipped_of(properties, 0) == {Position(12, 3), Position(12, 7)}
    assert skipped_of(properties, 1) == {Position(5, 0)}
    assert skipped_of({}, 0) == frozenset()


def test_two_operators_at_once_do_not_undo_each_other() -> None:
    seen_by_both: dict[str, str] = {"owner": "billing"}
    stored = seen_by_both | skipping(seen_by_both, 0, Position(1, 1), 1) | skipping(seen_by_both, 0, Position(1, 2), 2)
    assert skipped_of(stored, 0) == {Position(1, 1), Position(1, 2)}


def test_what_somebody_else_has_written_there_is_passed_over() -> None:
    odd = {PREFIX + name: "" for name in ("nonsense", "0.1", "..3", "0.x.1", "1.2.3.4", "0.12.3")}
    assert skipped_of(odd, 0) == {Position(12, 3)}


def test_there_is_a_bound() -> None:
    full = {f"{PREFIX}0.1.{entry}": "" for entry in range(MOST)}
    with pytest.raises(ValueError, match="delete the records"):
        skipping(full, 0, Position(2, 0), 9)
    assert skipping(full, 0, Position(1, 0), 9) == {f"{PREFIX}0.1.0": "9"}
