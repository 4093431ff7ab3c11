"""Causes of gaps, as verify has told them."""

from __future__ import annotations

import pytest

from kafka_sidecar.commands.verify.audit import Kind, PartitionReport
from kafka_sidecar.commands.verify.report import as_json
from kafka_sidecar.pipelines.audit.causes import Cause, cause_of, log_rows, read_causes
from kafka_sidecar.pulsar.entry import Position


def test_what_verify_prints_is_read() -> None:
    one = PartitionReport("persistent://public/default/a-b-partition-3", ledgers=2, entries=12, bytes=900, batches=14)
    one.formats.update({"kafka": 11, "pulsar": 1})
    one.note(Kind.TRIMMED, None, "retention", (0, 9), 10)
    one.note(Kind.BEFORE_INDEX, Position(1, 2), "of before")
    text = as_json([one, PartitionReport("persistent://public/default/single")])
    assert read_causes(text) == {("a-b", 3): [Cause(0, 9, "trimmed", "retention")], ("single", 0): []}
    assert log_rows(text)[1:] == [
        [one.name, 12, "11 kafka, 1 pulsar", 14, 900, 2, "10 trimmed, 1 before index"],
        ["persistent://public/default/single", 0, "", 0, 0, 0, ""],
    ]


def test_anything_else_is_refused() -> None:
    for text in ("{}", "[]", '{"partitions":[{}]}'):
        with pytest.raises(ValueError, match="not what verify --json prints"):
            read_causes(text)


def test_a_gap_has_the_causes_that_touch_it() -> None:
    causes = [Cause(0, 4, "a", "one"), Cause(5, 5, "b", "two"), Cause(5, 9, "c", "two"), Cause(20, 30, "d", "three")]
    assert cause_of(4, 6, causes) == "one; two"
    assert cause_of(10, 19, causes) == ""
