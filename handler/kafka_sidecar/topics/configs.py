"""Kafka's topic configs, and what Pulsar keeps of them. Pure.

    Kafka config                          Pulsar
    retention.ms, retention.bytes         the topic's retention policy: in minutes and MiB, both at once (`retention`)
    max.message.bytes                     the topic's maxMessageSize
    cleanup.policy=compact                retention without limits, and in format pulsar a compaction threshold
    those of `record_configs`             properties of the topic
    the others here                       what holds for every topic; they can be read, and set to what they are

A config that is not here is refused, never ignored. A policy that nobody asked to change is not written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from kafka_sidecar.config import ENTRY_FORMATS
from kafka_sidecar.topics.config_types import Config, ConfigSource, ConfigType, InvalidConfig, Operation, number
from kafka_sidecar.topics.record_configs import (
    CLEANUP_POLICY,
    DEFINITIONS,
    ENTRY_FORMAT,
    MAX_INT,
    is_compacted_only,
    own_value,
    record_configs,
    with_config,
)
from kafka_sidecar.topics.retention import (
    KEEPS_NOTHING,
    LIMITS,
    RETENTION_BYTES,
    RETENTION_MS,
    RETENTION_SET,
    Limits,
    Retention,
    limits_of,
    policy_of,
    said_of,
    with_limits,
)

MAX_MESSAGE_BYTES: Final = "max.message.bytes"
MIN_INSYNC_REPLICAS: Final = "min.insync.replicas"
# Compaction threshold in bytes of a compacted topic: Pulsar compacts again when the part that is not compacted exceeds
# it.
COMPACTION_THRESHOLD: Final = 100 * 1024 * 1024


class Quorums(NamedTuple):
    """Of the bookies that store a topic."""

    ensemble: int = 2
    write: int = 2
    ack: int = 2


# Quorums of a broker whose settings name none.
PULSARS_QUORUMS: Final = Quorums()


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """What Pulsar keeps of a topic, and what holds where the topic itself does not say."""

    properties: Mapping[str, str] = field(default_factory=dict)
    retention: Retention | None = None
    max_message_bytes: int | None = None
    compaction_threshold: int | None = None
    default_entry_format: str = ENTRY_FORMATS[0]
    default_retention: Retention = KEEPS_NOTHING
    default_max_message_bytes: int = 5 * 1024 * 1024
    quorums: Quorums = PULSARS_QUORUMS

    @property
    def limits(self) -> Limits:
        compacted_only = is_compacted_only(self.properties)
        return limits_of(self.retention, self.properties, self.default_retention, compacted_only=compacted_only)


_DOCUMENTATION: Final = {
    RETENTION_MS: "For how long records are kept: Pulsar's retention time, rounded up to minutes. -1 for no limit.",
    RETENTION_BYTES: "How much of a partition is kept: Pulsar's retention size, rounded up to MiB. -1 for all.",
    MAX_MESSAGE_BYTES: "The largest record batch, with Pulsar's own metadata: maxMessageSize of the topic.",
}


def _fixed(quorums: Quorums) -> list[tuple[str, str, ConfigType, str]]:
    """Configs that can be read, and set to what they are."""
    return [
        (
            MIN_INSYNC_REPLICAS,
            str(quorums.ack),
            ConfigType.INT,
            "So many bookies have stored what is acknowledged: the ack quorum.",
        ),
        ("pulsar.ack.quorum", str(quorums.ack), ConfigType.INT, "So many bookies have stored what is acknowledged."),
        ("pulsar.write.quorum", str(quorums.write), ConfigType.INT, "So many bookies store each entry."),
        (
            "pulsar.ensemble.size",
            str(quorums.ensemble),
            ConfigType.INT,
            "The entries of a ledger are spread over so many bookies.",
        ),
        ("unclean.leader.election.enable", "false", ConfigType.BOOLEAN, "What is acknowledged is never given up."),
    ]


NAMES: Final = (*DEFINITIONS, *_DOCUMENTATION, *(name for name, *_ in _fixed(PULSARS_QUORUMS)))


def describe(settings: TopicSettings) -> list[Config]:
    """Every config of a topic."""

    def told(name: str, kind: ConfigType, own: str | None, without: str, documentation: str) -> Config:
        source = ConfigSource.DEFAULT_CONFIG if own is None else ConfigSource.TOPIC_CONFIG
        return Config(name, without if own is None else own, kind, source, without, False, documentation)

    limits, default = settings.limits, settings.default_retention
    size = settings.max_message_bytes
    configs = []
    for name, definition in DEFINITIONS.items():
        without = settings.default_entry_format if name == ENTRY_FORMAT else definition.default
        configs.append(
            told(name, definition.type, own_value(settings.properties, name), without, definition.documentation)
        )
    for name, value, without in (
        (RETENTION_MS, limits.retention.ms, default.ms),
        (RETENTION_BYTES, limits.retention.bytes, default.bytes),
    ):
        own = limits.own.get(name)
        configs.append(told(name, ConfigType.LONG, own, value if own is None else without, _DOCUMENTATION[name]))
    own_size, without_size = None if size is None else str(size), str(settings.default_max_message_bytes)
    configs.append(told(MAX_MESSAGE_BYTES, ConfigType.INT, own_size, without_size, _DOCUMENTATION[MAX_MESSAGE_BYTES]))
    fixed = _fixed(settings.quorums)
    return configs + [
        Config(name, value, kind, ConfigSource.DEFAULT_CONFIG, value, True, text) for name, value, kind, text in fixed
    ]


def set_here(settings: TopicSettings) -> list[str]:
    """The configs that the topic has of its own."""
    return [config.name for config in describe(settings) if config.source is ConfigSource.TOPIC_CONFIG]


def altered(settings: TopicSettings, operations: Sequence[tuple[str, Operation, str | None]]) -> TopicSettings:
    """The settings after these operations, or InvalidConfig for the first that can't be done."""
    changes: dict[str, str | None] = {}
    limits = settings.limits
    compacts_before = _compacts(settings)
    fixed = {name: value for name, value, _, _ in _fixed(settings.quorums)}
    for name, operation, value in operations:
        if name in fixed:
            _check_fixed(name, fixed[name], operation, value)
        elif name in DEFINITIONS:
            settings = replace(settings, properties=with_config(settings.properties, name, operation, value))
        elif name not in _DOCUMENTATION:
            if operation is Operation.DELETE:
                continue  # MirrorMaker deletes configs that the source topic does not set, also ones unknown here
            raise InvalidConfig(f"{name} is no topic config that can be set here: there are {', '.join(NAMES)}")
        elif name in LIMITS:
            changes[name] = _value(name, operation, value)
        else:
            size = _value(name, operation, value)
            settings = replace(settings, max_message_bytes=None if size is None else number(name, size, 1, MAX_INT))
    # Applies also if the topic has this cleanup.policy already: somebody may have set it without the retention that
    # goes with it.
    if changes or any(name == CLEANUP_POLICY for name, _, _ in operations):
        settings = _with_limits(settings, with_limits(limits, changes, settings.default_retention))
    return settings if _compacts(settings) == compacts_before else _with_threshold(settings)


