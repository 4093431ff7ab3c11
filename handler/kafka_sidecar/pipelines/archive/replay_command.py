"""`kafka-sidecar pipeline replay`."""

from __future__ import annotations

import argparse
import time
from typing import Final

from kafka_sidecar.errors import ConfigError
from kafka_sidecar.pipelines.archive.command import place_of
from kafka_sidecar.pipelines.copying.names import MirrorName
from kafka_sidecar.pipelines.options import LOCAL, Settings, add_common, add_options, add_spark, table, write_result

TEXT: Final = "write an archive's records into topics: in their order, with their times and headers, each once"
_VALUES: Final = (
    ("--name", "NAME", "of the replay: under it its progress is kept, and it goes on where it was"),
    ("--path", "DIRECTORY", "of an archive of Parquet files"),
    ("--table", "CATALOG.NAMESPACE.NAME", "of an archive in Iceberg, instead of files; --conf names the catalog"),
    ("--prefix", "TEXT", "put this before the topics' names in the target"),
)


def add(command: argparse.ArgumentParser) -> None:
    add_common(command, source=False)
    add_options(command, _VALUES)
    command.add_argument(
        "--topic", action="append", metavar="NAME", help="only this topic of the archive; may be given several times"
    )
    text = "add to partitions that hold what this replay has not written"
    command.add_argument("--into-existing", action="store_true", default=None, help=text)
    add_spark(command)


def run(settings: Settings) -> int:
    path, iceberg = place_of(settings)
    if not settings.text("name"):
        raise ConfigError("--name: give the replay a name; under it it goes on where it was")
    name, target = MirrorName.of(settings.text("name"), "replay"), settings.cluster("target")
    from kafka_sidecar.kafka_client.client import check_reachable
    from kafka_sidecar.pipelines.archive.replay import Replay, ReplayOptions, result_of
    from kafka_sidecar.pipelines.session import ICEBERG, spark_session

    options = ReplayOptions(
        name=name,
        target=target,
        path=path,
        table=iceberg,
        topics=settings.texts("topic"),
        prefix=settings.text("prefix"),
        into_existing=settings.flag("into_existing"),
        dry_run=settings.flag("dry_run"),
    )
    check_reachable(target)
    began = time.monotonic()
    packages = (ICEBERG,) if iceberg else ()
    spark = spark_session(
        "replay", settings.text("master", LOCAL), settings.texts("conf"), refuses_speculation=True, packages=packages
    )
    try:
        replay = Replay(spark, options, lambda text: print(text, flush=True))
        replay.run()
    finally:
        spark.stop()
    result = result_of(replay, time.monotonic() - began)
    write_result(settings.text("result"), result)
    rows: list[list[object]] = [["TOPIC", "PARTITION", "WRITTEN TO", "END"]]
    rows += [[one["topic"], one["partition"], one["next"], one["end"]] for one in result["partitions"]]
    for line in table(rows, frozenset(("PARTITION", "WRITTEN TO", "END"))):
        print(line)
    for (topic, index), problem in sorted(replay.problems.items()):
        print(f"{topic}-{index}: {problem}")
    if options.dry_run:
        print("Nothing was changed: this was a dry run.")
        return 0
    print(f"{result['records']} records written" + ("" if result["complete"] else "; not complete"))
    return 0 if result["complete"] else 1
