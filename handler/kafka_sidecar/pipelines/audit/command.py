"""`kafka-sidecar pipeline audit`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Final

from kafka_sidecar.errors import ConfigError
from kafka_sidecar.kafka_client.cluster import Cluster
from kafka_sidecar.pipelines.copying.names import MirrorName
from kafka_sidecar.pipelines.options import LOCAL, Settings, add_common, add_options, add_spark, write_result
from kafka_sidecar.pipelines.options import table as lines_of

TEXT: Final = (
    "read topics, or an archive, in parallel and account for every offset; compare with a copy record by record"
)
_VALUES: Final = (
    ("--path", "DIRECTORY", "read an archive of Parquet files instead of --source"),
    ("--table", "CATALOG.NAMESPACE.NAME", "read an archive in Iceberg instead of --source"),
    ("--out", "DIRECTORY", "where the report (report.html) and the Parquet files with all findings are written"),
    ("--against-path", "DIRECTORY", "compare with this archive of Parquet files"),
    ("--against-table", "CATALOG.NAMESPACE.NAME", "compare with this archive in Iceberg"),
    ("--prefix", "TEXT", "compare with topics of --target that have this before their names"),
    ("--name", "NAME", "of the mirror that has copied them to --target: each record is compared with its own copy"),
    ("--verify", "FILE", "what kafka-sidecar verify --json has printed: the causes of gaps"),
)


def add(command: argparse.ArgumentParser) -> None:
    add_common(command)
    command.add_argument(
        "--topic",
        action="append",
        metavar="NAME",
        help="a topic; of a cluster also a regular expression; several times",
    )
    add_options(command, _VALUES)
    add_spark(command)


def run(settings: Settings) -> int:
    path, table = settings.text("path"), settings.text("table")
    cluster = settings.cluster("source") if not (path or table) else None
    topics, out = settings.texts("topic"), settings.text("out")
    if cluster is not None and not topics:
        raise ConfigError("--topic: name the topics to read, or a regular expression for their names ('.*' for all)")
    if not out:
        raise ConfigError("--out: say in which directory the report is to be")
    against_path, against_table = settings.text("against_path"), settings.text("against_table")
    has_target = settings.has("target")
    from kafka_sidecar.kafka_client.client import check_reachable

    if sum((bool(against_path), bool(against_table), has_target)) > 1:
        raise ConfigError("compare with one place at a time: --target, --against-path or --against-table")
    target = settings.cluster("target") if has_target else None
    check_reachable(*(one for one in (cluster, target) if one is not None))
    if settings.flag("dry_run"):
        return _plan(cluster, topics, path or table, out)
    from kafka_sidecar.pipelines.audit.audit import Audit, AuditOptions, RecordSource, result_of
    from kafka_sidecar.pipelines.session import ICEBERG, KAFKA_SOURCE, spark_session

    against = None
    if against_path or against_table or has_target:
        mirror = MirrorName.of(settings.text("name")) if settings.text("name") and has_target else None
        prefix = settings.text("prefix") if has_target else ""
        against = RecordSource(cluster=target, path=against_path, table=against_table, prefix=prefix, mirror=mirror)
    options = AuditOptions(
        source=RecordSource(cluster=cluster, path=path, table=table),
        topics=topics,
        out=out,
        against=against,
        verify_file=settings.text("verify"),
    )
    Path(out).mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    packages = (KAFKA_SOURCE, *((ICEBERG,) if table or against_table else ()))
    spark = spark_session("audit", settings.text("master", LOCAL), settings.texts("conf"), packages=packages)
    try:
        audit = Audit(spark, options, lambda text: print(text, flush=True))
        audit.run()
    finally:
        spark.stop()
    write_result(settings.text("result"), result_of(audit, time.monotonic() - began))
    for line in (*audit.findings, *audit.notes):
        print(line)
    print(f"{out}/report.html has the report")
    return 1 if audit.findings else 0


def _plan(cluster: Cluster | None, topics: tuple[str, ...], archive: str, out: str) -> int:
    if cluster is None:
        print(f"{', '.join(topics) or 'all topics'} of {archive} would be read, and {out} written.")
    else:
        from kafka_sidecar.pipelines.audit.audit import looked_at

        found = looked_at(cluster, topics)
        rows: list[list[object]] = [["TOPIC", "PARTITION", "FROM", "TO", "OFFSETS"]]
        rows += [[*at, found.firsts[at], end, end - found.firsts[at]] for at, end in sorted(found.ends.items())]
        for line in lines_of(rows, frozenset(str(one) for one in rows[0][1:])):
            print(line)
        print(f"All of that would be read, and {out} written.")
    print("Nothing was done: this was a dry run.")
    return 0