def _with_limits(settings: TopicSettings, limits: Limits) -> TopicSettings:
    properties = {key: text for key, text in settings.properties.items() if key != RETENTION_SET}
    said = said_of(limits)
    if said is not None:
        properties[RETENTION_SET] = said
    return replace(
        settings, properties=properties, retention=policy_of(limits, compacted_only=is_compacted_only(properties))
    )


def _compacts(settings: TopicSettings) -> bool:
    """Whether Pulsar compacts the topic: every message has a key then."""
    configs = record_configs(settings.properties)
    return configs.compacted and (configs.entry_format or settings.default_entry_format) == "pulsar"


def _with_threshold(settings: TopicSettings) -> TopicSettings:
    """That of a topic which begins to be compacted, or no longer is. One that somebody else has set stays."""
    there = settings.compaction_threshold
    if _compacts(settings):
        return replace(settings, compaction_threshold=COMPACTION_THRESHOLD if there is None else there)
    return replace(settings, compaction_threshold=None if there == COMPACTION_THRESHOLD else there)


def _value(name: str, operation: Operation, value: str | None) -> str | None:
    """What is to be set, None for nothing."""
    if operation in (Operation.APPEND, Operation.SUBTRACT):
        raise InvalidConfig(f"{name} is no list: set or delete it")
    if operation is Operation.DELETE:
        return None
    if value is None:
        raise InvalidConfig(f"{name} needs a value")
    return value


def _check_fixed(name: str, there: str, operation: Operation, value: str | None) -> None:
    if (
        name == MIN_INSYNC_REPLICAS
        and operation is Operation.SET
        and 1 <= number(name, value or "", 1, MAX_INT) <= int(there)
    ):
        return  # the ack quorum satisfies this min.insync.replicas
    if operation is Operation.DELETE or (operation in (Operation.SET, Operation.APPEND) and value == there):
        return
    raise InvalidConfig(f"{name} is {there} for every topic here, and can't be made {value!r}")
