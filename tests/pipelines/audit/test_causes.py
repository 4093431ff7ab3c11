"""Causes of gaps, as verify has told them."""

from __future__ import annotations

import json

import pytest

from handler.pipelines.audit.causes import Cause, cause_of, read_causes


def test_what_verify_prints_is_read() -> None:
    findings = [
        {"kind": "trimmed", "first_offset": 0, "last_offset": 9, "text": "retention"},
        {"kind": "unread", "first_offset": None, "last_offset": None, "text": "the end"},
    ]
    partitions = [
        {"partition": "persistent://public/default/a-b-partition-3", "findings": findings},
        {"partition": "persistent://public/default/single", "findings": []},
    ]
    found = read_causes(json.dumps({"faults": 0, "partitions": partitions}))
    assert found == {("a-b", 3): [Cause(0, 9, "trimmed", "retention")], ("single", 0): []}
    for text in ("{}", "[]", '{"partitions":[{}]}'):
        with pytest.raises(ValueError, match="not what verify --json prints"):
            read_causes(text)


def test_a_gap_has_the_causes_that_touch_it() -> None:
    causes = [Cause(0, 4, "a", "one"), Cause(5, 5, "b", "two"), Cause(5, 9, "c", "two"), Cause(20, 30, "d", "three")]
    assert cause_of(4, 6, causes) == "one; two"
    assert cause_of(10, 19, causes) == ""
