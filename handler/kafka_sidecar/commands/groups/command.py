"""The options of `kafka-sidecar groups`."""

from __future__ import annotations

import argparse
import asyncio
import logging
from typing import Final

from kafka_sidecar.commands.command import add_bootstrap_server, add_config, bootstrap_of, loaded

TEXT: Final = "move a group's offsets between Kafka and Pulsar subscriptions of its name"
IMPORT: Final = "commit, for a Kafka group, the positions of the Pulsar subscriptions of its name"
EXPORT: Final = "put Pulsar subscriptions of a group's name to where the Kafka group has committed"
TRANSLATE: Final = "replace offsets that a group has committed with Kafka-on-Pulsar before 2.8 by continuous ones"


def add(command: argparse.ArgumentParser) -> None:
    directions = command.add_subparsers(dest="direction", required=True, metavar="COMMAND")
    for name, text in (("import", IMPORT), ("export", EXPORT)):
        transfer = directions.add_parser(name, help=text, description=text)
        add_config(transfer)
        transfer.add_argument("--group", required=True, help="the group, and the subscription")
        transfer.add_argument(
            "--topic", action="append", default=[], help="only this topic; may be given several times"
        )
        _add_of_both(transfer)
    translate = directions.add_parser("translate", help=TRANSLATE, description=TRANSLATE)
    add_config(translate)
    translate.add_argument("--group", required=True, help="the group")
    _add_of_both(translate)


def _add_of_both(command: argparse.ArgumentParser) -> None:
    add_bootstrap_server(command)
    command.add_argument("--dry-run", action="store_true", help="print what would be set, and change nothing")


def run(options: argparse.Namespace) -> int:
    from kafka_sidecar.commands.groups.transfer import TransferOptions, transfer
    from kafka_sidecar.commands.groups.translate import TranslateOptions, translate

    config = loaded(options)
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # our own sentence says why it failed
    bootstrap = bootstrap_of(config, options)
    if options.direction == "translate":
        translation = TranslateOptions(group=options.group, bootstrap=bootstrap, dry_run=options.dry_run)
        return asyncio.run(translate(config, translation, print))
    wanted = TransferOptions(
        direction=options.direction,
        group=options.group,
        topics=tuple(options.topic),
        bootstrap=bootstrap,
        dry_run=options.dry_run,
    )
    return asyncio.run(transfer(config, wanted, print))
