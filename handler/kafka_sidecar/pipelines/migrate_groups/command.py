"""`kafka-sidecar pipeline migrate-groups`."""

from __future__ import annotations

import argparse
import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from kafka_sidecar.errors import ConfigError
from kafka_sidecar.pipelines.copying.names import MirrorName
from kafka_sidecar.pipelines.copying.places import shown
from kafka_sidecar.pipelines.options import Settings, add_common, table, write_result

if TYPE_CHECKING:  # imported late, because it imports aiokafka, which no other command needs
    from kafka_sidecar.pipelines.migrate_groups.groups import Step

TEXT: Final = (
    "set what groups have committed in the source in the target of a mirror, translated through its record of offsets"
)


def add(command: argparse.ArgumentParser) -> None:
    add_common(command)
    command.add_argument("--name", metavar="NAME", help="of the mirror that has copied the topics")
    text = "a group, or a regular expression for whole names; may be given several times"
    command.add_argument("--group", action="append", metavar="NAME", help=text)
    text = "replace what a group has committed in the target already"
    command.add_argument("--overwrite", action="store_true", default=None, help=text)
    text = "also set offsets whose record was removed on one side, so that it can't be compared"
    command.add_argument("--unproved", action="store_true", default=None, help=text)


def run(settings: Settings) -> int:
    from kafka_sidecar.pipelines.migrate_groups.groups import NOT_ALONE, GroupsOptions, migrate, result_of

    if not settings.text("name"):
        raise ConfigError("--name: name the mirror that has copied the topics")
    if not settings.texts("group"):
        raise ConfigError("--group: name the groups to move, or a regular expression for their names ('.*' for all)")
    options = GroupsOptions(
        name=MirrorName.of(settings.text("name")),
        source=settings.cluster("source"),
        target=settings.cluster("target"),
        groups=settings.texts("group"),
        overwrite=settings.flag("overwrite"),
        unproved=settings.flag("unproved"),
        dry_run=settings.flag("dry_run"),
    )
    steps = asyncio.run(migrate(options))
    write_result(settings.text("result"), result_of(options, steps))
    if not steps:
        print("None of these groups has committed an offset.")
        return 1
    rows: list[list[object]] = [["GROUP", "TOPIC", "PARTITION", "COMMITTED", "IN TARGET", "FIRST RECORD THERE"]]
    rows += [
        [
            step.group,
            step.topic,
            step.partition,
            step.committed.offset,
            None if step.place is None else step.place.target,
            _shown(step),
        ]
        for step in steps
    ]
    for line in table(rows, frozenset(("PARTITION", "COMMITTED", "IN TARGET"))):
        print(line)
    if options.dry_run:
        print("Nothing was changed: this was a dry run.")
    else:
        print(f"{sum(step.is_to_be_set for step in steps)} offsets set")
    for group, problem in {
        step.group: step.problem for step in steps if step.problem and step.problem != NOT_ALONE
    }.items():
        print(f"{group} {'would not be' if options.dry_run else 'was not'} moved: {problem}")
    return 1 if any(step.problem for step in steps) else 0


def _shown(step: Step) -> str:
    if step.problem or step.note or step.first is None:
        return step.problem or step.note or "-"
    when = (
        datetime.fromtimestamp(step.first.timestamp / 1_000, UTC).isoformat(timespec="milliseconds")
        if step.first.timestamp >= 0
        else "no time"
    )
    key = "no key" if step.first.key is None else "key " + repr(step.first.key[:20])[1:]
    place = None if step.place is None else step.place.first_source
    known = "the same as in the source" if place is None or place >= 0 else f"it was {shown(place)} in the log"
    return f"offset {step.first.offset}, {when}, {key}: {known}"
