"""Configuration: defaults, then a TOML file, then the environment. Every mistake is one clear sentence.

[pulsar]            KAFKA_SIDECAR_PULSAR__URL=pulsar://broker:6650
url = "pulsar://…"
"""

from __future__ import annotations

import difflib
import math
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, get_type_hints
from urllib.parse import urlsplit

from kafka_sidecar.errors import ConfigError
from kafka_sidecar.model.sidecar import Endpoint, endpoint_of

ANY_HOST: Final = ("0.0.0.0", "::")  # noqa: S104 - looked for, not listened on
ENV_PREFIX: Final = "KAFKA_SIDECAR_"
# The file with settings, where --config names none: a command in a container gets those of its sidecar.
ENV_FILE: Final = ENV_PREFIX + "CONFIG"
CONFIG_HELP: Final = f"a TOML file with settings (default: what {ENV_FILE} names)"


def setting(default: Any, text: str, choices: tuple[str, ...] = ()) -> Any:
    """`choices` are the only values that it takes; none for any."""
    return field(default=default, metadata={"text": text, "choices": choices})


LARGEST_NODE_ID: Final = 2**31 - 1
# partition/log/formats has them.
ENTRY_FORMATS: Final = ("kafka", "pulsar")
MIGRATIONS: Final = ("bidirectional", "upgrade", "downgrade", "disabled")


