"""The command `kafka-sidecar`."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from dataclasses import fields
from pathlib import Path
from typing import Any

from kafka_sidecar import __version__
from kafka_sidecar.commands import ctl as ctl
from kafka_sidecar.config import CONFIG_HELP, ENV_PREFIX, Config, load
from kafka_sidecar.doctor import cluster as doctor
from kafka_sidecar.errors import ConfigError, SidecarError
from kafka_sidecar.pipelines import command as pipelines
from kafka_sidecar.telemetry import logs

ENDED_BY_SIGPIPE = 128 + signal.SIGPIPE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kafka-sidecar",
        description="Speaks Kafka to clients and Pulsar to an unmodified Pulsar 2.9+ cluster.",
        epilog=f"Every setting can also be given as an environment variable: {ENV_PREFIX}PULSAR__URL, {ENV_PREFIX}KAFKA__LISTEN, …",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in (
        ("serve", "serve Kafka clients until SIGTERM"),
        ("doctor", "check what the Pulsar cluster is set to; ends with 1 where it finds a fault, else with 0"),
        ("check-config", "print the effective configuration"),
    ):
        command = commands.add_parser(name, help=text, description=text)
        command.add_argument("--config", type=Path, metavar="FILE", help=CONFIG_HELP)
        if name == "doctor":
            command.add_argument("--topics", action="store_true", help="look at every topic too: two admin calls a partition")
        if name == "serve":
            command.add_argument("--once", action="store_true", help="end at once, and not wait, where Pulsar can't be reached")
            command.add_argument(
                "--workers", type=int, default=1, metavar="N", help="so many processes, with ports and node ids of their own"
            )
            command.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)  # ends with its supervisor
            command.add_argument("--loop", choices=("uvloop", "asyncio"), default="uvloop", help="the event loop (default: uvloop)")
    _add_groups(commands)
    _add_inspect(commands)
    _add_verify(commands)
    _add_try(commands)
    ctl.add_ctl(commands)
    pipelines.add_pipelines(commands)
    return parser


def _add_groups(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "move a group's offsets between Kafka and Pulsar subscriptions of its name"
    groups = commands.add_parser("groups", help=text, description=text)
    directions = groups.add_subparsers(dest="direction", required=True, metavar="COMMAND")
    for name, what in (
        ("import", "commit, for a Kafka group, the positions of the Pulsar subscriptions of its name"),
        ("export", "put Pulsar subscriptions of a group's name to where the Kafka group has committed"),
    ):
        command = directions.add_parser(name, help=what, description=what)
        command.add_argument("--config", type=Path, metavar="FILE", help=CONFIG_HELP)
        command.add_argument("--group", required=True, help="the group, and the subscription")
        command.add_argument("--topic", action="append", default=[], help="only this topic; may be given several times")
        command.add_argument("--bootstrap-server", metavar="HOST:PORT", help="a running sidecar (default: kafka.listen)")
        command.add_argument("--dry-run", action="store_true", help="print what would be set, and change nothing")

    what = "replace offsets that a group has committed with Kafka-on-Pulsar before 2.8 by continuous ones"
    command = directions.add_parser("translate", help=what, description=what)
    command.add_argument("--config", type=Path, metavar="FILE", help=CONFIG_HELP)
    command.add_argument("--group", required=True, help="the group")
    command.add_argument("--bootstrap-server", metavar="HOST:PORT", help="a running sidecar (default: kafka.listen)")
    command.add_argument("--dry-run", action="store_true", help="print what would be set, and change nothing")


def _add_inspect(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "show an entry, a partition or a group as it is stored in Pulsar"
    inspect = commands.add_parser("inspect", help=text, description=text)
    kinds = inspect.add_subparsers(dest="what", required=True, metavar="COMMAND")
    for name, of, shows in (
        ("entry", "TOPIC", "decode one entry, found by its offset or its position"),
        ("partition", "TOPIC", "fold the end of a partition's log: offsets, producers, entries that are hidden"),
        ("group", "GROUP", "list the records of a consumer group"),
    ):
        command = kinds.add_parser(name, help=shows, description=shows)
        command.add_argument("name", metavar=of)
        command.add_argument("--config", type=Path, metavar="FILE", help=CONFIG_HELP)
        if name != "group":
            command.add_argument("--partition", type=int, default=0, metavar="N", help="default: 0")
        if name == "entry":
            which = command.add_mutually_exclusive_group(required=True)
            which.add_argument("--offset", type=int, metavar="N", help="the entry that holds this offset")
            which.add_argument("--position", metavar="LEDGER:ENTRY", help="the entry at this position")
        if name == "partition":
            command.add_argument("--entries", type=int, default=2_000, metavar="N", help="fold so many (default: 2000)")


def _add_verify(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "walk topics and account for every offset"
    verify = commands.add_parser("verify", help=text, description=f"{text}; ends with 1 where something is wrong")
    verify.add_argument("topic", nargs="*", metavar="TOPIC")
    verify.add_argument("--namespace", default="", metavar="TENANT/NAMESPACE", help="all topics of a namespace")
    verify.add_argument("--partition", type=int, metavar="N", help="only this one (default: all)")
    verify.add_argument("--json", action="store_true", help="print one JSON object")
    verify.add_argument("--config", type=Path, metavar="FILE", help=CONFIG_HELP)


def _add_try(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "write a record through running sidecars and read it back"
    command = commands.add_parser("try", help=text, description=f"{text}; ends with 2 where that fails")
    command.add_argument("--bootstrap-server", metavar="HOST:PORT", help="a running sidecar (default: kafka.listen)")
    command.add_argument("--topic", default="", help="a topic that is there (default: one that is made for this, and deleted)")
    command.add_argument("--seconds", type=float, default=60, metavar="N", help="give up after so long (default: 60)")
    command.add_argument("--config", type=Path, metavar="FILE", help=CONFIG_HELP)


def _try(config: Config, options: argparse.Namespace) -> int:
    from kafka_sidecar.commands.try_ import try_out

    return _run(try_out(_bootstrap(config, options), options.topic, options.seconds, print), "asyncio")


def _verify(config: Config, options: argparse.Namespace) -> int:
    from kafka_sidecar.commands.verify.verify import CanNotVerify, Wanted, verify

    if not options.topic and not options.namespace:
        raise CanNotVerify("name a topic, or all of a namespace with --namespace tenant/namespace")
    if options.namespace and options.namespace.count("/") != 1:
        raise CanNotVerify(f"--namespace {options.namespace}: write tenant/namespace")
    wanted = Wanted(topics=tuple(options.topic), namespace=options.namespace, partition=options.partition, json=options.json)
    return _run(verify(config, wanted), "uvloop")


def _inspect(config: Config, options: argparse.Namespace) -> int:
    from kafka_sidecar.commands.inspect import CanNotInspect, Wanted, inspect
    from kafka_sidecar.pulsar.entry import Position

    position = None
    if getattr(options, "position", None):
        ledger, _, entry = options.position.partition(":")
        if not (ledger.isdigit() and entry.isdigit()):
            raise CanNotInspect(f"--position {options.position}: write LEDGER:ENTRY, as in 12:0")
        position = Position(int(ledger), int(entry))
    wanted = Wanted(
        what=options.what, name=options.name, partition=getattr(options, "partition", 0), offset=getattr(options, "offset", None),
        position=position, entries=getattr(options, "entries", 0),
    )  # fmt: skip
    return _run(inspect(config, wanted), "asyncio")


def _run(main: Coroutine[Any, Any, int], loop: str) -> int:
    if loop == "uvloop":
        import uvloop  # costs memory that `doctor` need not spend

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(main)
    return asyncio.run(main)


async def _doctor(config: Config, look_at_topics: bool) -> int:
    from kafka_sidecar.doctor.topics import examine_topics
    from kafka_sidecar.partition.log.topic_logs import opened

    faults = 0
    async with opened(config) as logs:
        for finding in await doctor.examine(logs.client, logs.admin, config.kafka.namespace, config.groups.namespace):
            faults += finding.severity is doctor.Severity.FAULT
            print(f"{finding.severity.value:8} {finding.check}: {finding.text}")
        if look_at_topics:
            async for finding in examine_topics(logs.client, logs.admin, logs.catalog, config.kafka, config.groups):
                faults += finding.severity is doctor.Severity.FAULT
                print(f"{finding.severity.value:8} {finding.check}: {finding.text}", flush=True)
    print(f"{faults} fault{'s' * (faults > 1)}" if faults else "Pulsar is ready for Kafka clients.")
    return 1 if faults else 0


def _serve(config: Config, options: argparse.Namespace) -> int:
    if options.workers != 1:
        from kafka_sidecar.process.workers import check_workers, supervise

        check_workers(config, options.workers)
        arguments = ["--loop", options.loop, *["--once"] * options.once]
        arguments += ["--config", str(options.config)] if options.config else []
        return asyncio.run(supervise(config, options.workers, arguments))
    from kafka_sidecar.process.sidecar import run

    return _run(run(config, once=options.once, ends_with_input=options.worker), options.loop)


def _check_config(config: Config) -> int:
    lines = []
    for section in fields(config):
        lines.append(f"[{section.name}]")
        values = getattr(config, section.name)
        for item in fields(values):
            value = getattr(values, item.name)
            shown = f'"{value}"' if isinstance(value, str) else str(value).lower()
            lines.append(f"{item.name} = {shown}")
        lines.append("")
    print("\n".join(lines))
    return 0


def _groups(config: Config, options: argparse.Namespace) -> int:
    if options.direction == "translate":
        return _translate(config, options)
    from kafka_sidecar.commands.transfer_groups import Transfer, transfer

    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # our own sentence says why it failed
    wanted = Transfer(
        direction=options.direction, group=options.group, topics=tuple(options.topic),
        bootstrap=_bootstrap(config, options), dry_run=options.dry_run,
    )  # fmt: skip
    return _run(transfer(config, wanted, print), "asyncio")


def _bootstrap(config: Config, options: argparse.Namespace) -> str:
    given: str = options.bootstrap_server or config.kafka.listen
    for one in given.split(","):
        host, _, port = one.rpartition(":")
        if not host or not port.isdigit():
            raise ConfigError(f"--bootstrap-server {given}: write HOST:PORT")
    return given


def _translate(config: Config, options: argparse.Namespace) -> int:
    from kafka_sidecar.commands.translate_groups import Wanted, translate

    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)
    wanted = Wanted(group=options.group, bootstrap=_bootstrap(config, options), dry_run=options.dry_run)
    return _run(translate(config, wanted, print), "asyncio")


def _run_command(options: argparse.Namespace) -> int:
    """Reads the configuration only for commands that need it: a pipeline and another sidecar have their own."""
    if options.command == "pipeline":
        logs.start("WARNING", "text")
        return pipelines.run(options)
    if options.command == "ctl" and options.address:
        return ctl.run(Config(), options)  # of another sidecar: its own settings are of no account
    config = load(Path(options.config) if options.config else None)
    if options.command == "ctl":
        return ctl.run(config, options)
    if options.command == "check-config":
        return _check_config(config)
    logs.start(config.telemetry.log_level, config.telemetry.log_format)
    if options.command == "doctor":
        return _run(_doctor(config, options.topics), "asyncio")
    if options.command == "groups":
        return _groups(config, options)
    if options.command == "inspect":
        return _inspect(config, options)
    if options.command == "verify":
        return _verify(config, options)
    if options.command == "try":
        return _try(config, options)
    return _serve(config, options)


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")  # its own lines are in a format of their own
    try:
        code = _run_command(options)
        sys.stdout.flush()
        return code
    except SidecarError as error:
        print(f"kafka-sidecar: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # whoever read the output has seen enough, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python fails again as it ends
        return ENDED_BY_SIGPIPE
