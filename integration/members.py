"""Group members as applications run them, and Kafka's tool for groups."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from integration.conftest import Cluster
from integration.launcher.kafka import VERSION, java, java_tool

# A member of librdkafka's that speaks the protocol of KIP-848.
NEW_PROTOCOL: dict[str, object] = {"group.protocol": "consumer"}


class Member:
    """A librdkafka consumer in a thread of its own, as an application runs it."""

    def __init__(self, address: str, group: str, topic: str, settings: dict[str, object] | None = None) -> None:
        settings = settings or {}
        self.assigned: set[int] = set()
        self.revocations = 0
        self.read: list[tuple[int, int]] = []
        self.refused_commits: dict[int, str] = {}  # by partition, what the last commit was told, if that was refused
        base: dict[str, object] = {
            "bootstrap.servers": address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "on_commit": self._on_commit,
        }
        self.client = Consumer(base | settings)
        self._incremental = "consumer" in settings.values() or "cooperative-sticky" in settings.values()
        self._stop = False
        self.lost = 0  # partitions that it had no chance to commit
        self.client.subscribe([topic], on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        given = {one.partition for one in partitions}
        self.assigned = self.assigned | given if self._incremental else given

    def _on_revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned -= {one.partition for one in partitions}
        self.revocations += len(partitions)

    def _on_commit(self, error: KafkaError | None, partitions: list[TopicPartition]) -> None:
        for one in partitions:
            failure = error or one.error
            if failure is not None and failure.code() == KafkaError._NO_OFFSET:
                continue  # there was nothing new to commit
            if failure is None:
                self.refused_commits.pop(one.partition, None)
            else:
                self.refused_commits[one.partition] = str(failure)

    @property
    def says_it_did_not_commit(self) -> bool:
        return bool(self.lost or self.refused_commits)

    def _on_lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.assigned -= {one.partition for one in partitions}
        self.lost += len(partitions)

    def _run(self) -> None:
        while not self._stop:
            message = self.client.poll(0.1)
            if message is not None and message.error() is None:
                partition, offset = message.partition(), message.offset()
                assert partition is not None
                assert offset is not None
                self.read.append((partition, offset))
        self.client.close()

    def stop(self) -> None:
        self._stop = True
        self._thread.join()


@contextmanager
def member(address: str, group: str, topic: str, settings: dict[str, object] | None = None) -> Iterator[Member]:
    one = Member(address, group, topic, settings)
    try:
        yield one
    finally:
        one.stop()


class JavaMember:
    """Kafka's VerifiableConsumer: what it says is heard in a thread; it leaves when it is asked to stop."""

    def __init__(self, address: str, group: str, topic: str, *options: str, version: str = VERSION) -> None:
        self.assigned: set[int] = set()
        self.revocations = 0
        self.consumed = 0
        self.committed: dict[int, int] = {}
        self.failures: list[str] = []
        command = [
            *java(version),
            "org.apache.kafka.tools.VerifiableConsumer",
            "--bootstrap-server",
            address,
            "--topic",
            topic,
            "--group-id",
            group,
            *options,
        ]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                self._hear(json.loads(line))

    def _hear(self, event: dict[str, Any]) -> None:
        partitions = {one["partition"] for one in event.get("partitions", ())}
        match event["name"]:
            case "partitions_assigned":
                self.assigned |= partitions
            case "partitions_revoked":
                self.assigned -= partitions
                self.revocations += len(partitions)
            case "records_consumed":
                self.consumed += event["count"]
            case "offsets_committed" if event["success"]:
                self.committed |= {one["partition"]: one["offset"] for one in event["offsets"]}
            case "offsets_committed":
                self.failures.append(event["error"])

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
        self._thread.join(10)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(10)


@contextmanager
def java_member(address: str, group: str, topic: str, *options: str) -> Iterator[JavaMember]:
    one = JavaMember(address, group, topic, *options)
    try:
        yield one
    finally:
        one.stop()


def tool(cluster: Cluster, *arguments: str) -> str:
    main = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    done = java_tool(main, "--bootstrap-server", cluster.kafka, *arguments)
    return done.stdout + done.stderr


def offsets(text: str) -> dict[int, int]:
    """Partition → current offset, out of the table of `--describe`."""
    rows = [line.split() for line in text.splitlines() if re.match(r"\S+\s+\S+\s+\d+\s+\d+", line)]
    return {int(row[2]): int(row[3]) for row in rows}
