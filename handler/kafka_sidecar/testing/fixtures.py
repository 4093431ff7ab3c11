"""pytest fixtures: `pytest_plugins = ["kafka_sidecar.testing.fixtures"]` in conftest.py."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from kafka_sidecar.testing.container import PulsarKafkaContainer


@pytest.fixture(scope="session")
def pulsar_kafka() -> Iterator[PulsarKafkaContainer]:
    """Pulsar and the sidecar, once for all tests of a run; what a test needs of its own is a topic."""
    with PulsarKafkaContainer() as container:
        yield container


@pytest.fixture
def kafka_bootstrap_server(pulsar_kafka: PulsarKafkaContainer) -> str:
    """Where Kafka clients begin."""
    return pulsar_kafka.get_bootstrap_server()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The ends of both logs stand with a test that fails."""
    report = yield
    container = getattr(item, "funcargs", {}).get("pulsar_kafka")
    if report.when != "teardown" and report.failed and isinstance(container, PulsarKafkaContainer):
        report.sections.append(("Pulsar and the sidecar", _logs(container)))
    return report


def _logs(container: PulsarKafkaContainer) -> str:
    try:
        return container.logs()
    except Exception as error:  # an exception in a pytest hook would end the whole test run
        return f"the logs can't be had: {error}"
