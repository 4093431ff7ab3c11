"""What the doctor says of settings."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_sidecar.doctor.cluster import (
    INDEX,
    NEW_CLUSTER_SECONDS,
    TIMESTAMP,
    Finding,
    Severity,
    StartGate,
    examine,
    judge_groups,
    judge_internal_topics,
    judge_protocol,
    judge_settings,
)
from kafka_sidecar.pulsar.errors import PulsarError, TopicMissing, Unavailable

GOOD = {
    "brokerEntryMetadataInterceptors": f"{INDEX},{TIMESTAMP}",
    "exposingBrokerEntryMetadataToClientEnabled": "true",
    "brokerDeleteInactiveTopicsEnabled": "false",
    "defaultRetentionTimeInMinutes": "-1",
    "defaultRetentionSizeInMB": "-1",
    "topicLevelPoliciesEnabled": "true",
    "systemTopicEnabled": "true",
}


NO_FINDING = {Severity.GOOD, Severity.NOTE}


def test_a_good_cluster_has_no_findings() -> None:
    assert {finding.severity for finding in judge_settings(GOOD, {}, "public/default")} == NO_FINDING


def test_what_can_not_be_seen_and_what_may_be_faster_is_a_note() -> None:
    notes = {
        finding.check for finding in judge_settings(GOOD, {}, "public/default") if finding.severity is Severity.NOTE
    }
    assert notes == {"journal", "copies", "read delay", "election"}
    fast = {**GOOD, "managedLedgerNewEntriesCheckDelayInMillis": "0", "activeConsumerFailoverDelayTimeMillis": "0"}
    notes = {
        finding.check for finding in judge_settings(fast, {}, "public/default") if finding.severity is Severity.NOTE
    }
    assert notes == {"journal", "copies"}


@pytest.mark.parametrize("setting", sorted(GOOD))
def test_each_setting_that_is_missing_is_found(setting: str) -> None:
    settings = {key: value for key, value in GOOD.items() if key != setting}
    bad = [finding for finding in judge_settings(settings, {}, "public/default") if finding.severity not in NO_FINDING]
    assert bad
    assert setting in " ".join(finding.text for finding in bad)


def test_the_namespace_may_say_what_the_broker_does_not() -> None:
    settings = {**GOOD, "brokerDeleteInactiveTopicsEnabled": "true", "defaultRetentionSizeInMB": "0"}
    policies = {
        "inactive_topic_policies": {"deleteWhileInactive": False},
        "retention_policies": {"retentionTimeInMinutes": 60, "retentionSizeInMB": -1},
    }
    assert {finding.severity for finding in judge_settings(settings, policies, "a/b")} == NO_FINDING


def test_the_namespace_may_also_be_worse_than_the_broker() -> None:
    policies = {"retention_policies": {"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}}
    faults = [finding for finding in judge_settings(GOOD, policies, "a/b") if finding.severity is Severity.FAULT]
    assert [finding.check for finding in faults] == ["retention"]


def test_a_broker_without_entry_metadata_is_too_old() -> None:
    assert judge_protocol(17, "Pulsar 2.8").severity is Severity.FAULT
    assert judge_protocol(18, "Pulsar 2.9").severity is Severity.GOOD


def test_committed_offsets_must_not_have_a_time_to_live() -> None:
    namespace = "public/__kafka"
    assert judge_groups(None, GOOD, namespace).severity is Severity.GOOD
    assert judge_groups({}, GOOD, namespace).severity is Severity.GOOD
    assert judge_groups({"message_ttl_in_seconds": 3600}, GOOD, namespace).severity is Severity.WARNING
    assert judge_groups({}, {**GOOD, "ttlDurationDefaultInSeconds": "60"}, namespace).severity is Severity.WARNING
    assert (
        judge_groups({"message_ttl_in_seconds": 0}, {**GOOD, "ttlDurationDefaultInSeconds": "60"}, namespace).severity
        is Severity.GOOD
    )


@pytest.mark.parametrize(
    ("policies", "settings", "server", "severities", "text"),
    [
        ({}, {}, "Pulsar Server4.2.4", [Severity.GOOD], "give back what is compacted"),
        ({}, {}, "Pulsar Server2.9.1", [Severity.NOTE], "Pulsar Server2.9.1 may forget what is compacted"),
        ({}, {"topicLevelPoliciesEnabled": "false"}, "Pulsar Server4.2.4", [Severity.NOTE], "without topic policies"),
        ({"message_ttl_in_seconds": 60}, {}, "Pulsar Server4.2.4", [Severity.WARNING], "set it to 0"),
        ({"replication_clusters": ["east"]}, {}, "Pulsar Server4.2.4", [Severity.GOOD], "give back what is compacted"),
        (
            {"replication_clusters": ["east", "west"]},
            {},
            "Pulsar Server4.2.4",
            [Severity.WARNING, Severity.GOOD],
            "out of geo-replication",
        ),
    ],
)
def test_internal_topics_say_what_keeps_them_from_giving_bytes_back(
    policies: dict[str, object], settings: dict[str, str], server: str, severities: list[Severity], text: str
) -> None:
    found = judge_internal_topics(policies, {**GOOD, **settings}, "public/__kafka", server)
    assert [finding.severity for finding in found] == severities
    assert text in found[0].text


AWAY = [Finding(Severity.FAULT, "connection", "check pulsar.url", transient=True)]
WRONG = [Finding(Severity.FAULT, "namespace", "create the namespace")]


def test_what_is_not_there_yet_is_waited_for_as_long_as_it_takes() -> None:
    start = StartGate(once=False)
    assert all(start.may_wait(AWAY, float(now)) for now in range(0, 100_000, 1_000))


def test_what_is_set_wrong_ends_the_start_at_once() -> None:
    assert not StartGate(once=False).may_wait(WRONG, 0.0)
    assert not StartGate(once=False).may_wait([*WRONG, *AWAY], 0.0)
    assert not StartGate(once=True).may_wait(AWAY, 0.0)


def test_a_cluster_that_has_just_come_up_has_some_time_to_be_made() -> None:
    start = StartGate(once=False)
    assert start.may_wait(AWAY, 0.0)
    assert start.may_wait(WRONG, 100.0)
    assert start.may_wait(WRONG, 99.0 + NEW_CLUSTER_SECONDS)
    assert not start.may_wait(WRONG, 100.0 + NEW_CLUSTER_SECONDS)


class Pulsar:
    """A cluster that answers so to a question for its namespace."""

    def __init__(self, error: PulsarError) -> None:
        self.error = error

    @property
    def cluster(self) -> Pulsar:
        return self

    async def protocol_version(self) -> tuple[int, str]:
        return 21, "Pulsar Server4.2.4"

    async def reach(self, topic: str) -> None: ...

    async def namespace_policies(self, namespace: str) -> dict[str, Any]:
        raise self.error


@pytest.mark.parametrize(
    ("error", "text"),
    [(TopicMissing("404"), "create the namespace a/b"), (Unavailable("404 to everything"), "check pulsar.admin_url")],
)
async def test_a_namespace_is_missing_only_where_something_is_there(error: PulsarError, text: str) -> None:
    pulsar: Any = Pulsar(error)
    fault = next(one for one in await examine(pulsar, pulsar, "a/b", "a/groups") if one.severity is Severity.FAULT)
    assert text in fault.text
    assert fault.transient is error.retriable
