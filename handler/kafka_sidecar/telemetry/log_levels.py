"""The levels of loggers, changed while the program runs, in Kafka's words. They last until it ends."""

from __future__ import annotations

import logging
from typing import Final

ROOT: Final = "root"
PACKAGE: Final = "kafka_sidecar"
# Log levels of Kafka's LogLevelConfig.VALID_LOG_LEVELS. TRACE is DEBUG here, Python's finest level.
LEVELS: Final = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": logging.DEBUG,
}


def loggers() -> dict[str, str]:
    """The sidecar's own, and the root of all, with the level that each has now."""
    own = sorted(name for name in logging.root.manager.loggerDict if name == PACKAGE or name.startswith(PACKAGE + "."))
    return {ROOT: _level(logging.root)} | {name: _level(logging.getLogger(name)) for name in (PACKAGE, *own)}


def set_level(name: str, level: str | None) -> None:
    """None: that of the logger above it again."""
    logging.getLogger(None if name == ROOT else name).setLevel(logging.NOTSET if level is None else LEVELS[level])


def _level(logger: logging.Logger) -> str:
    found = logger.getEffectiveLevel()
    return next((name for name, value in LEVELS.items() if value <= found), "DEBUG")
