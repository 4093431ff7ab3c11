"""Kafka's topic configs, and what Pulsar keeps of them. Pure.

    Kafka config                          Pulsar
    entry.format                          a property of the topic (see partition/log/formats)
    retention.ms, retention.bytes         the topic's retention policy: whole minutes and MiB, both at once
    max.message.bytes                     the topic's maxMessageSize
    the others here                       what holds for every topic; they can be read, and set to what they are

A config that is not here is refused, never ignored. A policy that nobody asked to change is not written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Final, NamedTuple

from handler.config import ENTRY_FORMATS

ENTRY_FORMAT: Final = "entry.format"
# The property by which Kafka-on-Pulsar has it; its third format is one of Kafka batches too.
_KOP_ENTRY_FORMAT: Final = "kafkaEntryFormat"
_KOP_FORMATS: Final = {"kafka": "kafka", "mixed_kafka": "kafka", "pulsar": "pulsar"}
RETENTION_MS: Final = "retention.ms"
RETENTION_BYTES: Final = "retention.bytes"
MAX_MESSAGE_BYTES: Final = "max.message.bytes"
_LIMITS: Final = (RETENTION_MS, RETENTION_BYTES)
# The property that says which limits of the retention policy were set.
RETENTION_SET: Final = "kafka.retention"
UNLIMITED: Final = -1
_MINUTE_MS: Final = 60_000
_MIB: Final = 1024 * 1024
_MAX_INT: Final = 2**31 - 1  # of Pulsar's minutes and MiB, and of Kafka's sizes


class ConfigType(IntEnum):
    """DescribeConfigsResponse.ConfigType."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    LIST = 7


class ConfigSource(IntEnum):
    """DescribeConfigsResponse.ConfigSource."""

    TOPIC_CONFIG = 1
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5


class Operation(IntEnum):
    """AlterConfigOp.OpType (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Retention(NamedTuple):
    """Pulsar's retention policy: what is acknowledged, or has no subscription, is kept within both limits."""

    minutes: int
    megabytes: int


class InvalidConfig(ValueError):
    """The text says what to change."""


class Config(NamedTuple):
    """A config as a client is told it."""

    name: str
    value: str
    type: ConfigType
    source: ConfigSource
    default: str  # what it would be if the topic did not say
    read_only: bool
    documentation: str


# Pulsar's own default.
_KEEPS_NOTHING: Final = Retention(0, 0)


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """What Pulsar keeps of a topic, and what holds where the topic itself does not say."""

    properties: Mapping[str, str] = field(default_factory=dict)
    retention: Retention | None = None
    max_message_bytes: int | None = None
    default_entry_format: str = ENTRY_FORMATS[0]
    default_retention: Retention = _KEEPS_NOTHING
    default_max_message_bytes: int = 5 * _MIB


_DOCUMENTATION: Final = {
    ENTRY_FORMAT: "How records are stored: kafka as their producers sent them, pulsar as messages that native Pulsar clients read.",
    RETENTION_MS: "For how long records are kept: Pulsar's retention time, in whole minutes. -1 for ever.",
    RETENTION_BYTES: "How much of a partition is kept: Pulsar's retention size, in whole MiB. -1 for all.",
    MAX_MESSAGE_BYTES: "The largest record batch, with Pulsar's own metadata: maxMessageSize of the topic.",
}
_FIXED: Final = (
    ("cleanup.policy", "delete", ConfigType.LIST, "Old records are removed by Pulsar's retention."),
    ("compression.type", "producer", ConfigType.STRING, "Batches keep the compression of their producer."),
    ("message.timestamp.type", "CreateTime", ConfigType.STRING, "A record has the time that its producer gave it."),
    ("message.timestamp.after.max.ms", "3600000", ConfigType.LONG, "A record may be at most an hour ahead of the broker."),
)
_FIXED_VALUES: Final = {name: value for name, value, _, _ in _FIXED}
NAMES: Final = (ENTRY_FORMAT, RETENTION_MS, RETENTION_BYTES, MAX_MESSAGE_BYTES, *_FIXED_VALUES)


