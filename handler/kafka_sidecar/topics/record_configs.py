"""Topic configs that Pulsar has no policy for: they are properties of the Pulsar topic, under Kafka's names. Pure.

Some of them say what is asked of records that are appended (`RecordConfigs`). The others are about the files of Kafka's
brokers: they are kept for the tools that set them, and change nothing, for Pulsar stores by settings of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from kafka_sidecar.config import ENTRY_FORMATS
from kafka_sidecar.topics.config_types import ConfigType, InvalidConfig, Operation, number

ENTRY_FORMAT: Final = "entry.format"
CLEANUP_POLICY: Final = "cleanup.policy"
COMPRESSION_TYPE: Final = "compression.type"
TIMESTAMP_TYPE: Final = "message.timestamp.type"
BEFORE_MAX_MS: Final = "message.timestamp.before.max.ms"
AFTER_MAX_MS: Final = "message.timestamp.after.max.ms"
COMPACT: Final = "compact"
DELETE: Final = "delete"
PRODUCER: Final = "producer"
LOG_APPEND_TIME: Final = "LogAppendTime"
MAX_INT: Final = 2**31 - 1
MAX_LONG: Final = 2**63 - 1
HOUR_MS: Final = 3_600_000
PULSAR_FORMAT: Final = ENTRY_FORMATS[1]
# The topic property in which Kafka-on-Pulsar stores its entry format. Its third format, mixed_kafka, holds Kafka
# batches too.
_KOP_ENTRY_FORMAT: Final = "kafkaEntryFormat"
_KOP_FORMATS: Final = {"kafka": "kafka", "mixed_kafka": "kafka", "pulsar": "pulsar"}


class RecordConfigs(NamedTuple):
    """What is asked of records that are appended."""

    entry_format: str | None  # None if the topic does not set one
    compression_type: str
    log_append_time: bool
    compacted: bool
    before_max_ms: int
    after_max_ms: int


class Definition(NamedTuple):
    type: ConfigType
    default: str
    documentation: str
    checked: Callable[[str, str], str]  # config name and given value → value to store; raises InvalidConfig


def _one_of(*values: str) -> Callable[[str, str], str]:
    def checked(name: str, value: str) -> str:
        if value not in values:
            raise InvalidConfig(f"{name} is {value!r}: use {', '.join(values[:-1])} or {values[-1]}")
        return value

    return checked


def _number_of(lowest: int, highest: int) -> Callable[[str, str], str]:
    return lambda name, value: str(number(name, value, lowest, highest))


def _ratio(name: str, value: str) -> str:
    try:
        given = float(value)
    except ValueError:
        raise InvalidConfig(f"{name} is {value!r}: write a number") from None
    if not 0 <= given <= 1:
        raise InvalidConfig(f"{name} is {value}: it must be 0 to 1")
    return str(given)


def _policies(name: str, value: str) -> str:
    given = dict.fromkeys(one.strip() for one in value.split(",") if one.strip())
    if not given or given.keys() - {COMPACT, DELETE}:
        raise InvalidConfig(f"{name} is {value!r}: use delete, compact, or both")
    return ",".join(given)


_FILES: Final = (
    "Of the files of Kafka's brokers: it is stored and shown, and changes nothing, for Pulsar stores by "
    "settings of its own."
)
DEFINITIONS: Final[Mapping[str, Definition]] = {
    ENTRY_FORMAT: Definition(
        ConfigType.STRING,
        ENTRY_FORMATS[0],
        "How records are stored: kafka as their producers sent them, pulsar as messages that native Pulsar clients "
        "read.",
        _one_of(*ENTRY_FORMATS),
    ),
    CLEANUP_POLICY: Definition(
        ConfigType.LIST,
        DELETE,
        "delete: old records are removed by Pulsar's retention. compact: every record needs a key, and nothing is "
        "removed, unless delete is there too; in format pulsar Pulsar compacts the topic for its own readers.",
        _policies,
    ),
    COMPRESSION_TYPE: Definition(
        ConfigType.STRING,
        PRODUCER,
        "The compression of the batches; producer leaves them as they come.",
        _one_of(PRODUCER, "uncompressed", "gzip", "snappy", "lz4", "zstd"),
    ),
    TIMESTAMP_TYPE: Definition(
        ConfigType.STRING,
        "CreateTime",
        "CreateTime: a record has the time that its producer gave it. LogAppendTime: the time at which Pulsar's broker "
        "stored it.",
        _one_of("CreateTime", LOG_APPEND_TIME),
    ),
    BEFORE_MAX_MS: Definition(
        ConfigType.LONG,
        str(MAX_LONG),
        "How far a record's time may be before that of the sidecar.",
        _number_of(0, MAX_LONG),
    ),
    AFTER_MAX_MS: Definition(
        ConfigType.LONG,
        str(HOUR_MS),
        "How far a record's time may be ahead of that of the sidecar.",
        _number_of(0, MAX_LONG),
    ),
    "segment.bytes": Definition(ConfigType.INT, str(2**30), _FILES, _number_of(1, MAX_INT)),
    "segment.ms": Definition(ConfigType.LONG, str(7 * 24 * HOUR_MS), _FILES, _number_of(1, MAX_LONG)),
    "segment.jitter.ms": Definition(ConfigType.LONG, "0", _FILES, _number_of(0, MAX_LONG)),
    "segment.index.bytes": Definition(ConfigType.INT, str(10 * 2**20), _FILES, _number_of(4, MAX_INT)),
    "index.interval.bytes": Definition(ConfigType.INT, "4096", _FILES, _number_of(0, MAX_INT)),
    "file.delete.delay.ms": Definition(ConfigType.LONG, "60000", _FILES, _number_of(0, MAX_LONG)),
    "flush.messages": Definition(ConfigType.LONG, str(MAX_LONG), _FILES, _number_of(1, MAX_LONG)),
    "flush.ms": Definition(ConfigType.LONG, str(MAX_LONG), _FILES, _number_of(0, MAX_LONG)),
    "preallocate": Definition(ConfigType.BOOLEAN, "false", _FILES, _one_of("false", "true")),
    "min.cleanable.dirty.ratio": Definition(ConfigType.DOUBLE, "0.5", _FILES, _ratio),
    "min.compaction.lag.ms": Definition(ConfigType.LONG, "0", _FILES, _number_of(0, MAX_LONG)),
    "max.compaction.lag.ms": Definition(ConfigType.LONG, str(MAX_LONG), _FILES, _number_of(1, MAX_LONG)),
    "delete.retention.ms": Definition(ConfigType.LONG, str(24 * HOUR_MS), _FILES, _number_of(0, MAX_LONG)),
}


def record_configs(properties: Mapping[str, str]) -> RecordConfigs:
    """What the properties of a topic ask of its records. What somebody else has written there and nobody understands
    asks nothing.
    """

    def kept(name: str) -> str:
        definition = DEFINITIONS[name]
        try:
            return definition.checked(name, properties[name]) if name in properties else definition.default
        except InvalidConfig:
            return definition.default

    return RecordConfigs(
        entry_format(properties),
        kept(COMPRESSION_TYPE),
        kept(TIMESTAMP_TYPE) == LOG_APPEND_TIME,
        COMPACT in kept(CLEANUP_POLICY).split(","),
        int(kept(BEFORE_MAX_MS)),
        int(kept(AFTER_MAX_MS)),
    )


def entry_format(properties: Mapping[str, str]) -> str | None:
    """The format of a topic's entries; None where its properties say none that is known."""
    own = properties.get(ENTRY_FORMAT)
    return own if own in ENTRY_FORMATS else _KOP_FORMATS.get(properties.get(_KOP_ENTRY_FORMAT, ""))


