"""`kafka-sidecar doctor`: what it prints, and how it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from kafka_sidecar.commands import doctor
from kafka_sidecar.doctor.cluster import Finding, Severity
from tests.support.commands import parsed

FINE, FAULT = (
    Finding(Severity.GOOD, "index", "every entry has one"),
    Finding(Severity.FAULT, "topic t", "its log begins without an index"),
)


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> list[Finding]:
    """That the topics have."""
    found: list[Finding] = []

    async def examine(*_: object) -> list[Finding]:
        return [FINE]

    async def examine_topics(*_: object) -> AsyncIterator[Finding]:
        for one in found:
            yield one

    monkeypatch.setattr("kafka_sidecar.doctor.cluster.examine", examine)
    monkeypatch.setattr("kafka_sidecar.doctor.topics.examine_topics", examine_topics)
    return found


def test_it_ends_with_0_where_all_is_well(faults: list[Finding], capsys: pytest.CaptureFixture[str]) -> None:
    faults.append(FAULT)  # it is not asked for
    assert doctor.run(parsed(doctor)) == 0
    assert capsys.readouterr().out.splitlines() == [
        "ok       index: every entry has one",
        "Pulsar is ready for Kafka clients.",
    ]


def test_it_ends_with_1_at_a_fault_of_a_topic(faults: list[Finding], capsys: pytest.CaptureFixture[str]) -> None:
    faults += [FAULT, FAULT]
    assert doctor.run(parsed(doctor, "--topics")) == 1
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "fault    topic t: its log begins without an index",
        "2 faults",
    ]
