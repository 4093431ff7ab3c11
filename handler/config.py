"""Configuration: defaults, then a TOML file, then the environment. Every mistake is one clear sentence.

[pulsar]            KAFKA_SIDECAR_PULSAR__URL=pulsar://broker:6650
url = "pulsar://…"
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, get_type_hints

from handler.errors import ConfigError

ENV_PREFIX: Final = "KAFKA_SIDECAR_"


def setting(default: Any, text: str) -> Any:
    return field(default=default, metadata={"text": text})


@dataclass(frozen=True, slots=True, kw_only=True)
class PulsarConfig:
    url: str = setting("pulsar://127.0.0.1:6650", "Pulsar service URL; several brokers separated by commas.")
    admin_url: str = setting("http://127.0.0.1:8080", "Pulsar admin URL; several separated by commas.")
    listener_name: str = setting("", "Advertised listener to ask the brokers for; empty for their default.")


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaConfig:
    listen: str = setting("127.0.0.1:9092", "Address and port for Kafka clients.")
    advertised: str = setting("", "host:port told to clients; empty for the address by which each client came.")
    node_id: int = setting(0, "The node id of this sidecar.")
    namespace: str = setting("public/default", "Pulsar tenant/namespace of topics without one in their name.")
    auto_create_topics: bool = setting(False, "Make missing topics when a client asks for their metadata.")
    default_partitions: int = setting(4, "Partitions of a topic made without a number.")
    fetch_max_bytes: int = setting(16 * 1024 * 1024, "Bytes in one fetch answer, whatever the client asks for.")

    @property
    def listen_address(self) -> tuple[str, int]:
        return _address("kafka.listen", self.listen)

    @property
    def advertised_address(self) -> tuple[str, int] | None:
        return _address("kafka.advertised", self.advertised) if self.advertised else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsConfig:
    max_request_bytes: int = setting(100 * 1024 * 1024, "Largest request; a larger one closes its connection.")
    request_budget_bytes: int = setting(128 * 1024 * 1024, "Bytes of all requests that have no answer yet.")
    cache_bytes: int = setting(64 * 1024 * 1024, "Bytes of recent batches kept for consumers, all partitions together.")
    read_ahead_bytes: int = setting(4 * 1024 * 1024, "Bytes a reader of old data runs ahead of its consumer.")
    max_connections: int = setting(10_000, "Kafka connections at once.")
    connection_idle_seconds: float = setting(600.0, "Close a Kafka connection that is silent for so long.")
    pulsar_idle_seconds: float = setting(60.0, "Close a Pulsar producer or reader nobody uses for so long.")
    drain_seconds: float = setting(20.0, "On SIGTERM, how long requests in work may take.")
    replay_entries: int = setting(2_000, "Entries read back when a partition is opened, to recognise retries.")
    replay_bytes: int = setting(16 * 1024 * 1024, "Bytes read back when a partition is opened.")


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryConfig:
    metrics_listen: str = setting("", "Address and port of Prometheus metrics; empty for none.")
    log_level: str = setting("INFO", "DEBUG, INFO, WARNING or ERROR.")
    log_format: str = setting("text", "text or json.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    pulsar: PulsarConfig = PulsarConfig()
    kafka: KafkaConfig = KafkaConfig()
    limits: LimitsConfig = LimitsConfig()
    telemetry: TelemetryConfig = TelemetryConfig()


def _address(name: str, text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"{name} is {text!r}: write host:port, as in 127.0.0.1:9092")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - what an empty host means everywhere


def load(path: Path | None, environment: Mapping[str, str] = os.environ) -> Config:
    """The effective configuration, checked."""
    given: dict[str, Any] = {}
    if path is not None:
        try:
            given = tomllib.loads(path.read_text())
        except OSError as error:
            raise ConfigError(f"the configuration file {path} can't be read: {error.strerror}") from error
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"the configuration file {path} is not TOML: {error}") from error
    _merge_environment(given, environment)
    config = Config()
    sections = {section.name: section for section in fields(Config)}
    for name, values in given.items():
        if name not in sections:
            raise ConfigError(f"[{name}] is not a section: there are {', '.join(sections)}")
        if not isinstance(values, dict):
            raise ConfigError(f"{name} must be a section: write [{name}] and its settings below it")
        config = replace(config, **{name: _section(name, getattr(config, name), values)})
    check(config)
    return config


def _merge_environment(given: dict[str, Any], environment: Mapping[str, str]) -> None:
    for variable, value in environment.items():
        if variable.startswith(ENV_PREFIX):
            section, split, name = variable.removeprefix(ENV_PREFIX).lower().partition("__")
            if not split:
                raise ConfigError(f"{variable} names no setting: write {ENV_PREFIX}SECTION__SETTING")
            given.setdefault(section, {})[name] = value


def _section(section: str, defaults: Any, values: dict[str, Any]) -> Any:
    types = get_type_hints(type(defaults))
    known = [item.name for item in fields(defaults)]
    for name in values:
        if name not in known:
            raise ConfigError(f"{section}.{name} is not a setting: there are {', '.join(known)}")
    return replace(defaults, **{name: _cast(f"{section}.{name}", value, types[name]) for name, value in values.items()})


def _cast(name: str, value: Any, kind: type) -> Any:
    """A value as its setting's type; text, as the environment has it, is understood."""
    try:
        if kind is bool and isinstance(value, str):
            return {"true": True, "false": False}[value.lower()]
        if kind is int and isinstance(value, str):
            return int(value)
        if kind is float and isinstance(value, (str, int)) and not isinstance(value, bool):
            return float(value)
    except (KeyError, ValueError):
        raise ConfigError(f"{name} is {value!r}, which is not a {_KINDS[kind]}") from None
    if type(value) is not kind:
        raise ConfigError(f"{name} is {value!r}, which is not a {_KINDS[kind]}")
    return value


