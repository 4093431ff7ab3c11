"""Defaults, file, environment; and one clear sentence for every mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_sidecar.config import Config, load
from kafka_sidecar.errors import ConfigError


def test_a_sidecar_may_leave_groups_to_others() -> None:
    assert not load(None, {"KAFKA_SIDECAR_GROUPS__COORDINATE": "false"}).groups.coordinate


def test_the_environment_goes_before_the_file_and_the_file_before_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('[kafka]\nlisten = "127.0.0.1:1"\nnode_id = 5\n')
    config = load(
        file, {"KAFKA_SIDECAR_KAFKA__LISTEN": "127.0.0.1:2", "KAFKA_SIDECAR_KAFKA__AUTO_CREATE_TOPICS": "true"}
    )
    assert config.kafka.listen_address == ("127.0.0.1", 2)
    assert (config.kafka.node_id, config.kafka.auto_create_topics, config.kafka.default_partitions) == (5, True, 4)


def test_what_kubernetes_tells_of_a_service_of_this_name_is_no_setting() -> None:
    links = {
        "SERVICE_HOST": "10.0.0.1",
        "SERVICE_PORT": "9092",
        "PORT": "tcp://10.0.0.1:9092",
        "PORT_9092_TCP": "tcp://10.0.0.1:9092",
    }
    links |= {"PORT_9092_TCP_ADDR": "10.0.0.1", "SERVICE_PORT_KAFKA": "9092", "NODES_SERVICE_HOST": "10.0.0.2"}
    assert load(None, {f"KAFKA_SIDECAR_{name}": value for name, value in links.items()}) == Config()


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"KAFKA_SIDECAR_KAFKA__LISTEN": "nowhere"}, "kafka.listen is 'nowhere': write host:port"),
        ({"KAFKA_SIDECAR_KAFKA__LISTNE": "x"}, "kafka.listne is not a setting"),
        ({"KAFKA_SIDECAR_KAFKAA__LISTEN": "x"}, "[kafkaa] is not known: there are the sections pulsar, kafka"),
        ({"KAFKA_SIDECAR_KAFKA__NODE_ID": "-1"}, "kafka.node_id must be 0 or more"),
        ({"KAFKA_SIDECAR_KAFKA__NODE_ID_BASE": "-1"}, "kafka.node_id_base must be 0 or more"),
        (
            {"KAFKA_SIDECAR_KAFKA__NODE_ID": "1", "KAFKA_SIDECAR_KAFKA__NODE_ID_BASE": "2147483647"},
            "kafka.node_id_base and kafka.node_id make 2147483648: node ids go to 2147483647",
        ),
        (
            {"KAFKA_SIDECAR_KAFKA__ADVERTISED": "kafka.example:9092", "KAFKA_SIDECAR_GROUPS__COORDINATE": "false"},
            "groups.coordinate is false and kafka.advertised is set: sidecars of a fleet coordinate",
        ),
        ({"KAFKA_SIDECAR_KAFKA__ADVERTISED": ":9092"}, "clients need a host and a port"),
        (
            {"KAFKA_SIDECAR_KAFKA__EXTERNAL_LISTEN": ":9094"},
            "kafka.external_advertised is '': clients need a host and a port",
        ),
        (
            {"KAFKA_SIDECAR_KAFKA__EXTERNAL_ADVERTISED": "kafka.example:9094"},
            "kafka.external_listen is not: set both, or none",
        ),
        (
            {
                "KAFKA_SIDECAR_KAFKA__EXTERNAL_LISTEN": ":9094",
                "KAFKA_SIDECAR_KAFKA__EXTERNAL_ADVERTISED": "a:1, b:2",
                "KAFKA_SIDECAR_KAFKA__NODE_ID": "2",
            },
            "has 2 addresses, and none for node id 2",
        ),
        ({"KAFKA_SIDECAR_KAFKA__NAMESPACE": "pub lic/default"}, "write tenant/namespace"),
        ({"KAFKA_SIDECAR_PULSAR__URL": ""}, "it begins with pulsar://"),
        ({"KAFKA_SIDECAR_PULSAR__URL": "pulsar://x:abc"}, "write pulsar://host:port"),
        ({"KAFKA_SIDECAR_PULSAR__ADMIN_URL": "http://x:abc"}, "write http://host:port"),
        ({"KAFKA_SIDECAR_PULSAR__ADMIN_URL": "http://x:8080/admin/v2"}, "write http://host:port"),
        ({"KAFKA_SIDECAR_PULSAR__ADMIN_URL": "http://x:8080,y:8080"}, "it begins with http:// or https://"),
        ({"KAFKA_SIDECAR_LIMITS__DRAIN_SECONDS": "nan"}, "limits.drain_seconds must be more than 0, and a number"),
        ({"KAFKA_SIDECAR_LISTEN": "x"}, "names no setting"),
        ({"KAFKA_SIDECAR_KAFKA__NODE_ID": "one"}, "is not a whole number"),
        ({"KAFKA_SIDECAR_KAFKA__NAMESPACE": "public"}, "write tenant/namespace"),
        ({"KAFKA_SIDECAR_PULSAR__URL": "http://x"}, "it begins with pulsar://"),
        ({"KAFKA_SIDECAR_PULSAR__URL": "pulsar+ssl://x"}, "not supported yet"),
        ({"KAFKA_SIDECAR_LIMITS__CACHE_BYTES": "0"}, "must be more than 0"),
        ({"KAFKA_SIDECAR_GROUPS__NAMESPACE": "nonsense"}, "groups.namespace has 'nonsense': write tenant/namespace"),
        ({"KAFKA_SIDECAR_GROUPS__OFFSET_METADATA_BYTES": "-1"}, "groups.offset_metadata_bytes must be 0 or more"),
        ({"KAFKA_SIDECAR_GROUPS__OFFSET_METADATA_BYTES": "40000"}, "must be 32767 or less"),
        ({"KAFKA_SIDECAR_GROUPS__MIN_SESSION_TIMEOUT_MS": "9000000"}, "is more than groups.max_session_timeout_ms"),
        ({"KAFKA_SIDECAR_GROUPS__MIRROR": "a, orders-[x"}, "groups.mirror has 'orders-[x': a [ needs its ]"),
        (
            {"KAFKA_SIDECAR_KAFKA__LISTED_NAMESPACES": "a/b, c"},
            "kafka.listed_namespaces has 'c': write tenant/namespace",
        ),
        (
            {"KAFKA_SIDECAR_GROUPS__MIGRATION": "both"},
            "groups.migration is 'both': use bidirectional, upgrade, downgrade or disabled",
        ),
        (
            {"KAFKA_SIDECAR_GROUPS__CONSUMER_HEARTBEAT_INTERVAL_MS": "50000"},
            "is not less than groups.consumer_session_timeout_ms",
        ),
        ({"KAFKA_SIDECAR_CONTROL__LISTEN": "0.0.0.0:9094"}, "set control.advertised to host:port"),
        ({"KAFKA_SIDECAR_CONTROL__ADVERTISED": "0.0.0.0:77"}, "other sidecars need a host and a port"),
        ({"KAFKA_SIDECAR_KAFKA__ADVERTISED": "0.0.0.0:9092"}, "clients need a host and a port"),
        ({"KAFKA_SIDECAR_KAFKA__LISTEN": "127.0.0.1:99999"}, "ports go to 65535"),
        ({"KAFKA_SIDECAR_KAFKA__LISTN": "x:1"}, "kafka.listn is not a setting: did you mean kafka.listen?"),
        ({"KAFKA_SIDECAR_KAFKA__QUUX": "1"}, "kafka.quux is not a setting: there are listen, "),
        (
            {"KAFKA_SIDECAR_CONTROL__LISTEN": "127.0.0.1:9092"},
            "control.listen and kafka.listen are both 127.0.0.1:9092",
        ),
    ],
)
def test_a_mistake_is_one_sentence(environment: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=r".") as raised:
        load(None, environment)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (b"[kafka]\nlisten = 9092\n", "kafka.listen is 9092, which is not text in quotes"),
        (b"listen = 'x:1'\n", "listen, outside of any section, is not known"),
        (b"kafka = 3\n", "kafka must be a section"),
        (b"\xe9", "is not TOML"),
        (b"[kafka", "is not TOML"),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence(tmp_path: Path, text: bytes, told: str) -> None:
    file = tmp_path / "c.toml"
    file.write_bytes(text)
    with pytest.raises(ConfigError) as raised:
        load(file, {"KAFKA_SIDECAR_KAFKA__NODE_ID": "1"})
    assert told in str(raised.value)


def test_several_brokers_are_separated_by_commas() -> None:
    for url in ("pulsar://a:1,b:2", "pulsar://a:1,pulsar://b:2"):
        load(None, {"KAFKA_SIDECAR_PULSAR__URL": url})


def test_in_a_container_every_command_has_the_settings_of_its_sidecar(tmp_path: Path) -> None:
    file, other = tmp_path / "sidecar.toml", tmp_path / "other.toml"
    file.write_text('[kafka]\nlisten = "127.0.0.1:1"\n')
    other.write_text('[kafka]\nlisten = "127.0.0.1:2"\n')
    environment = {"KAFKA_SIDECAR_CONFIG": str(file)}
    assert load(None, environment).kafka.listen == "127.0.0.1:1"
    assert load(other, environment).kafka.listen == "127.0.0.1:2"
    assert load(None, {**environment, "KAFKA_SIDECAR_KAFKA__LISTEN": "127.0.0.1:3"}).kafka.listen == "127.0.0.1:3"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"CONTROL__LISTEN": "127.0.0.1:0"}, "127.0.0.1:4711"),
        ({"CONTROL__LISTEN": "[::1]:0"}, "[::1]:4711"),
        ({"CONTROL__LISTEN": "0.0.0.0:9095", "CONTROL__ADVERTISED": "10.0.0.7:9095"}, "10.0.0.7:9095"),
        ({"CONTROL__LISTEN": "[::]:9095", "CONTROL__ADVERTISED": "fd00::7:9095"}, "[fd00::7]:9095"),
    ],
)
def test_other_sidecars_are_told_an_address_that_they_can_use(given: dict[str, str], told: str) -> None:
    """Kubernetes writes addresses of IPv6 without brackets."""
    config = load(None, {f"KAFKA_SIDECAR_{name}": value for name, value in given.items()})
    assert config.control.advertised_at(4711 if config.control.listen_address[1] == 0 else 9095) == told
