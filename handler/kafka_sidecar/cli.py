"""The command `kafka-sidecar`."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Mapping
from typing import Final

from kafka_sidecar import __version__
from kafka_sidecar.commands import check_config, ctl, doctor, serve
from kafka_sidecar.commands.command import Command
from kafka_sidecar.commands.groups import command as groups
from kafka_sidecar.commands.inspect import command as inspect
from kafka_sidecar.commands.try_ import command as try_
from kafka_sidecar.commands.verify import command as verify
from kafka_sidecar.config import ENV_PREFIX
from kafka_sidecar.errors import SidecarError
from kafka_sidecar.pipelines import command as pipeline

COMMANDS: Final[Mapping[str, Command]] = {
    "serve": serve,
    "doctor": doctor,
    "check-config": check_config,
    "groups": groups,
    "inspect": inspect,
    "verify": verify,
    "try": try_,
    "ctl": ctl,
    "pipeline": pipeline,
}
ENDED_BY_SIGPIPE: Final = 128 + signal.SIGPIPE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kafka-sidecar",
        description="Speaks Kafka to clients and Pulsar to an unmodified Pulsar 2.9+ cluster.",
        epilog=f"Every setting can also be given as an environment variable: {ENV_PREFIX}PULSAR__URL, "
        f"{ENV_PREFIX}KAFKA__LISTEN, …",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        command.add(commands.add_parser(name, help=command.TEXT, description=command.TEXT))
    return parser


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # its own lines are in a format of their own
    try:
        code = COMMANDS[options.command].run(options)
        sys.stdout.flush()
        return code
    except SidecarError as error:
        print(f"kafka-sidecar: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # its reader has seen enough, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python fails again as it ends
        return ENDED_BY_SIGPIPE
