"""A command of `kafka-sidecar`, and the options that several have.

A command is a module with TEXT, add and run. It imports what it works with in `run`: all are asked for their options
whichever is meant.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Protocol

from kafka_sidecar.config import CONFIG_HELP, Config, load
from kafka_sidecar.errors import ConfigError
from kafka_sidecar.model.sidecar import are_endpoints
from kafka_sidecar.telemetry import logs


class Command(Protocol):
    TEXT: str  # what it does

    def add(self, command: argparse.ArgumentParser) -> None:
        """Its options."""
        ...

    def run(self, options: argparse.Namespace) -> int:
        """Its exit code."""
        ...


def add_config(command: argparse.ArgumentParser) -> None:
    command.add_argument("--config", type=Path, metavar="FILE", help=CONFIG_HELP)


def add_bootstrap_server(command: argparse.ArgumentParser) -> None:
    command.add_argument("--bootstrap-server", metavar="HOST:PORT", help="a running sidecar (default: kafka.listen)")


def bootstrap_of(config: Config, options: argparse.Namespace) -> str:
    given: str = options.bootstrap_server or config.kafka.listen
    if not are_endpoints(given):
        raise ConfigError(f"--bootstrap-server {given}: write HOST:PORT")
    return given


def loaded(options: argparse.Namespace) -> Config:
    """The configuration; from here on the program logs as it says."""
    config = load(options.config)
    logs.start(config.telemetry.log_level, config.telemetry.log_format)
    return config


def run_in_uvloop(main: Coroutine[Any, Any, int]) -> int:
    import uvloop  # costs memory that `doctor` need not spend

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)
