"""The words of Kafka's configs."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class ConfigType(IntEnum):
    """DescribeConfigsResponse.ConfigType."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8


class ConfigSource(IntEnum):
    """DescribeConfigsResponse.ConfigSource."""

    TOPIC_CONFIG = 1
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6


class Operation(IntEnum):
    """AlterConfigOp.OpType (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class InvalidConfig(ValueError):
    """The text says what to change."""


class Config(NamedTuple):
    """A config as a client gets it."""

    name: str
    value: str | None
    type: ConfigType
    source: ConfigSource
    default: str | None  # the value without the topic's own setting; None if there is none
    read_only: bool
    documentation: str


def number(name: str, value: str, lowest: int, highest: int) -> int:
    try:
        given = int(value)
    except ValueError:
        raise InvalidConfig(f"{name} is {value!r}: write a number") from None
    if not lowest <= given <= highest:
        raise InvalidConfig(f"{name} is {value}: it must be {lowest} to {highest}")
    return given