def entry_format(properties: Mapping[str, str]) -> str | None:
    """The format of a topic's entries; None where its properties say none that is known."""
    own = properties.get(ENTRY_FORMAT)
    return own if own in ENTRY_FORMATS else _KOP_FORMATS.get(properties.get(_KOP_ENTRY_FORMAT, ""))


def describe(settings: TopicSettings) -> list[Config]:
    """Every config of a topic."""

    def told(name: str, kind: ConfigType, own: str | None, without: str) -> Config:
        source = ConfigSource.DEFAULT_CONFIG if own is None else ConfigSource.TOPIC_CONFIG
        return Config(name, without if own is None else own, kind, source, without, False, _DOCUMENTATION[name])

    own_bytes = settings.max_message_bytes
    kept, default = settings.retention, settings.default_retention
    limits = _limits_set(settings)
    ms, of_bytes = (_ms(default), _bytes(default)) if kept is None else (_ms(kept), _bytes(kept))
    return [
        told(ENTRY_FORMAT, ConfigType.STRING, entry_format(settings.properties), settings.default_entry_format),
        told(RETENTION_MS, ConfigType.LONG, *((ms, _ms(default)) if RETENTION_MS in limits else (None, ms))),
        told(RETENTION_BYTES, ConfigType.LONG, *((of_bytes, _bytes(default)) if RETENTION_BYTES in limits else (None, of_bytes))),
        told(MAX_MESSAGE_BYTES, ConfigType.INT, None if own_bytes is None else str(own_bytes), str(settings.default_max_message_bytes)),
        *(Config(name, value, kind, ConfigSource.DEFAULT_CONFIG, value, True, text) for name, value, kind, text in _FIXED),
    ]


def describe_node(node_id: int, default_partitions: int, auto_create_topics: bool) -> list[Config]:
    """The settings of a node that Kafka has names for. Its own stand in its configuration file."""
    settings = (
        ("broker.id", str(node_id), ConfigType.INT, "The node id of this sidecar."),
        ("num.partitions", str(default_partitions), ConfigType.INT, "Partitions of a topic made without a number."),
        (
            "auto.create.topics.enable",
            str(auto_create_topics).lower(),
            ConfigType.BOOLEAN,
            "Whether a missing topic is made when it is named.",
        ),
    )
    return [Config(name, value, kind, ConfigSource.STATIC_BROKER_CONFIG, value, True, text) for name, value, kind, text in settings]


def set_here(settings: TopicSettings) -> list[str]:
    """The configs that the topic has of its own."""
    return [config.name for config in describe(settings) if config.source is ConfigSource.TOPIC_CONFIG]


def altered(settings: TopicSettings, operations: Sequence[tuple[str, Operation, str | None]]) -> TopicSettings:
    """The settings after these operations, or InvalidConfig for the first that can't be done."""
    limits: dict[str, str | None] = {}
    for name, operation, value in operations:
        if name in _FIXED_VALUES:
            _check_fixed(name, operation, value)
            continue
        if name not in _DOCUMENTATION:
            raise InvalidConfig(f"{name} is no topic config that can be set here: there are {', '.join(NAMES)}")
        if operation in (Operation.APPEND, Operation.SUBTRACT):
            raise InvalidConfig(f"{name} is no list: set or delete it")
        wanted = None if operation is Operation.DELETE else _given(name, value)
        if name in _LIMITS:
            limits[name] = wanted
        else:
            settings = _with(settings, name, wanted)
    return _with_retention(settings, limits) if limits else settings


