"""The options of `kafka-sidecar verify`."""

from __future__ import annotations

import argparse
from typing import Final

from kafka_sidecar.commands.command import add_config, loaded, run_in_uvloop
from kafka_sidecar.errors import CommandFailed

TEXT: Final = "walk topics and account for every offset; ends with 1 where something is wrong"


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("topic", nargs="*", metavar="TOPIC")
    command.add_argument("--namespace", default="", metavar="TENANT/NAMESPACE", help="all topics of a namespace")
    command.add_argument("--partition", type=int, metavar="N", help="only this one (default: all)")
    command.add_argument("--json", action="store_true", help="print one JSON object")
    add_config(command)


def run(options: argparse.Namespace) -> int:
    from kafka_sidecar.commands.verify.verify import VerifyOptions, verify

    config = loaded(options)
    if not options.topic and not options.namespace:
        raise CommandFailed("name a topic, or all of a namespace with --namespace tenant/namespace")
    if options.namespace and options.namespace.count("/") != 1:
        raise CommandFailed(f"--namespace {options.namespace}: write tenant/namespace")
    wanted = VerifyOptions(
        topics=tuple(options.topic), namespace=options.namespace, partition=options.partition, json=options.json
    )
    return run_in_uvloop(verify(config, wanted))
