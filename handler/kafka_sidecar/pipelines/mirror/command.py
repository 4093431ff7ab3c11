"""`kafka-sidecar pipeline mirror`."""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka_sidecar.errors import ConfigError
from kafka_sidecar.pipelines.copying.names import MirrorName
from kafka_sidecar.pipelines.copying.places import shown
from kafka_sidecar.pipelines.options import LOCAL, Settings, add_common, add_options, add_spark, table, write_result

if TYPE_CHECKING:  # imported late, because they import aiokafka, which no other command needs
    from kafka_sidecar.pipelines.mirror.plan import MirrorOptions
    from kafka_sidecar.pipelines.mirror.run import Mirror

TEXT: Final = "copy topics from one Kafka cluster to another, exactly once, with a record of where each offset has gone"
MOST_SHOWN: Final = 10
DELIVERIES: Final = ("exactly-once", "at-least-once")
_VALUES: Final = (
    ("--name", "NAME", "of the mirror: under it its progress is kept, and it goes on where it was"),
    ("--prefix", "TEXT", "put this before the topics' names in the target"),
    ("--delivery", "HOW", "exactly-once, or at-least-once for a target without transactions (default: exactly-once)"),
)
LISTS: Final = (
    ("--topic", "NAME", "a topic, or a regular expression for whole names"),
    ("--exclude", "NAME", "a topic to leave out, or a regular expression"),
    ("--skip-config", "KEY", "a config of the source's topics that new ones are not to have"),
)
_FLAGS: Final = (
    ("--continuous", "go on when all has caught up, until it is stopped"),
    ("--accept-loss", "go on where the source has removed records before they were copied"),
    ("--into-existing", "add to partitions that hold what this mirror has not written"),
    ("--more-partitions", "take topics that have more partitions in the target"),
)
_SECONDS: Final = (
    ("--round-seconds", "how long a task copies before the driver looks again (default: 10)"),
    ("--patience-seconds", "how long a partition may stand still before it is given up (default: 300)"),
)


def add(command: argparse.ArgumentParser) -> None:
    add_common(command)
    add_options(command, _VALUES, LISTS, _FLAGS, _SECONDS)
    add_spark(command)


def options_of(settings: Settings, kind: str = "mirror") -> MirrorOptions:
    from kafka_sidecar.pipelines.mirror.plan import MirrorOptions

    delivery = settings.text("delivery", DELIVERIES[0])
    if delivery not in DELIVERIES:
        raise ConfigError(f"delivery = {delivery}: one of {', '.join(DELIVERIES)}")
    if not settings.text("name"):
        raise ConfigError(f"--name: give the {kind} a name; under it it goes on where it was")
    if not settings.texts("topic"):
        raise ConfigError("--topic: name the topics to copy, or a regular expression for their names ('.*' for all)")
    source = settings.cluster("source")
    target = settings.cluster("target") if settings.has("target") or kind == "mirror" else source
    return MirrorOptions(
        name=MirrorName.of(settings.text("name")),
        source=source,
        target=target,
        topics=settings.texts("topic"),
        exclude=settings.texts("exclude"),
        prefix=settings.text("prefix"),
        continuous=settings.flag("continuous"),
        exactly_once=delivery == DELIVERIES[0],
        accept_loss=settings.flag("accept_loss"),
        into_existing=settings.flag("into_existing"),
        more_partitions=settings.flag("more_partitions"),
        skip_configs=settings.texts("skip_config"),
        dry_run=settings.flag("dry_run"),
        round_seconds=settings.number("round_seconds", 10.0),
        patience_seconds=settings.number("patience_seconds", 300.0),
    )


def run(settings: Settings) -> int:
    options = options_of(settings)
    from kafka_sidecar.pipelines.mirror.run import Mirror, result_of

    began = time.monotonic()
    mirror = Mirror(None, options, say)
    asyncio.run(mirror.look())  # faults in the settings or the clusters are reported before Spark starts
    if not options.dry_run:
        from kafka_sidecar.pipelines.session import spark_session

        mirror.spark = spark = spark_session(
            "mirror", settings.text("master", LOCAL), settings.texts("conf"), refuses_speculation=True
        )
        try:
            mirror.run()
        except KeyboardInterrupt:
            say("stopped: it goes on from here when it is started again")
        finally:
            spark.stop()
    result = result_of(mirror, time.monotonic() - began)
    write_result(settings.text("result"), result)
    return say_result(mirror, result)


def say_result(mirror: Mirror, result: Mapping[str, Any]) -> int:
    """For people; the status of the program."""
    rows: list[list[object]] = [["TOPIC", "PARTITION", "NEXT", "SOURCE END", "BEHIND", "RECORDS", "TARGET END"]]
    for (topic, index), one in sorted(mirror.partitions.items()):
        target_end = None if one.progress is None else one.progress.target_end
        rows.append([topic, index, shown(one.next_source), one.high_watermark, one.behind, one.records, target_end])
    for line in table(rows, frozenset(str(one) for one in rows[0][1:])):
        say(line)
    for (topic, index), one in sorted(mirror.partitions.items()):
        for begin, end in one.lost:
            say(
                f"{topic}-{index}: the source has removed what was from {shown(begin)} to before {shown(end)} before "
                "it could be copied"
            )
        for text in list(one.left_out)[:MOST_SHOWN]:
            say(f"{topic}-{index}: left out: {text}")
        if len(one.left_out) > MOST_SHOWN:
            say(
                f"{topic}-{index}: {len(one.left_out) - MOST_SHOWN} more were left out: --result FILE lists up to a "
                "thousand"
            )
        for begin, end in one.repeats:
            say(f"{topic}-{index}: target offsets {begin} to {end - 1} may be there twice")
        if one.unstable:
            say(f"{topic}-{index}: {one.unstable} offsets of the source are behind a transaction that has not ended")
        if one.fault:
            say(f"{topic}-{index}: {one.fault}")
    if mirror.options.dry_run:
        say("Nothing was changed: this was a dry run.")
        return 1 if any(one.fault for one in mirror.partitions.values()) else 0
    say(
        f"{result['records']} records copied in {result['seconds']:.1f} s"
        + ("" if result["complete"] else "; not complete")
    )
    return 0 if result["complete"] else 1


def say(text: str) -> None:
    print(text, flush=True)