def own_value(properties: Mapping[str, str], name: str) -> str | None:
    """What the topic itself says; None where it does not."""
    return entry_format(properties) if name == ENTRY_FORMAT else properties.get(name)


def is_compacted_only(properties: Mapping[str, str]) -> bool:
    """Whether nothing is ever removed for its age or for the log's size."""
    return properties.get(CLEANUP_POLICY, DELETE) == COMPACT


def with_config(properties: Mapping[str, str], name: str, operation: Operation, value: str | None) -> dict[str, str]:
    """The properties after an operation on one of these configs, or InvalidConfig."""
    definition = DEFINITIONS[name]
    others = {
        key: text
        for key, text in properties.items()
        if key != name and (name, key) != (ENTRY_FORMAT, _KOP_ENTRY_FORMAT)
    }
    if operation is Operation.DELETE:
        return others
    if value is None:
        raise InvalidConfig(f"{name} needs a value")
    if operation is not Operation.SET:
        if definition.type is not ConfigType.LIST:
            raise InvalidConfig(f"{name} is no list: set or delete it")
        value = ",".join(_changed((properties.get(name) or definition.default).split(","), operation, value.split(",")))
    return {**others, name: definition.checked(name, value)}


def _changed(before: Sequence[str], operation: Operation, values: Sequence[str]) -> list[str]:
    """A list with these values, or without them."""
    given = [value.strip() for value in values]
    if operation is Operation.APPEND:
        return [*before, *given]
    return [value for value in before if value not in given]
