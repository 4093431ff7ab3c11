"""`kafka-sidecar ctl`: what a running sidecar says of itself, as tables for people or as JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from google.protobuf.message import Message

from kafka_sidecar.commands.command import add_config
from kafka_sidecar.config import Config, load
from kafka_sidecar.errors import CommandFailed, ConfigError
from kafka_sidecar.model.sidecar import endpoint_of

if TYPE_CHECKING:  # grpc costs memory that other commands need not spend
    from kafka_sidecar.control.client import ControlClient

TEXT: Final = "ask a running sidecar, and have it do things, through its control port (control.listen)"

Row = Mapping[str, Any]


class _Argument(NamedTuple):
    name: str
    kind: type
    help: str
    is_needed: bool = True


class _Command(NamedTuple):
    help: str
    arguments: Sequence[_Argument]
    ask: Callable[[ControlClient, argparse.Namespace], list[Row]]
    none: str = "There are none."  # what is said where the answer is empty


def add(ctl: argparse.ArgumentParser) -> None:
    whats = ctl.add_subparsers(dest="what", required=True, metavar="COMMAND")
    for name, of in COMMANDS.items():
        command = whats.add_parser(name, help=of.help, description=of.help)
        for argument in of.arguments:
            command.add_argument(
                argument.name, type=argument.kind, help=argument.help, nargs=None if argument.is_needed else "?"
            )
        command.add_argument(
            "--address", metavar="HOST:PORT", help="the sidecar's control port (default: control.listen)"
        )
        add_config(command)
        command.add_argument("--json", action="store_true", help="print JSON")


def run(options: argparse.Namespace) -> int:
    from kafka_sidecar.control.client import ControlClient

    config = (
        Config() if options.address else load(options.config)
    )  # of another sidecar: its own settings are of no account
    with ControlClient(_address(config, options)) as sidecar:
        rows = COMMANDS[options.what].ask(sidecar, options)
    if options.json:
        print(json.dumps(rows, indent=2))
    else:
        for line in table(rows) or [COMMANDS[options.what].none]:
            print(line)
    return 0


def _address(config: Config, options: argparse.Namespace) -> str:
    address: str = options.address or config.control.listen
    endpoint = endpoint_of(address)
    if endpoint is None or not endpoint.host or not endpoint.port:
        where = "--address" if options.address else "control.listen"
        raise ConfigError(f"{where} is {address!r}: write --address HOST:PORT, as the sidecar's control.listen is")
    return address


# --- lines


def _rows(messages: Sequence[Message]) -> list[Row]:
    return [_row(message) for message in messages]


def _row(message: Message) -> Row:
    """All fields in their order. A message within is a row of its own; None where it is left out."""
    row: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        row[field.name] = (
            (_row(value) if message.HasField(field.name) else None) if isinstance(value, Message) else value
        )
    return row


def table(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    names = list(rows[0])
    lines = [
        [name.replace("_", " ").upper() for name in names],
        *([_cell(row.get(name)) for name in names] for row in rows),
    ]
    for place, name in enumerate(names):
        width = max(len(line[place]) for line in lines)
        is_number = type(rows[0][name]) is int
        for line in lines:
            line[place] = line[place].rjust(width) if is_number else line[place].ljust(width)
    return ["  ".join(line).rstrip() for line in lines]


def _cell(value: Any) -> str:
    if isinstance(value, Mapping):  # a message id
        return f"{value.get('ledger', 0)}:{value.get('entry', 0)}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value in (None, "") else str(value)


# --- commands


def _health(sidecar: ControlClient, options: argparse.Namespace) -> list[Row]:
    service = options.service or "ready"
    if service not in ("ready", "live"):
        raise ConfigError(f"there is no health of {service}: write ready or live")
    if not sidecar.is_healthy(service):
        raise CommandFailed(f"the sidecar is not {service}")
    return [{"health": service}]


def _message_id(sidecar: ControlClient, options: argparse.Namespace) -> list[Row]:
    return [_row(sidecar.find_message_id(options.topic, options.partition, options.offset))]


def _offset(sidecar: ControlClient, options: argparse.Namespace) -> list[Row]:
    numbers = options.message_id.split(":")
    if len(numbers) not in (2, 3) or not all(one.removeprefix("-").isdigit() for one in numbers):
        raise ConfigError(
            f"{options.message_id} is no message id: write LEDGER:ENTRY or LEDGER:ENTRY:BATCHINDEX, as in 12:0"
        )
    return [{"offset": sidecar.find_offset(options.topic, options.partition, *map(int, numbers))}]


def _partitions(sidecar: ControlClient, options: argparse.Namespace) -> list[Row]:
    return _rows(sidecar.partitions(options.topic or ""))


def _groups(sidecar: ControlClient, _: argparse.Namespace) -> list[Row]:
    return _rows(sidecar.groups())


def _fleet(sidecar: ControlClient, _: argparse.Namespace) -> list[Row]:
    return _rows(sidecar.fleet())


def _skip(sidecar: ControlClient, options: argparse.Namespace) -> list[Row]:
    return [_row(sidecar.skip(options.topic, options.partition, options.offset))]


def _drain(sidecar: ControlClient, _: argparse.Namespace) -> list[Row]:
    sidecar.drain()
    return [{"drain": "begun"}]


def _log_levels(sidecar: ControlClient, _: argparse.Namespace) -> list[Row]:
    return [{"logger": name, "level": level} for name, level in sidecar.log_levels().items()]


def _log_level(sidecar: ControlClient, options: argparse.Namespace) -> list[Row]:
    sidecar.set_log_level(options.logger, options.level)
    return [{"logger": options.logger, "level": sidecar.log_levels()[options.logger]}]


_OF_PARTITION: Final = [_Argument("topic", str, "as Kafka clients name it"), _Argument("partition", int, "its number")]
COMMANDS: Final[Mapping[str, _Command]] = {
    "message-id": _Command(
        "find where the record with a Kafka offset is in Pulsar",
        [*_OF_PARTITION, _Argument("offset", int, "of the record")],
        _message_id,
    ),
    "offset": _Command(
        "find the Kafka offset of a Pulsar message",
        [*_OF_PARTITION, _Argument("message_id", str, "LEDGER:ENTRY or LEDGER:ENTRY:BATCHINDEX")],
        _offset,
    ),
    "partitions": _Command(
        "list the partitions in use there",
        [_Argument("topic", str, "only of this topic (default: all)", False)],
        _partitions,
        "None is open there. A sidecar opens a partition when a client asks for it.",
    ),
    "groups": _Command(
        "list the groups that it coordinates",
        [],
        _groups,
        "It coordinates none at the moment. Without kafka.advertised a sidecar begins to when a client asks for a "
        "group; kafka-consumer-groups --list asks all sidecars.",
    ),
    "health": _Command(
        "end with 0 if it serves Kafka clients, else with 2",
        [_Argument("service", str, "ready (default) or live", False)],
        _health,
    ),
    "fleet": _Command("show the fleet as it sees it", [], _fleet),
    "skip": _Command(
        "pass over an entry that can't be read, on every sidecar from now on",
        [*_OF_PARTITION, _Argument("offset", int, "one of its offsets")],
        _skip,
    ),
    "drain": _Command("have it hand over and stop", [], _drain),
    "log-levels": _Command("list its loggers", [], _log_levels),
    "log-level": _Command(
        "set the level of a logger until it ends",
        [_Argument("logger", str, "its name"), _Argument("level", str, "ERROR, WARN, INFO or DEBUG")],
        _log_level,
    ),
}
