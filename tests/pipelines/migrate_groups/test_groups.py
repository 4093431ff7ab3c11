"""Which groups are moved, and where each of their offsets goes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafka_sidecar.errors import ConfigError
from kafka_sidecar.kafka_client.groups import Committed, GroupState
from kafka_sidecar.pipelines.copying.offset_runs import Copied, Place, Run, Translation
from kafka_sidecar.pipelines.migrate_groups.groups import Step, chosen_groups, translated, wholly

COPIED = Translation([Copied(20, 120, (Run(0, 100, 20),), target_topic="t")])


def step(offset: int) -> Step:
    return Step(group="g", topic="s", partition=1, committed=Committed(offset, "m"))


def test_an_offset_is_where_its_record_is() -> None:
    found = translated(step(7), COPIED, True, {}, overwrite=False)
    assert (found.target_topic, found.place, found.problem) == ("t", Place(107, 7), "")
    assert found.is_to_be_set


def test_what_is_set_already_is_not_set_again() -> None:
    found = translated(step(7), COPIED, True, {("t", 1): Committed(107, "")}, overwrite=False)
    assert not found.problem
    assert not found.is_to_be_set


def test_a_group_that_works_in_the_target_is_not_moved_back() -> None:
    there = {("t", 1): Committed(150, "")}
    assert "--overwrite" in translated(step(7), COPIED, True, there, overwrite=False).problem
    assert translated(step(7), COPIED, True, there, overwrite=True).is_to_be_set


def test_what_nobody_can_tell_is_said() -> None:
    assert "does not copy" in translated(step(7), None, False, {}, overwrite=False).note
    assert "not begun with this partition" in translated(step(7), None, True, {}, overwrite=False).problem
    assert "let it catch up" in translated(step(21), COPIED, True, {}, overwrite=False).problem


def test_groups_are_chosen_by_name_and_pattern() -> None:
    groups = {name: GroupState(name, "Empty") for name in ("a", "ab", "mirror-dc")}
    assert chosen_groups(["a"], groups, "mirror-dc") == ["a"]
    assert chosen_groups([".*"], groups, "mirror-dc") == ["a", "ab"]
    for wrong, text in (("x", "no group"), ("a[", "regular expression"), ("mirror-dc", "no group")):
        with pytest.raises(ConfigError, match=text):
            chosen_groups([wrong], groups, "mirror-dc")


def test_a_group_has_members_where_its_state_says_so() -> None:
    assert [GroupState("g", state).has_members for state in ("Empty", "Dead", "Stable", "PreparingRebalance", "")] == [
        False,
        False,
        True,
        True,
        True,
    ]


def test_a_group_is_moved_wholly_or_not_at_all() -> None:
    fine, stuck = (
        translated(step(7), COPIED, True, {}, overwrite=False),
        translated(step(21), COPIED, True, {}, overwrite=False),
    )
    other = replace(fine, group="h")
    elsewhere = translated(step(7), None, False, {}, overwrite=False)
    found = wholly([fine, stuck, other])
    assert [one.is_to_be_set for one in found] == [False, False, True]
    assert "another partition of the group" in found[0].problem
    assert [one.is_to_be_set for one in wholly([fine, elsewhere])] == [
        True,
        False,
    ]  # a topic that is not mirrored keeps nobody
    assert "does not copy" in wholly([stuck, elsewhere])[1].note
    assert not wholly([stuck, elsewhere])[1].problem
