"""The image, and the containers that tests of applications use (kafka_sidecar.testing), in a real Docker engine."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulsar
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from testcontainers.core.labels import LABEL_SESSION_ID, SESSION_ID

from integration.docker.images import docker, has_engine, make_pulsar, make_sidecar
from integration.kafka_clients import QUIET, create, produce, read
from integration.patience import LONG
from kafka_sidecar.testing import PulsarKafkaContainer
from kafka_sidecar.testing.container import NotStarted

NO_ENGINE = (
    "needs a Docker engine: `integration/docker/engine.sh install` and `integration/docker/engine.sh start`, "
    "as root on Debian"
)


@dataclass(frozen=True)
class Images:
    sidecar: str
    pulsar: str

    def container(self, **settings: Any) -> PulsarKafkaContainer:
        return PulsarKafkaContainer(self.sidecar, self.pulsar, **settings)


@pytest.fixture(scope="module")
def images() -> Images:
    if not has_engine():
        if os.environ.get("CI"):
            pytest.fail(NO_ENGINE)
        pytest.skip(NO_ENGINE)
    # Its id: another checkout may give the name to an image of its own meanwhile.
    return Images(docker("image", "inspect", "--format", "{{.Id}}", make_sidecar()), make_pulsar())


@pytest.fixture(scope="module")
def kafka(images: Images) -> Iterator[PulsarKafkaContainer]:
    with images.container() as container:
        yield container


@pytest.fixture
def kept_logs(kafka: PulsarKafkaContainer, tmp_path: Path) -> Iterator[None]:
    """Containers take their logs with them. These stay, and a test that failed names them."""
    yield
    for container in docker("ps", "--all", "--quiet", "--filter", f"network={kafka.network.id}").split():
        log = tmp_path / f"{container}.log"
        with log.open("wb") as out:
            subprocess.run(["docker", "logs", container], stdout=out, stderr=subprocess.STDOUT, check=True)
        print(f"the log of a container: {log}")
    print(kafka.logs())


def test_kafka_and_pulsar_clients_use_the_same_topic(kafka: PulsarKafkaContainer, topic: str) -> None:
    create(kafka.get_bootstrap_server(), topic, 1, {"entry.format": "pulsar"})
    produce(kafka.get_bootstrap_server(), topic, [b"from kafka"])
    client = pulsar.Client(kafka.get_pulsar_url(), logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    reader = client.create_reader(f"persistent://public/default/{topic}-partition-0", pulsar.MessageId.earliest)
    assert reader.read_next(20_000).data() == b"from kafka"
    producer = client.create_producer(f"persistent://public/default/{topic}-partition-0")
    producer.send(b"from pulsar")
    client.close()
    found = read(kafka.get_bootstrap_server(), topic, 2)
    assert [record.value for record in found] == [b"from kafka", b"from pulsar"]
    assert "read back after" in kafka.run("try", "--bootstrap-server", kafka.get_internal_bootstrap_server())
    assert "Pulsar is ready for Kafka clients." in kafka.run("doctor")


@pytest.mark.usefixtures("kept_logs")
def test_a_group_goes_on_when_the_broker_was_killed(kafka: PulsarKafkaContainer, topic: str) -> None:
    servers = {"bootstrap.servers": kafka.get_bootstrap_server(), **QUIET}
    create(kafka.get_bootstrap_server(), topic, 2)
    consumer = Consumer({**servers, "group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    producer = Producer({**servers, "enable.idempotence": True})
    seen: set[bytes] = set()

    def committed() -> list[int] | None:
        """None while nobody coordinates: the broker is back, and elections take their time."""
        with suppress(KafkaException):
            return [one.offset for one in consumer.committed([TopicPartition(topic, index) for index in range(2)], 10)]
        return None

    def read_and_commit(each: int) -> None:
        """Until so many of each partition are committed: a member that had to join again reads some twice."""
        until = time.monotonic() + LONG
        while committed() != [each, each]:
            assert time.monotonic() < until
            while (message := consumer.poll(1)) is not None:
                if message.error() is None:
                    seen.add(message.value() or b"")
            with suppress(KafkaException):  # nothing was read, or the group is joined again
                consumer.commit(asynchronous=False)

    for number in range(200):
        if number == 100:
            assert producer.flush(LONG) == 0
            read_and_commit(50)
            kafka.kill_pulsar()
            kafka.restart_pulsar()
        producer.produce(topic, b"%d" % number, partition=number % 2)
        producer.poll(0.01)
    assert producer.flush(LONG) == 0
    read_and_commit(100)
    consumer.close()
    assert seen == {b"%d" % number for number in range(200)}


def test_a_container_that_does_not_start_says_why(images: Images) -> None:
    with pytest.raises(NotStarted, match=r"kafka\.entry_format is 'parquet': use kafka or pulsar"):
        images.container(kafka__entry_format="parquet").start()
    # Of this process alone: another one's containers may end at any time, and one that was killed leaves its own.
    own = ("--filter", f"ancestor={images.sidecar}", "--filter", f"label={LABEL_SESSION_ID}={SESSION_ID}")
    assert not docker("ps", "--all", "--quiet", *own, "--filter", "status=exited")


def test_the_image_is_of_one_user_without_rights_and_writes_nothing(images: Images) -> None:
    assert docker("image", "inspect", "--format", "{{.Config.User}}", images.sidecar) == "65532:65532"
    limited = (
        "run",
        "--rm",
        "--read-only",
        "--network",
        "none",
        "--cap-drop",
        "ALL",
        "--security-opt",
        "no-new-privileges",
    )
    shown = docker(*limited, images.sidecar, "check-config", "--config", "/etc/kafka-sidecar/default.toml")
    assert 'listen = "0.0.0.0:9092"' in shown
    compiled = "import kafka_sidecar.wire.records as one; print(one.__file__)"
    assert docker(*limited, "--entrypoint", "python3", images.sidecar, "-c", compiled).endswith(".so")
