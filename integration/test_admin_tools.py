"""What tools ask when they open a cluster: security that is not there, a node's settings, features, the quorum."""

from __future__ import annotations

import subprocess

from integration.conftest import Cluster
from integration.launcher.jvm import short_lived_tool
from integration.launcher.kafka import java_tool, tools
from integration.launcher.programs import java_program


def test_kafka_ui_and_akhq_open_the_cluster(cluster: Cluster) -> None:
    program = java_program("AdminCalls", tools(), short_lived_tool(tools()))
    done = subprocess.run([*program, cluster.kafka, "0"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    came = dict(line.split("\t", 1) for line in done.stdout.splitlines())
    assert came["describeAcls"] == "SecurityDisabledException"
    assert came["describeClientQuotas"] == came["describeUserScramCredentials"] == "{}"
    assert came["describeDelegationToken"] == "UnsupportedByAuthenticationException"
    assert came["alterClientQuotas"] == "InvalidRequestException"
    assert came["alterUserScramCredentials"] == "UnsupportedSaslMechanismException"
    assert f"advertised.listeners=PLAINTEXT://{cluster.kafka}" in came["describeConfigs"]
    assert "inter.broker.protocol.version=4.2-IV1" in came["describeConfigs"]
    assert "metadata.version" in came["describeFeatures"]
    assert came["describeMetadataQuorum"] == "true", "no offset is negative, and all have caught up"


def test_kafka_features_describes_what_is_finalized(cluster: Cluster) -> None:
    done = java_tool("org.apache.kafka.tools.FeatureCommand", "--bootstrap-server", cluster.kafka, "describe")
    told = {
        line.split("\t")[0]: line.split("\t")[1:] for line in done.stdout.splitlines() if line.startswith("Feature:")
    }
    assert [one.split(": ")[1] for one in told["Feature: metadata.version"]][2] == "4.2-IV1"
    assert "FinalizedVersionLevel: 2" in told["Feature: transaction.version"]
    assert "FinalizedVersionLevel: 1" in told["Feature: group.version"]


def test_kafka_configs_describes_a_node(cluster: Cluster) -> None:
    of_node = (
        "--bootstrap-server",
        cluster.kafka,
        "--entity-type",
        "brokers",
        "--entity-name",
        "0",
        "--describe",
        "--all",
    )
    told = java_tool("kafka.admin.ConfigCommand", *of_node).stdout
    for name in (
        "listeners",
        "log.retention.ms",
        "message.max.bytes",
        "num.partitions",
        "group.min.session.timeout.ms",
    ):
        assert f" {name}=" in told, told


def test_kafka_metadata_quorum_tells_its_status(cluster: Cluster) -> None:
    quorum = ("--bootstrap-server", cluster.kafka, "describe")
    status = java_tool("org.apache.kafka.tools.MetadataQuorumCommand", *quorum, "--status")
    assert status.returncode == 0, status.stdout + status.stderr
    assert "HighWatermark:          0" in status.stdout
    replication = java_tool(
        "org.apache.kafka.tools.MetadataQuorumCommand", *quorum, "--replication", "--human-readable"
    )
    assert "ms ago" in replication.stdout, replication.stdout + replication.stderr


def test_kafka_acls_is_told_that_there_is_no_authorizer(cluster: Cluster) -> None:
    done = java_tool("org.apache.kafka.tools.AclCommand", "--bootstrap-server", cluster.kafka, "--list")
    assert "No Authorizer is configured" in done.stdout + done.stderr
