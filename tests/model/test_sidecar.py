"""Where a process is reached."""

from __future__ import annotations

import pytest

from kafka_sidecar.model.sidecar import Endpoint, endpoint_of


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("kafka.example:9092", Endpoint("kafka.example", 9092)),
        (" kafka.example:9092 ", Endpoint("kafka.example", 9092)),
        ("[::1]:9092", Endpoint("::1", 9092)),
        (":9092", Endpoint("", 9092)),
    ],
)
def test_a_host_and_a_port(text: str, endpoint: Endpoint) -> None:
    assert endpoint_of(text) == endpoint


@pytest.mark.parametrize(
    "text", ["", "kafka.example", "9092", "kafka.example:", "kafka.example:http", "kafka.example:-1", "a:²"]
)
def test_anything_else_is_none(text: str) -> None:
    assert endpoint_of(text) is None


@pytest.mark.parametrize("text", ["kafka.example:9092", "[::1]:9092", "10.0.0.1:1"])
def test_it_is_written_as_it_is_read(text: str) -> None:
    assert str(endpoint_of(text)) == text
