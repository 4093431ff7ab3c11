"""The options that several commands have."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from kafka_sidecar.commands.command import add_bootstrap_server, add_config, bootstrap_of, loaded
from kafka_sidecar.config import Config, KafkaConfig
from kafka_sidecar.errors import ConfigError

CONFIG = Config(kafka=KafkaConfig(listen="127.0.0.1:19092"))


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_config(parser)
    add_bootstrap_server(parser)
    return parser.parse_args(arguments)


def test_a_sidecar_is_found_where_it_listens_unless_another_is_given() -> None:
    assert bootstrap_of(CONFIG, parsed()) == "127.0.0.1:19092"
    assert bootstrap_of(CONFIG, parsed("--bootstrap-server", "a:1,b:2")) == "a:1,b:2"


@pytest.mark.parametrize("given", ["pod", "pod:", ":9092", "a:1,b"])
def test_an_address_that_is_none_is_refused(given: str) -> None:
    with pytest.raises(ConfigError, match=f"--bootstrap-server {given}: write HOST:PORT"):
        bootstrap_of(CONFIG, parsed("--bootstrap-server", given))


def test_the_settings_are_those_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "sidecar.toml"
    file.write_text('[kafka]\nlisten = "127.0.0.1:7"\n')
    assert loaded(parsed("--config", str(file))).kafka.listen == "127.0.0.1:7"
