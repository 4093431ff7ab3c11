"""Defaults, file, environment; and one clear sentence for every mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from handler.cli import main
from handler.config import load
from handler.errors import ConfigError


def test_the_environment_goes_before_the_file_and_the_file_before_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('[kafka]\nlisten = "127.0.0.1:1"\nnode_id = 5\n')
    config = load(file, {"KAFKA_SIDECAR_KAFKA__LISTEN": "127.0.0.1:2", "KAFKA_SIDECAR_KAFKA__AUTO_CREATE_TOPICS": "true"})
    assert config.kafka.listen_address == ("127.0.0.1", 2)
    assert (config.kafka.node_id, config.kafka.auto_create_topics, config.kafka.default_partitions) == (5, True, 4)


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"KAFKA_SIDECAR_KAFKA__LISTEN": "nowhere"}, "kafka.listen is 'nowhere': write host:port"),
        ({"KAFKA_SIDECAR_KAFKA__LISTNE": "x"}, "kafka.listne is not a setting"),
        ({"KAFKA_SIDECAR_KAFKAA__LISTEN": "x"}, "[kafkaa] is not a section"),
        ({"KAFKA_SIDECAR_LISTEN": "x"}, "names no setting"),
        ({"KAFKA_SIDECAR_KAFKA__NODE_ID": "one"}, "is not a whole number"),
        ({"KAFKA_SIDECAR_KAFKA__NAMESPACE": "public"}, "write tenant/namespace"),
        ({"KAFKA_SIDECAR_PULSAR__URL": "http://x"}, "it begins with pulsar://"),
        ({"KAFKA_SIDECAR_PULSAR__URL": "pulsar+ssl://x"}, "not supported yet"),
        ({"KAFKA_SIDECAR_LIMITS__CACHE_BYTES": "0"}, "must be more than 0"),
    ],
)
def test_a_mistake_is_one_sentence(environment: dict[str, str], told: str) -> None:
    with pytest.raises(ConfigError, match=r".") as raised:
        load(None, environment)
    assert told in str(raised.value)


def test_check_config_prints_what_it_can_read_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-config"]) == 0
    printed = tmp_path / "printed.toml"
    printed.write_text(capsys.readouterr().out)
    assert load(printed, {}) == load(None, {})
