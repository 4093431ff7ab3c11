"""The options of `kafka-sidecar try`."""

from __future__ import annotations

import argparse
import asyncio
from typing import Final

from kafka_sidecar.commands.command import add_bootstrap_server, add_config, bootstrap_of, loaded

TEXT: Final = "write a record through running sidecars and read it back; ends with 2 where that fails"


def add(command: argparse.ArgumentParser) -> None:
    add_bootstrap_server(command)
    command.add_argument(
        "--topic", default="", help="a topic that is there (default: one that is made for this, and deleted)"
    )
    command.add_argument("--seconds", type=float, default=60, metavar="N", help="give up after so long (default: 60)")
    add_config(command)


def run(options: argparse.Namespace) -> int:
    from kafka_sidecar.commands.try_.try_out import try_out

    return asyncio.run(try_out(bootstrap_of(loaded(options), options), options.topic, options.seconds, print))
