"""`kafka-sidecar check-config`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import fields
from typing import Final

from kafka_sidecar.commands.command import add_config
from kafka_sidecar.config import Config, load

TEXT: Final = "print the effective configuration"


def add(command: argparse.ArgumentParser) -> None:
    add_config(command)


def run(options: argparse.Namespace) -> int:
    print("\n".join(_lines(load(options.config))))
    return 0


def _lines(config: Config) -> Iterator[str]:
    """As a TOML file."""
    for section in fields(config):
        yield f"[{section.name}]"
        values = getattr(config, section.name)
        for item in fields(values):
            value = getattr(values, item.name)
            shown = f'"{value}"' if isinstance(value, str) else str(value).lower()
            yield f"{item.name} = {shown}"
        yield ""
