"""The loggers of this node as a resource that has configs (KIP-412)."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_sidecar.telemetry.log_levels import LEVELS, ROOT, loggers, set_level
from kafka_sidecar.topics.config_types import Config, ConfigSource, ConfigType, InvalidConfig, Operation


class NotAllowed(Exception):
    """No alteration of loggers: INVALID_REQUEST."""


def describe_loggers() -> list[Config]:
    return [
        Config(
            name,
            level,
            ConfigType.STRING,
            ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG,
            level,
            False,
            "The level of a logger.",
        )
        for name, level in loggers().items()
    ]


def alter_loggers(operations: Sequence[tuple[str, Operation, str | None]], *, validate_only: bool) -> None:
    """All of them or none (ConfigAdminManager.validateLogLevelConfigs)."""
    there = loggers()
    for name, operation, level in operations:
        if operation in (Operation.APPEND, Operation.SUBTRACT):
            raise NotAllowed(f"OpType {operation.name} is not allowed for the BROKER_LOGGER resource")
        if operation is Operation.DELETE and name == ROOT:
            raise NotAllowed("Removing the log level of the root logger is not allowed")
        if name not in there:
            raise InvalidConfig(f"Logger {name} does not exist!")
        if operation is Operation.SET and level not in LEVELS:
            valid = ", ".join(LEVELS)
            raise InvalidConfig(
                f"Cannot set the log level of {name} to {level} as it is not a supported log level. Valid log levels "
                f"are {valid}"
            )
    if not validate_only:
        for name, operation, level in operations:
            set_level(name, level if operation is Operation.SET else None)
