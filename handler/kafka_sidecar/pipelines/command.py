"""`kafka-sidecar pipeline NAME`: what runs on Spark."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Mapping
from typing import Any, Final

from kafka_sidecar.errors import ConfigError, SidecarError
from kafka_sidecar.pipelines.archive import command as archive
from kafka_sidecar.pipelines.archive import replay_command as replay
from kafka_sidecar.pipelines.audit import command as audit
from kafka_sidecar.pipelines.migrate_groups import command as migrate_groups
from kafka_sidecar.pipelines.mirror import command as mirror
from kafka_sidecar.pipelines.options import Settings
from kafka_sidecar.pipelines.reindex import command as reindex
from kafka_sidecar.telemetry import logs

PIPELINES: Final[Mapping[str, Any]] = {
    "mirror": mirror,
    "migrate-groups": migrate_groups,
    "archive": archive,
    "replay": replay,
    "audit": audit,
    "reindex": reindex,
}

TEXT: Final = "move whole topics with Spark, and what belongs to them"
INTERRUPTED: Final = 130  # exit status of a shell for a command that Ctrl-C ended (128 + SIGINT)


def add(pipeline: argparse.ArgumentParser) -> None:
    names = pipeline.add_subparsers(dest="pipeline", required=True, metavar="NAME")
    parsers = []
    for name, module in PIPELINES.items():
        parsers.append(names.add_parser(name, help=module.TEXT, description=module.TEXT))
        module.add(parsers[-1])
    of_all = frozenset(name for parser in parsers for name in vars(parser.parse_args([])))
    for parser in parsers:
        parser.set_defaults(of_all=of_all)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def run(options: argparse.Namespace) -> int:
    logs.start("WARNING", "text")
    signal.signal(signal.SIGTERM, _interrupt)  # SIGTERM stops a pipeline as Ctrl-C does: it still reports what is done
    try:
        return int(PIPELINES[options.pipeline].run(Settings(options)))
    except KeyboardInterrupt:
        print("stopped: started again it goes on from what is done", flush=True)
        return INTERRUPTED
    except ModuleNotFoundError as error:
        if error.name and error.name.partition(".")[0] in ("pyspark", "py4j", "pyarrow"):
            missing = f"pipelines need {error.name}, which this Python lacks"
            raise ConfigError(
                f"{missing}: install pyspark and pyarrow, in a checkout with pip install '.[spark]'"
            ) from error
        raise


def main() -> int:
    """For spark-submit."""
    parser = argparse.ArgumentParser(prog="kafka-sidecar pipeline", description=TEXT)
    add(parser)
    try:
        return run(parser.parse_args())
    except SidecarError as error:
        print(f"kafka-sidecar: {error}", file=sys.stderr)
        return 2
