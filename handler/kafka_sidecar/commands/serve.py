"""`kafka-sidecar serve`."""

from __future__ import annotations

import argparse
import asyncio
from typing import Final

from kafka_sidecar.commands.command import add_config, loaded, run_in_uvloop

TEXT: Final = "serve Kafka clients until SIGTERM"


def add(command: argparse.ArgumentParser) -> None:
    add_config(command)
    command.add_argument("--once", action="store_true", help="end at once, and not wait, where Pulsar can't be reached")
    command.add_argument(
        "--workers", type=int, default=1, metavar="N", help="so many processes, with ports and node ids of their own"
    )
    command.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)  # ends with its supervisor
    command.add_argument(
        "--loop", choices=("uvloop", "asyncio"), default="uvloop", help="the event loop (default: uvloop)"
    )


def run(options: argparse.Namespace) -> int:
    config = loaded(options)
    if options.workers != 1:
        from kafka_sidecar.process.workers import check_workers, supervise

        check_workers(config, options.workers)
        arguments = ["--loop", options.loop, *["--once"] * options.once]
        arguments += ["--config", str(options.config)] if options.config else []
        return asyncio.run(supervise(config, options.workers, arguments))
    from kafka_sidecar.process.run import run

    serving = run(config, once=options.once, ends_with_input=options.worker)
    return run_in_uvloop(serving) if options.loop == "uvloop" else asyncio.run(serving)