def _with(settings: TopicSettings, name: str, value: str | None) -> TopicSettings:
    """The settings with the format or the size set, or with what holds without it."""
    if name == ENTRY_FORMAT:
        if value is not None and value not in ENTRY_FORMATS:
            raise InvalidConfig(f"{name} is {value!r}: use {' or '.join(ENTRY_FORMATS)}")
        others = {key: text for key, text in settings.properties.items() if key not in (ENTRY_FORMAT, _KOP_ENTRY_FORMAT)}
        return replace(settings, properties=others if value is None else {**others, ENTRY_FORMAT: value})
    return replace(settings, max_message_bytes=None if value is None else _number(name, value, 1, _MAX_INT))


def _with_retention(settings: TopicSettings, limits: Mapping[str, str | None]) -> TopicSettings:
    """The settings after setting, or deleting (None), one limit of the topic's retention or both.

    Pulsar has both limits or none. So the topic says in a property which of them were set; of a policy that was made by Pulsar's own tools
    both were. A limit that is not set is what the namespace says; where that keeps nothing it is no limit, for Pulsar takes no policy in
    which one limit keeps nothing and the other something.
    """
    kept, default = settings.retention, settings.default_retention
    before = _limits_set(settings)
    there = {name for name in _LIMITS if (limits[name] is not None if name in limits else name in before)}
    properties = {key: text for key, text in settings.properties.items() if key != RETENTION_SET}
    if not there:
        return replace(settings, retention=None, properties=properties)
    minutes, megabytes = kept or default
    if RETENTION_MS in limits:
        minutes = _limit(RETENTION_MS, limits[RETENTION_MS], default.minutes)
    if RETENTION_BYTES in limits:
        megabytes = _limit(RETENTION_BYTES, limits[RETENTION_BYTES], default.megabytes)
    retention = Retention(minutes or UNLIMITED, megabytes or UNLIMITED)
    properties[RETENTION_SET] = _said(there, retention)
    return replace(settings, retention=retention, properties=properties)


def _said(limits: Iterable[str], retention: Retention) -> str:
    """Which limits were set, and the policy that they made: another policy is not ours."""
    return f"{','.join(sorted(limits))} {retention.minutes} {retention.megabytes}"


def _limits_set(settings: TopicSettings) -> set[str]:
    """The limits of the retention that the topic has of its own."""
    kept = settings.retention
    if kept is None:
        return set()
    said = settings.properties.get(RETENTION_SET, "")
    limits = said.partition(" ")[0].split(",")
    return set(limits) if said == _said(limits, kept) else set(_LIMITS)


def _limit(name: str, value: str | None, default: int) -> int:
    """A limit in Pulsar's unit."""
    if value is None:
        return default
    unit = _MINUTE_MS if name == RETENTION_MS else _MIB
    number = _number(name, value, UNLIMITED, _MAX_INT * unit)
    if number == UNLIMITED:
        return UNLIMITED
    if number % unit or not number:
        what = "whole minutes: a multiple of 60000" if unit == _MINUTE_MS else "whole MiB: a multiple of 1048576"
        raise InvalidConfig(f"{name} is {value}: Pulsar keeps {what}, or -1")
    return number // unit


def _check_fixed(name: str, operation: Operation, value: str | None) -> None:
    there = _FIXED_VALUES[name]
    if operation is Operation.DELETE or (operation in (Operation.SET, Operation.APPEND) and value == there):
        return
    raise InvalidConfig(f"{name} is {there} for every topic here, and can't be made {value!r}")


def _given(name: str, value: str | None) -> str:
    if value is None:
        raise InvalidConfig(f"{name} needs a value")
    return value


def _number(name: str, value: str, lowest: int, highest: int) -> int:
    try:
        number = int(value)
    except ValueError:
        raise InvalidConfig(f"{name} is {value!r}: write a number") from None
    if not lowest <= number <= highest:
        raise InvalidConfig(f"{name} is {value}: it must be {lowest} to {highest}")
    return number


def _ms(retention: Retention) -> str:
    return str(UNLIMITED if retention.minutes == UNLIMITED else retention.minutes * _MINUTE_MS)


def _bytes(retention: Retention) -> str:
    return str(UNLIMITED if retention.megabytes == UNLIMITED else retention.megabytes * _MIB)