_KINDS: Final = {bool: "true or false", int: "whole number", float: "number", str: "text"}


def check(config: Config) -> None:
    """What types can't say."""
    for url in config.pulsar.url.split(","):
        if url.startswith("pulsar+ssl://"):
            raise ConfigError("pulsar.url is a TLS address, which is not supported yet: use pulsar://")
        if "://" in url and not url.startswith("pulsar://"):
            raise ConfigError(f"pulsar.url is {url!r}: it begins with pulsar://")
    if not config.pulsar.admin_url.startswith(("http://", "https://")):
        raise ConfigError(f"pulsar.admin_url is {config.pulsar.admin_url!r}: it begins with http:// or https://")
    _ = config.kafka.listen_address
    _ = config.kafka.advertised_address
    if config.kafka.namespace.count("/") != 1 or config.kafka.namespace.strip("/") != config.kafka.namespace:
        raise ConfigError(f"kafka.namespace is {config.kafka.namespace!r}: write tenant/namespace")
    if config.kafka.default_partitions < 1:
        raise ConfigError("kafka.default_partitions must be 1 or more")
    if config.telemetry.log_level not in ("DEBUG", "INFO", "WARNING", "ERROR"):
        raise ConfigError(f"telemetry.log_level is {config.telemetry.log_level!r}: use DEBUG, INFO, WARNING or ERROR")
    if config.telemetry.log_format not in ("text", "json"):
        raise ConfigError(f"telemetry.log_format is {config.telemetry.log_format!r}: use text or json")
    if config.telemetry.metrics_listen:
        _address("telemetry.metrics_listen", config.telemetry.metrics_listen)
    for item in fields(config.limits):
        if getattr(config.limits, item.name) <= 0:
            raise ConfigError(f"limits.{item.name} must be more than 0")


def metrics_address(config: Config) -> tuple[str, int] | None:
    return _address("telemetry.metrics_listen", config.telemetry.metrics_listen) if config.telemetry.metrics_listen else None
