"""What an audit says of the records that a mirror has not copied."""

from __future__ import annotations

from kafka_sidecar.pipelines.audit.copies import not_compared
from kafka_sidecar.pipelines.copying.offset_runs import Copied, Run, Translation

COPIED = Translation([Copied(20, 120, (Run(0, 100, 20),), target_topic="t")])


def test_what_was_compared_with_nothing_is_named() -> None:
    copied = {("t", 0): COPIED, ("t", 1): COPIED}
    behind, uncopied = not_compared(copied, {("t", 0): 19, ("t", 1): 20, ("t", 2): 4})
    assert [one.partition(":")[0] for one in behind] == ["t-1"]
    assert [one.partition(":")[0] for one in uncopied] == ["t-2"]
