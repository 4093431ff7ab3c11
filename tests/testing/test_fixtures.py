"""The pytest plugin of `kafka_sidecar.testing`, with a container that is not started."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

CONFTEST = """
import pytest
from kafka_sidecar.testing import PulsarKafkaContainer

pytest_plugins = ["kafka_sidecar.testing.fixtures"]

class Container(PulsarKafkaContainer):
    def get_bootstrap_server(self):
        return "localhost:9092"

    def logs(self):
        return "what both have logged"

@pytest.fixture(scope="session")
def pulsar_kafka():
    yield Container()
"""


@pytest.mark.parametrize("fixture", ["pulsar_kafka", "kafka_bootstrap_server"])
def test_the_logs_stand_with_a_test_that_fails(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, fixture: str
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "handler"))
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(f"def test_fails({fixture}): assert not {fixture}\ndef test_works({fixture}): assert {fixture}")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    assert result.stdout.str().count("what both have logged") == 1
