"""`kafka-sidecar pipeline archive`."""

from __future__ import annotations

import argparse
import time
from typing import Final

from kafka_sidecar.errors import ConfigError
from kafka_sidecar.pipelines.options import LOCAL, Settings, add_common, add_options, add_spark, write_result

TEXT: Final = "write topics into Parquet files or an Apache Iceberg table, each offset exactly once"
_VALUES: Final = (
    ("--path", "DIRECTORY", "of Parquet files, on whatever Hadoop's file systems reach"),
    ("--table", "CATALOG.NAMESPACE.NAME", "of Iceberg, instead of files; --conf names the catalog"),
)
_LISTS: Final = (
    ("--topic", "NAME", "a topic, or a regular expression for whole names"),
    ("--exclude", "NAME", "a topic to leave out, or a regular expression"),
)
_FLAGS: Final = (
    ("--continuous", "go on when all is archived, until it is stopped"),
    ("--accept-loss", "go on where the source has removed records before they were archived"),
)


def add(command: argparse.ArgumentParser) -> None:
    add_common(command, target=False)
    add_options(command, _VALUES, _LISTS, _FLAGS)
    command.add_argument(
        "--batch-records", type=int, metavar="N", help="take up to so many offsets at a time (default: 5000000)"
    )
    text = "put small files together when all is archived, up to so many MiB (default: leave them)"
    command.add_argument("--compact-mib", type=float, metavar="MIB", help=text)
    add_spark(command)


def place_of(settings: Settings) -> tuple[str, str]:
    """A directory or a table."""
    path, table = settings.text("path"), settings.text("table")
    if bool(path) == bool(table):
        raise ConfigError(
            "say where the archive is: --path DIRECTORY for Parquet files, or --table CATALOG.NAMESPACE.NAME for "
            "Iceberg"
        )
    if table and table.count(".") < 2:
        raise ConfigError(f"--table {table}: write CATALOG.NAMESPACE.NAME")
    return path, table


def run(settings: Settings) -> int:
    path, table = place_of(settings)
    source, topics = settings.cluster("source"), settings.texts("topic")
    if not topics:
        raise ConfigError("--topic: name the topics to archive, or a regular expression for their names ('.*' for all)")
    from kafka_sidecar.kafka_client.client import check_reachable
    from kafka_sidecar.pipelines.archive.write import Archive, ArchiveOptions, result_of
    from kafka_sidecar.pipelines.session import ICEBERG, KAFKA_SOURCE, spark_session

    options = ArchiveOptions(
        source=source,
        topics=topics,
        exclude=settings.texts("exclude"),
        path=path,
        table=table,
        batch_records=round(settings.number("batch_records", 5_000_000)),
        compact_bytes=round(settings.number("compact_mib", 0) * 2**20),
        continuous=settings.flag("continuous"),
        accept_loss=settings.flag("accept_loss"),
        dry_run=settings.flag("dry_run"),
    )
    check_reachable(source)
    began = time.monotonic()
    packages = (KAFKA_SOURCE, ICEBERG) if table else (KAFKA_SOURCE,)
    spark = spark_session("archive", settings.text("master", LOCAL), settings.texts("conf"), packages=packages)
    try:
        archive = Archive(spark, options, lambda text: print(text, flush=True))
        archive.run()
    finally:
        spark.stop()
    result = result_of(archive, time.monotonic() - began)
    write_result(settings.text("result"), result)
    for topic, index, begin, end in result["lost"]:
        print(f"{topic}-{index}: offsets {begin} to {end - 1} were removed before they could be archived")
    if options.dry_run:
        print("Nothing was changed: this was a dry run.")
    else:
        print(f"{result['offsets']} offsets archived in {result['batches']} batches")
    return 0
