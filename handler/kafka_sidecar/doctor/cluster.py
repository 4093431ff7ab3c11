"""The settings that a Pulsar cluster must have, checked at start and by `kafka-sidecar doctor`.

A fault loses data or offsets and stops the start; a warning costs comfort. Each names the setting
to change. A note is no finding: it tells what the doctor can't see, or what may be set faster.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from kafka_sidecar.internal_topics.internal_storage import may_free, what_moves_cursors
from kafka_sidecar.pulsar.admin import PulsarAdmin
from kafka_sidecar.pulsar.client import PulsarClient
from kafka_sidecar.pulsar.connection import REQUIRED_PROTOCOL_VERSION
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, TopicMissing

INDEX: Final = "org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor"
# In a new cluster, brokers may answer some seconds before an init job has created the namespaces.
NEW_CLUSTER_SECONDS: Final = 30.0
TIMESTAMP: Final = "org.apache.pulsar.common.intercept.AppendBrokerTimestampMetadataInterceptor"


class Severity(StrEnum):
    GOOD = "ok"
    NOTE = "note"
    WARNING = "warning"
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class Finding:
    severity: Severity
    check: str
    text: str
    # May disappear without a configuration change: Pulsar, or the network path to it, may not be up yet.
    transient: bool = False


class StartGate:
    """Whether a sidecar that has found faults may look again: what is set wrong ends it, what is not there yet is
    waited for.
    """

    def __init__(self, once: bool) -> None:
        self._once = once
        self._has_waited = False
        self._reached_at: float | None = None

    def may_wait(self, faults: Sequence[Finding], now: float) -> bool:
        if self._once:
            return False
        if all(fault.transient for fault in faults):
            self._has_waited = True
            self._reached_at = None
            return True
        if self._reached_at is None:
            self._reached_at = now
        # In a cluster that has just come up, an init job may still be creating the namespaces.
        return self._has_waited and now - self._reached_at < NEW_CLUSTER_SECONDS


def judge_settings(settings: Mapping[str, str], policies: Mapping[str, Any], namespace: str) -> list[Finding]:
    """Findings from a broker's settings and the namespace's policies. Pure."""
    return [
        *_interceptors(settings),
        _exposure(settings),
        _inactive_topics(settings, policies, namespace),
        _retention(settings, policies, namespace),
        _topic_policies(settings),
        _read_delay(settings),
        _failover_delay(settings),
        _journal(),
        _copies(),
    ]


def _interceptors(settings: Mapping[str, str]) -> list[Finding]:
    given = settings.get("brokerEntryMetadataInterceptors", "")
    findings = []
    for check, interceptor, why in (
        ("index", INDEX, "without it entries have no offsets"),
        ("timestamp", TIMESTAMP, "without it entries have no broker time"),
    ):
        if interceptor in given:
            findings.append(
                Finding(Severity.GOOD, check, f"brokerEntryMetadataInterceptors has {interceptor.rsplit('.', 1)[1]}")
            )
        else:
            findings.append(
                Finding(
                    Severity.FAULT,
                    check,
                    f"add {interceptor} to brokerEntryMetadataInterceptors on every broker: {why}",
                )
            )
    return findings


def _exposure(settings: Mapping[str, str]) -> Finding:
    if settings.get("exposingBrokerEntryMetadataToClientEnabled") == "true":
        return Finding(Severity.GOOD, "exposure", "exposingBrokerEntryMetadataToClientEnabled is true")
    return Finding(
        Severity.FAULT,
        "exposure",
        "set exposingBrokerEntryMetadataToClientEnabled=true on every broker: without it clients do not see the "
        "offsets",
    )


def _inactive_topics(settings: Mapping[str, str], policies: Mapping[str, Any], namespace: str) -> Finding:
    inactive = policies.get("inactive_topic_policies")
    if inactive is not None:
        if not inactive.get("deleteWhileInactive", True):
            return Finding(Severity.GOOD, "inactive topics", f"inactive topics of {namespace} are kept")
    elif settings.get("brokerDeleteInactiveTopicsEnabled") == "false":
        return Finding(Severity.GOOD, "inactive topics", "brokerDeleteInactiveTopicsEnabled is false")
    return Finding(
        Severity.FAULT,
        "inactive topics",
        "set brokerDeleteInactiveTopicsEnabled=false on every broker (or the namespace's inactive-topic policy): "
        "a partition nobody is connected to is deleted and begins again at offset 0",
    )


def _retention(settings: Mapping[str, str], policies: Mapping[str, Any], namespace: str) -> Finding:
    own = policies.get("retention_policies")
    if own is not None:
        minutes, megabytes = int(own.get("retentionTimeInMinutes", 0)), int(own.get("retentionSizeInMB", 0))
        place = f"the retention of {namespace}"
    else:
        minutes = int(settings.get("defaultRetentionTimeInMinutes", "0"))
        megabytes = int(settings.get("defaultRetentionSizeInMB", "0"))
        place = "defaultRetentionTimeInMinutes and defaultRetentionSizeInMB"
    if minutes != 0 and megabytes != 0:
        return Finding(Severity.GOOD, "retention", f"{place}: {minutes} minutes, {megabytes} MB (-1 is no limit)")
    return Finding(
        Severity.FAULT,
        "retention",
        f"run pulsar-admin namespaces set-retention {namespace} --time 7d --size -1, or change {place}: neither time "
        "nor size may be 0, for Pulsar then deletes what no subscription holds, and Kafka consumers are not "
        "subscriptions",
    )


def _keeps_topic_policies(settings: Mapping[str, str]) -> bool:
    return settings.get("topicLevelPoliciesEnabled") == "true" and settings.get("systemTopicEnabled") == "true"


def _topic_policies(settings: Mapping[str, str]) -> Finding:
    if _keeps_topic_policies(settings):
        return Finding(Severity.GOOD, "topic policies", "topicLevelPoliciesEnabled and systemTopicEnabled are true")
    return Finding(
        Severity.WARNING,
        "topic policies",
        "set topicLevelPoliciesEnabled=true and systemTopicEnabled=true: without them topic configs can't be changed",
    )


def _read_delay(settings: Mapping[str, str]) -> Finding:
    delay = settings.get("managedLedgerNewEntriesCheckDelayInMillis", "10")
    text = f"managedLedgerNewEntriesCheckDelayInMillis is {delay}"
    if delay == "0":
        return Finding(Severity.GOOD, "read delay", text)
    return Finding(
        Severity.NOTE,
        "read delay",
        f"{text}: consumers get records of other writers up to this many milliseconds later. Set 0 to avoid it",
    )


def _failover_delay(settings: Mapping[str, str]) -> Finding:
    delay = settings.get("activeConsumerFailoverDelayTimeMillis", "1000")
    text = f"activeConsumerFailoverDelayTimeMillis is {delay}"
    if delay == "0":
        return Finding(Severity.GOOD, "election", text)
    return Finding(
        Severity.NOTE,
        "election",
        f"{text}: after a coordinator has gone, its groups and transactions wait this many milliseconds more. Set 0 to "
        "shorten it",
    )


def _journal() -> Finding:
    return Finding(
        Severity.NOTE,
        "journal",
        "how the bookies write can't be seen from here: with journalFlushWhenQueueEmpty=true on each of them, "
        "or journalMaxGroupWaitMSec=0, a record that comes alone is acknowledged a millisecond sooner",
    )


def _copies() -> Finding:
    return Finding(
        Severity.NOTE,
        "copies",
        "where a Kafka producer's retry lands twice, Kafka consumers are given one of the two, and native consumers "
        "see both",
    )


def judge_groups(policies: Mapping[str, Any] | None, settings: Mapping[str, str], namespace: str) -> Finding:
    """Whether committed offsets are kept. Pure; `policies` is None where the namespace does not exist yet."""
    if policies is None:
        return Finding(Severity.GOOD, "groups", f"{namespace} is made on first use, with retention without end")
    seconds = policies.get("message_ttl_in_seconds")
    seconds = int(settings.get("ttlDurationDefaultInSeconds", "0")) if seconds is None else int(seconds)
    if seconds > 0:
        return Finding(
            Severity.WARNING,
            "groups",
            f"remove the message TTL of {namespace} (pulsar-admin namespaces remove-message-ttl {namespace}): "
            "before Pulsar 3.0 it takes committed offsets that were not compacted yet",
        )
    return Finding(Severity.GOOD, "groups", f"{namespace} has no message TTL")


def judge_internal_topics(
    policies: Mapping[str, Any], settings: Mapping[str, str], namespace: str, server: str
) -> list[Finding]:
    """Whether internal topics work, and give their bytes back. Pure."""
    findings = []
    clusters = policies.get("replication_clusters") or []
    if len(clusters) > 1:
        findings.append(
            Finding(
                Severity.WARNING,
                "groups",
                f"take {namespace} out of geo-replication (pulsar-admin namespaces set-clusters {namespace} --clusters "
                "HERE): a replicator holds the place of a coordinator, and no group has one",
            )
        )
    keeps_all = f"internal topics of {namespace} keep all that is ever written to them: "
    moving = list(what_moves_cursors({}, policies, settings))
    if moving:
        findings.append(Finding(Severity.WARNING, "internal topics", keeps_all + moving[0]))
    elif not may_free(server):
        text = f"{keeps_all}{server} may forget what is compacted. Pulsar 2.10.4 and later, but for 2.11.0, do not"
        findings.append(Finding(Severity.NOTE, "internal topics", text))
    elif not _keeps_topic_policies(settings):
        findings.append(
            Finding(Severity.NOTE, "internal topics", f"{keeps_all}their retention can't be set without topic policies")
        )
    else:
        findings.append(Finding(Severity.GOOD, "internal topics", f"those of {namespace} give back what is compacted"))
    return findings


def judge_protocol(version: int, server: str) -> Finding:
    if version >= REQUIRED_PROTOCOL_VERSION:
        return Finding(Severity.GOOD, "protocol", f"{server} speaks protocol {version}")
    return Finding(
        Severity.FAULT,
        "protocol",
        f"upgrade Pulsar to 2.9 or later: {server} speaks protocol {version} and {REQUIRED_PROTOCOL_VERSION} is needed "
        "for offsets",
    )


async def _groups_to_be_made(admin: PulsarAdmin, settings: Mapping[str, str], namespace: str) -> Finding:
    tenant, _, _ = namespace.partition("/")
    try:
        known = tenant in await admin.cluster.tenants()
    except PulsarError:
        # This role may lack the right to list tenants, so an error does not mean that the tenant is missing.
        known = True
    if not known:
        return Finding(
            Severity.FAULT,
            "groups",
            f"create the tenant {tenant} or set groups.namespace: consumer groups need {namespace}",
        )
    return judge_groups(None, settings, namespace)


async def examine(client: PulsarClient, admin: PulsarAdmin, namespace: str, groups_namespace: str) -> list[Finding]:
    """Everything that can be found out. A cluster that does not answer is a fault, not an exception."""
    findings = []
    try:
        version, server = await client.protocol_version()
        findings.append(judge_protocol(version, server))
    except PulsarError as error:
        return [Finding(Severity.FAULT, "connection", f"check pulsar.url: {error}", transient=error.retriable)]
    try:
        await client.reach(f"persistent://{namespace}/kafka-sidecar-doctor")
    except TopicMissing:
        pass
    except PulsarError as error:
        text = (
            "check pulsar.listener_name and what the brokers advertise: the broker that serves a topic can't be "
            "reached: "
        )
        findings.append(Finding(Severity.FAULT, "lookup", f"{text}{error}", transient=error.retriable))
    try:
        policies = await admin.cluster.namespace_policies(namespace)
    except TopicMissing:
        text = f"create the namespace {namespace} or set kafka.namespace: it does not exist"
        return [*findings, Finding(Severity.FAULT, "namespace", text)]
    except NotPermitted:
        policies = {}
        findings.append(
            Finding(Severity.WARNING, "namespace", f"the policies of {namespace} may not be read with these rights")
        )
    except PulsarError as error:
        return [
            *findings,
            Finding(Severity.FAULT, "admin", f"check pulsar.admin_url: {error}", transient=error.retriable),
        ]
    try:
        await admin.cluster.clusters()  # the admin client accepts a 404 only from a broker that can list its clusters
    except NotPermitted:
        pass
    except PulsarError as error:
        return [
            *findings,
            Finding(Severity.FAULT, "admin", f"check pulsar.admin_url: {error}", transient=error.retriable),
        ]
    try:
        settings = await admin.cluster.broker_settings()
    except NotPermitted:
        return [
            *findings,
            Finding(
                Severity.WARNING,
                "broker settings",
                "the broker's settings may not be read with these rights, so they were not checked",
            ),
        ]
    except PulsarError as error:
        return [
            *findings,
            Finding(Severity.FAULT, "admin", f"check pulsar.admin_url: {error}", transient=error.retriable),
        ]
    findings += judge_settings(settings, policies, namespace)
    try:
        policies = await admin.cluster.namespace_policies(groups_namespace)
        findings.append(judge_groups(policies, settings, groups_namespace))
        findings += judge_internal_topics(policies, settings, groups_namespace, server)
    except TopicMissing:
        findings.append(await _groups_to_be_made(admin, settings, groups_namespace))
    except PulsarError as error:
        findings.append(
            Finding(Severity.WARNING, "groups", f"the policies of {groups_namespace} can't be read: {error}")
        )
    return findings
