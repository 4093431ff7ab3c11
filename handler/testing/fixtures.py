"""pytest fixtures: `pytest_plugins = ["handler.testing.fixtures"]` in conftest.py."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from handler.testing.container import PulsarKafkaContainer


@pytest.fixture(scope="session")
def pulsar_kafka() -> Iterator[PulsarKafkaContainer]:
    """Pulsar and the sidecar, once for all tests of a run; what a test needs of its own is a topic."""
    with PulsarKafkaContainer() as container:
        yield container


@pytest.fixture
def kafka_bootstrap_server(pulsar_kafka: PulsarKafkaContainer, request: pytest.FixtureRequest) -> Iterator[str]:
    """Where Kafka clients begin. The logs are printed with a test that fails."""
    failed = request.session.testsfailed
    yield pulsar_kafka.get_bootstrap_server()
    if request.session.testsfailed > failed:
        print(pulsar_kafka.logs())