@dataclass(frozen=True, slots=True, kw_only=True)
class PulsarConfig:
    url: str = setting("pulsar://127.0.0.1:6650", "Pulsar service URL; several brokers separated by commas.")
    admin_url: str = setting("http://127.0.0.1:8080", "Pulsar admin URL; several separated by commas.")
    listener_name: str = setting("", "Advertised listener to ask the brokers for; empty for their default.")


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaConfig:
    listen: str = setting("127.0.0.1:9092", "Address and port for Kafka clients.")
    advertised: str = setting(
        "",
        "host:port that clients get, by which it is a member of the fleet; empty for the address by which each client "
        "came.",
    )
    external_listen: str = setting(
        "", "A second address and port, for clients that reach the sidecars at other addresses; empty for none."
    )
    external_advertised: str = setting(
        "",
        "host:port that clients of external_listen get. Several separated by commas: a sidecar takes the one at its "
        "node_id, counted from 0.",
    )
    node_id: int = setting(0, "The node id of this sidecar: one that no other of its fleet has.")
    node_id_base: int = setting(
        0, "Added to node_id, for a second set of sidecars of the same fleet that are counted from 0 too."
    )
    namespace: str = setting("public/default", "Pulsar tenant/namespace of topics without one in their name.")
    listed_namespaces: str = setting(
        "",
        "Further tenant/namespaces, separated by commas, whose topics are listed, by their full names; all can be used "
        "by full name.",
    )
    auto_create_topics: bool = setting(False, "Make missing topics when a client asks for their metadata.")
    default_partitions: int = setting(4, "Partitions of a topic made without a number.")
    entry_format: str = setting(
        "kafka",
        "How records are stored in topics that do not say so themselves (entry.format): kafka as their producers sent "
        "them, pulsar as messages that native Pulsar clients read.",
        choices=ENTRY_FORMATS,
    )
    replicated_count: bool = setting(
        False,
        "Entries of format kafka of replicated topics say how many records they hold, also where native consumers have "
        "a durable subscription: the other cluster needs it, and those consumers pass over such entries.",
    )
    rack: str = setting("", "Rack or zone of this sidecar: consumers whose client.rack it is read from it (KIP-392).")
    fetch_max_bytes: int = setting(16 * 1024 * 1024, "Bytes in one fetch answer, whatever the client asks for.")

    @property
    def further_namespaces(self) -> list[str]:
        return [one.strip() for one in self.listed_namespaces.split(",") if one.strip()]

    @property
    def listen_address(self) -> Endpoint:
        return _endpoint("kafka.listen", self.listen)

    @property
    def advertised_address(self) -> Endpoint | None:
        return _endpoint("kafka.advertised", self.advertised) if self.advertised else None

    @property
    def external_listen_address(self) -> Endpoint | None:
        return _endpoint("kafka.external_listen", self.external_listen) if self.external_listen else None

    @property
    def own_node_id(self) -> int:
        """As clients and the other sidecars get it."""
        return self.node_id_base + self.node_id

    @property
    def own_external_advertised(self) -> str:
        """Of a list for the whole fleet the address of this one."""
        addresses = [one.strip() for one in self.external_advertised.split(",")]
        if len(addresses) == 1:
            return addresses[0]
        if self.node_id >= len(addresses):
            raise ConfigError(
                f"kafka.external_advertised has {len(addresses)} addresses, and none for node id {self.node_id}: "
                "write one for each node id, from 0 on"
            )
        return addresses[self.node_id]

    @property
    def external_address(self) -> Endpoint | None:
        return (
            _endpoint("kafka.external_advertised", self.own_external_advertised) if self.external_advertised else None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsConfig:
    namespace: str = setting("public/__kafka", "Pulsar tenant/namespace of __consumer_offsets.")
    offsets_partitions: int = setting(
        8, "Partitions of __consumer_offsets when it is made; what is there keeps its count."
    )
    offsets_retention_minutes: int = setting(10_080, "How long an empty group keeps its offsets.")
    internal_retention_minutes: int = setting(
        1_440,
        "How long Pulsar keeps what was written to internal topics, after it is compacted. What counts stays for good. "
        "-1 keeps all.",
    )
    offset_commit_timeout_ms: int = setting(
        5_000, "How long a commit waits to be stored; then the client has to ask again."
    )
    offset_metadata_bytes: int = setting(4_096, "Largest metadata of a committed offset.")
    initial_rebalance_delay_ms: int = setting(3_000, "How long a new group waits for more members.")
    min_session_timeout_ms: int = setting(6_000, "Shortest session timeout a member may ask for.")
    max_session_timeout_ms: int = setting(1_800_000, "Longest session timeout a member may ask for.")
    max_size: int = setting(2**31 - 1, "Most members of a group.")
    consumer_session_timeout_ms: int = setting(45_000, "How long a member of the consumer protocol may be silent.")
    consumer_heartbeat_interval_ms: int = setting(
        5_000, "How often members of the consumer protocol are asked to send heartbeats."
    )
    migration: str = setting(
        "bidirectional",
        "Which groups with members change their protocol: bidirectional, upgrade (classic to consumer), downgrade or "
        "disabled.",
        choices=MIGRATIONS,
    )
    coordinate: bool = setting(
        True,
        "Whether this sidecar coordinates groups and transactions. false for one that the others can't reach at "
        "control.advertised: what its clients ask is passed on to those that do.",
    )
    mirror: str = setting(
        "", "Groups whose commits move a Pulsar subscription of the same name: names or patterns, separated by commas."
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionsConfig:
    state_partitions: int = setting(
        8, "Partitions of __transaction_state when it is made; what is there keeps its count."
    )
    max_timeout_ms: int = setting(900_000, "Longest transaction.timeout.ms that a producer may ask for.")
    id_expiration_ms: int = setting(604_800_000, "How long a transactional id that nobody uses is remembered.")
    producer_id_expiration_ms: int = setting(
        86_400_000,
        "How long a producer that writes nothing is remembered, and its retries are recognised. Kafka's "
        "producer.id.expiration.ms.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlConfig:
    listen: str = setting(
        "127.0.0.1:0", "Address and port for other sidecars, and for gRPC health; port 0 for any that is free."
    )
    advertised: str = setting("", "host:port at which other sidecars reach it; empty for the address it listens on.")

    @property
    def listen_address(self) -> Endpoint:
        return _endpoint("control.listen", self.listen)

    def advertised_at(self, port: int) -> str:
        """The address for other sidecars; `port` is the one that it listens on."""
        advertised = (
            _endpoint("control.advertised", self.advertised)
            if self.advertised
            else self.listen_address._replace(port=port)
        )
        return str(advertised)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsConfig:
    max_request_bytes: int = setting(100 * 1024 * 1024, "Largest request; a larger one closes its connection.")
    request_budget_bytes: int = setting(128 * 1024 * 1024, "Bytes of all requests that have no answer yet.")
    cache_bytes: int = setting(
        64 * 1024 * 1024,
        "Bytes of recent batches kept for consumers and of what readers of old data have read ahead, all together.",
    )
    read_ahead_bytes: int = setting(4 * 1024 * 1024, "Bytes a reader of old data runs ahead of its consumer, at most.")
    answer_bytes: int = setting(64 * 1024 * 1024, "Bytes of all fetch answers that clients have not taken yet.")
    max_connections: int = setting(10_000, "Kafka connections at once.")
    connection_idle_seconds: float = setting(600.0, "Close a Kafka connection that is silent for so long.")
    pulsar_idle_seconds: float = setting(60.0, "Close a Pulsar producer or reader nobody uses for so long.")
    handover_seconds: float = setting(
        5.0, "On SIGTERM, how long clients may take to go to the other sidecars; less where none comes any more."
    )
    drain_seconds: float = setting(20.0, "After that, how long requests in flight may take.")
    batches_per_entry: int = setting(
        100,
        "Batches of several producers that may share a Pulsar entry when many wait for one partition. 1 while sidecars "
        "of 0.1 read or write the same topics: they judge such an entry as a whole.",
    )
    replay_entries: int = setting(
        2_000,
        "Entries of a partition read back before its first append of an idempotent producer, where no snapshot of its "
        "producers is stored: to recognise retries.",
    )
    replay_bytes: int = setting(16 * 1024 * 1024, "The same in bytes.")
    producer_state_bytes: int = setting(
        64 * 1024 * 1024,
        "Bytes for what is known of producers, in all partitions in use: their retries are recognised by it. When it "
        "is full, a producer that is new to a partition gets NOT_ENOUGH_REPLICAS, and tries again.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryConfig:
    metrics_listen: str = setting("", "Address and port of Prometheus metrics; empty for none.")
    log_level: str = setting("INFO", "DEBUG, INFO, WARNING or ERROR.", choices=("DEBUG", "INFO", "WARNING", "ERROR"))
    log_format: str = setting("text", "text or json.", choices=("text", "json"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    pulsar: PulsarConfig = PulsarConfig()
    kafka: KafkaConfig = KafkaConfig()
    groups: GroupsConfig = GroupsConfig()
    transactions: TransactionsConfig = TransactionsConfig()
    control: ControlConfig = ControlConfig()
    limits: LimitsConfig = LimitsConfig()
    telemetry: TelemetryConfig = TelemetryConfig()


def _endpoint(name: str, text: str) -> Endpoint:
    found = endpoint_of(text)
    if found is None:
        raise ConfigError(f"{name} is {text!r}: write host:port, as in 127.0.0.1:9092")
    if found.port > 65535:
        raise ConfigError(f"{name} is {text!r}: ports go to 65535")
    return found._replace(host=found.host or "0.0.0.0")  # noqa: S104 - what an empty host means everywhere


def load(path: Path | None, environment: Mapping[str, str] = os.environ) -> Config:
    """The effective configuration, checked."""
    given: dict[str, Any] = {}
    if path is None and (named := environment.get(ENV_FILE)):
        path = Path(named)
    if path is not None:
        try:
            given = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"the configuration file {path} can't be read: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"the configuration file {path} is not TOML: {error}") from error
    _merge_environment(given, environment)
    config = Config()
    sections = {section.name: section for section in fields(Config)}
    for name, values in given.items():
        if name not in sections:
            what = f"[{name}]" if isinstance(values, dict) else f"{name}, outside of any section,"
            raise ConfigError(f"{what} is not known: there are the sections {', '.join(sections)}")
        if not isinstance(values, dict):
            raise ConfigError(f"{name} must be a section: write [{name}] and its settings below it")
        config = replace(config, **{name: _section(name, getattr(config, name), values)})
    check(config)
    return config


# Kubernetes tells pods so of each Service in their namespace (service links); of one named kafka-sidecar they look like
# settings.
_SERVICE_LINK: Final = re.compile(
    r"(.*_)?(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"
)


def _merge_environment(given: dict[str, Any], environment: Mapping[str, str]) -> None:
    for variable, value in environment.items():
        if variable == ENV_FILE:
            continue
        if variable.startswith(ENV_PREFIX) and (
            "__" in variable or not _SERVICE_LINK.fullmatch(variable.removeprefix(ENV_PREFIX))
        ):
            section, split, name = variable.removeprefix(ENV_PREFIX).lower().partition("__")
            if not split:
                raise ConfigError(f"{variable} names no setting: write {ENV_PREFIX}SECTION__SETTING")
            values = given.setdefault(section, {})
            if isinstance(values, dict):  # other types are reported with the file's other mistakes
                values[name] = value


def _section(section: str, defaults: Any, values: dict[str, Any]) -> Any:
    types = get_type_hints(type(defaults))
    known = [item.name for item in fields(defaults)]
    for name in values:
        if name not in known:
            raise ConfigError(_unknown(section, name, known))
    config = replace(
        defaults, **{name: _cast(f"{section}.{name}", value, types[name]) for name, value in values.items()}
    )
    for item in fields(config):
        value, choices = getattr(config, item.name), item.metadata["choices"]
        if choices and value not in choices:
            raise ConfigError(f"{section}.{item.name} is {value!r}: use {', '.join(choices[:-1])} or {choices[-1]}")
    return config


def _unknown(section: str, name: str, known: list[str]) -> str:
    alike = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {section}.{alike[0]}?" if alike else f"there are {', '.join(known)}"
    return f"{section}.{name} is not a setting: {hint}"


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
        raise ConfigError(f"{name} is {value!r}, which is not {_KINDS[kind]}") from None
    if type(value) is not kind:
        raise ConfigError(f"{name} is {value!r}, which is not {_KINDS[kind]}")
    return value


_KINDS: Final = {bool: "true or false", int: "a whole number", float: "a number", str: "text in quotes"}


def check(config: Config) -> None:
    """Rules that the types of the settings can't express."""
    if "pulsar+ssl://" in config.pulsar.url:
        raise ConfigError("pulsar.url is a TLS address, which is not supported yet: use pulsar://")
    for place, url in enumerate(config.pulsar.url.split(",")):
        _check_url("pulsar.url", url, ("pulsar",), scheme_needed=place == 0)
    for url in config.pulsar.admin_url.split(","):
        _check_url("pulsar.admin_url", url, ("http", "https"), scheme_needed=True)
    _ = config.kafka.listen_address
    advertised = config.kafka.advertised_address
    if advertised is not None and not _can_be_connected_to(*advertised):
        raise ConfigError(
            f"kafka.advertised is {config.kafka.advertised!r}: clients need a host and a port, as in kafka.example:9092"
        )
    _check_external(config.kafka)
    named = [("kafka.namespace", config.kafka.namespace), ("groups.namespace", config.groups.namespace)]
    for setting_name, given in named + [("kafka.listed_namespaces", one) for one in config.kafka.further_namespaces]:
        if not re.fullmatch(r"[a-zA-Z0-9_.=:-]+/[a-zA-Z0-9_.=:-]+", given):
            raise ConfigError(f"{setting_name} has {given!r}: write tenant/namespace")
    for name, lowest in (("default_partitions", 1), ("fetch_max_bytes", 1), ("node_id", 0), ("node_id_base", 0)):
        if getattr(config.kafka, name) < lowest:
            raise ConfigError(f"kafka.{name} must be {lowest} or more")
    if config.kafka.own_node_id > LARGEST_NODE_ID:
        raise ConfigError(
            f"kafka.node_id_base and kafka.node_id make {config.kafka.own_node_id}: node ids go to {LARGEST_NODE_ID}"
        )
    _check_control(config)
    _check_groups(config.groups)
    if advertised is not None and not config.groups.coordinate:
        raise ConfigError(
            "groups.coordinate is false and kafka.advertised is set: sidecars of a fleet coordinate, so unset one of "
            "them"
        )
    if config.telemetry.metrics_listen:
        _endpoint("telemetry.metrics_listen", config.telemetry.metrics_listen)
    if config.transactions.producer_id_expiration_ms < 1:
        raise ConfigError("transactions.producer_id_expiration_ms must be 1 or more")
    for item in fields(config.limits):
        if not 0 < getattr(config.limits, item.name) < math.inf:
            raise ConfigError(f"limits.{item.name} must be more than 0, and a number")


def _can_be_connected_to(host: str, port: int) -> bool:
    """Whether somebody else can connect to it."""
    return host not in ANY_HOST and port > 0


def _check_control(config: Config) -> None:
    host, port = config.control.listen_address
    if port and (host, port) == config.kafka.listen_address:
        raise ConfigError(
            f"control.listen and kafka.listen are both {config.control.listen}: each needs a port of its own"
        )
    if config.control.advertised:
        if not _can_be_connected_to(*_endpoint("control.advertised", config.control.advertised)):
            raise ConfigError(
                f"control.advertised is {config.control.advertised!r}: other sidecars need a host and a port"
            )
    elif host in ANY_HOST:
        raise ConfigError(
            f"control.listen is {config.control.listen!r}, which names no address for other sidecars: "
            "set control.advertised to host:port, the pod's address say"
        )


def _check_external(config: KafkaConfig) -> None:
    listen, external = config.external_listen_address, config.external_address
    if listen is None and external is not None:
        raise ConfigError("kafka.external_advertised is set and kafka.external_listen is not: set both, or none")
    if listen is not None and (external is None or not _can_be_connected_to(*external)):
        raise ConfigError(
            f"kafka.external_listen is set, and kafka.external_advertised is {config.own_external_advertised!r}: "
            "clients need a host and a port, as in kafka.example:9094"
        )


# Of all others 1.
LEAST_OF_GROUPS: Final = {"initial_rebalance_delay_ms": 0, "offset_metadata_bytes": 0, "internal_retention_minutes": -1}


def _check_groups(config: GroupsConfig) -> None:
    for item in fields(config):
        value = getattr(config, item.name)
        lowest = LEAST_OF_GROUPS.get(item.name, 1)
        if type(value) is int and value < lowest:
            raise ConfigError(f"groups.{item.name} must be {lowest} or more")
    if config.offset_metadata_bytes > 32_767:
        raise ConfigError(
            "groups.offset_metadata_bytes must be 32767 or less: the records of offsets have no room for more"
        )
    for pattern in config.mirror.split(","):
        if pattern.count("[") != pattern.count("]"):
            raise ConfigError(f"groups.mirror has {pattern.strip()!r}: a [ needs its ], as in orders-[abc]")
    if config.consumer_heartbeat_interval_ms >= config.consumer_session_timeout_ms:
        raise ConfigError(
            "groups.consumer_heartbeat_interval_ms is not less than groups.consumer_session_timeout_ms: members would "
            "expire"
        )
    if config.min_session_timeout_ms > config.max_session_timeout_ms:
        raise ConfigError(
            "groups.min_session_timeout_ms is more than groups.max_session_timeout_ms: make one of them fit"
        )


def _check_url(name: str, url: str, schemes: tuple[str, ...], *, scheme_needed: bool) -> None:
    how = f"write {schemes[0]}://host:port, several separated by commas"
    scheme, separator, rest = url.partition("://")
    if not separator:
        rest = url
    if (scheme_needed or separator) and scheme not in schemes:
        raise ConfigError(f"{name} has {url!r}: it begins with {' or '.join(f'{scheme}://' for scheme in schemes)}")
    try:
        parts = urlsplit(f"x://{rest}")
        known = parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        known = None
    if not known or parts.path.strip("/") or parts.query:
        raise ConfigError(f"{name} has {url!r}: {how}")


def metrics_address(config: Config) -> Endpoint | None:
    return (
        _endpoint("telemetry.metrics_listen", config.telemetry.metrics_listen)
        if config.telemetry.metrics_listen
        else None
    )
