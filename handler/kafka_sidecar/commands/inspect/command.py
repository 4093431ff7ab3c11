"""The options of `kafka-sidecar inspect`."""

from __future__ import annotations

import argparse
import asyncio
from typing import Final

from kafka_sidecar.commands.command import add_config, loaded
from kafka_sidecar.errors import CommandFailed
from kafka_sidecar.pulsar.entry import Position

TEXT: Final = "show an entry, a partition or a group as it is stored in Pulsar"


def add(command: argparse.ArgumentParser) -> None:
    kinds = command.add_subparsers(dest="what", required=True, metavar="COMMAND")
    entry = _add_kind(kinds, "entry", "TOPIC", "decode one entry, found by its offset or its position")
    _add_partition(entry)
    which = entry.add_mutually_exclusive_group(required=True)
    which.add_argument("--offset", type=int, metavar="N", help="the entry that holds this offset")
    which.add_argument("--position", metavar="LEDGER:ENTRY", help="the entry at this position")
    partition = _add_kind(
        kinds, "partition", "TOPIC", "fold the end of a partition's log: offsets, producers, entries that are hidden"
    )
    _add_partition(partition)
    partition.add_argument("--entries", type=int, default=2_000, metavar="N", help="fold so many (default: 2000)")
    _add_kind(kinds, "group", "GROUP", "list the records of a consumer group")


def _add_kind(
    kinds: argparse._SubParsersAction[argparse.ArgumentParser], name: str, of: str, text: str
) -> argparse.ArgumentParser:
    kind = kinds.add_parser(name, help=text, description=text)
    kind.add_argument("name", metavar=of)
    add_config(kind)
    return kind


def _add_partition(kind: argparse.ArgumentParser) -> None:
    kind.add_argument("--partition", type=int, default=0, metavar="N", help="default: 0")


def run(options: argparse.Namespace) -> int:
    from kafka_sidecar.commands.inspect.inspect import InspectOptions, inspect

    wanted = InspectOptions(
        what=options.what,
        name=options.name,
        partition=getattr(options, "partition", 0),
        offset=getattr(options, "offset", None),
        position=_position(getattr(options, "position", None)),
        entries=getattr(options, "entries", 0),
    )
    return asyncio.run(inspect(loaded(options), wanted))


def _position(given: str | None) -> Position | None:
    if not given:
        return None
    ledger, _, entry = given.partition(":")
    if not (ledger.isdigit() and entry.isdigit()):
        raise CommandFailed(f"--position {given}: write LEDGER:ENTRY, as in 12:0")
    return Position(int(ledger), int(entry))
