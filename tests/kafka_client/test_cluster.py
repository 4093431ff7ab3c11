"""How a cluster is reached: what is refused with one sentence, and where secrets come from."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from kafka_sidecar.errors import ConfigError
from kafka_sidecar.kafka_client.client import CanNotConnect, check_reachable, connected
from kafka_sidecar.kafka_client.cluster import Cluster

SASL = {"bootstrap": "a:9093", "security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512", "username": "u"}


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, "say where the cluster is"),
        ({"bootstrap": "broker"}, "write HOST:PORT"),
        ({"bootstrap": 9092}, "write a string"),
        ({"bootstrap": "a:1", "pasword_file": "x"}, "no such setting"),
        ({"bootstrap": "a:1", "password": "x"}, "never itself"),
        ({"bootstrap": "a:1", "security_protocol": "TLS"}, "one of PLAINTEXT"),
        ({**SASL, "sasl_mechanism": "GSSAPI"}, "one of PLAIN"),
        (SASL, "needs username, and password_file or password_env"),
    ],
)
def test_what_is_wrong_is_said(settings: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        Cluster.of("source", settings)


def test_a_secret_is_read_where_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").write_text("from a file\n")
    cluster = Cluster.of("source", {**SASL, "password_file": str(tmp_path / "secret")})
    options = cluster.options()
    given = options["sasl_plain_password"]
    assert given == "from a file"
    assert isinstance(options["ssl_context"], ssl.SSLContext)
    assert "from a file" not in repr(cluster)
    monkeypatch.setenv("KAFKA_PASSWORD", "from the environment")
    cluster = Cluster.of("source", {**SASL, "password_env": "KAFKA_PASSWORD"})
    given = cluster.options()["sasl_plain_password"]
    assert given == "from the environment"
    monkeypatch.delenv("KAFKA_PASSWORD")
    with pytest.raises(ConfigError, match="no such environment variable"):
        cluster.options()
    with pytest.raises(ConfigError, match="can't be read"):
        Cluster.of("source", {**SASL, "password_file": str(tmp_path / "absent")}).options()


def test_a_plain_cluster_needs_an_address() -> None:
    assert Cluster.of("target", {"bootstrap": "a:1,b:2"}).options() == {
        "bootstrap_servers": "a:1,b:2",
        "security_protocol": "PLAINTEXT",
    }


def test_a_certificate_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    missing = str(tmp_path / "ca.pem")
    with pytest.raises(ConfigError, match=f"ca_file = {missing} can't be read: No such file"):
        Cluster.of("source", {"bootstrap": "a:1", "security_protocol": "SSL", "ca_file": missing}).options()
    with pytest.raises(ConfigError, match=f"certificate_file = {missing}, key_file =  can't be read"):
        Cluster.of("source", {"bootstrap": "a:1", "security_protocol": "SSL", "certificate_file": missing}).options()


async def test_what_can_not_be_connected_to_is_named() -> None:
    with pytest.raises(CanNotConnect, match=r"127\.0\.0\.1:1 can't be connected to: .* speak PLAINTEXT"):
        async with connected(Cluster(bootstrap="127.0.0.1:1"), "test"):
            pass


def test_a_command_says_that_an_address_is_wrong_before_it_begins() -> None:
    with pytest.raises(ConfigError, match=r"127\.0\.0\.1:1 can't be connected to"):
        check_reachable(Cluster(bootstrap="127.0.0.1:1"))
