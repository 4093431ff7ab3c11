"""The Java clients of 3.x and 4.x with their defaults: an idempotent producer and an assigned consumer."""

from __future__ import annotations

import json

import pytest

from integration.conftest import Cluster
from integration.kafka_clients import create
from integration.launcher.kafka import OLDER_VERSIONS, VERSION, fresh_java_tool, java_tool

RECORDS = 2_000
CONSOLE_CONSUMERS = {"3.2.3": "kafka.tools.ConsoleConsumer"}


@pytest.mark.parametrize("version", [*OLDER_VERSIONS, VERSION])
def test_what_a_java_producer_was_told_is_what_a_java_consumer_gets(cluster: Cluster, topic: str, version: str) -> None:
    create(cluster.kafka, topic, 2)
    server = ("--bootstrap-server", cluster.kafka, "--topic", topic)
    written = java_tool(
        "org.apache.kafka.tools.VerifiableProducer", *server, "--max-messages", str(RECORDS), version=version
    )
    events = [json.loads(line) for line in written.stdout.splitlines() if line.startswith("{")]
    acked = [event for event in events if event["name"] == "producer_send_success"]
    assert len(acked) == RECORDS, written.stdout[-500:] + written.stderr[-500:]
    for partition in range(2):
        offsets = {event["offset"]: event["value"] for event in acked if event["partition"] == partition}
        assert sorted(offsets) == list(range(len(offsets)))
        if offsets:
            consumer = CONSOLE_CONSUMERS.get(version, "org.apache.kafka.tools.consumer.ConsoleConsumer")
            read = fresh_java_tool(
                consumer,
                *server,
                "--partition",
                str(partition),
                "--offset",
                "0",
                "--max-messages",
                str(len(offsets)),
                "--timeout-ms",
                "20000",
                "--property",
                "print.offset=true",
                version=version,
            )
            lines = [
                line.removeprefix("Offset:").split("\t")
                for line in read.stdout.splitlines()
                if line.startswith("Offset:")
            ]
            assert {int(offset): value for offset, value in lines} == offsets, read.stderr[-500:]
