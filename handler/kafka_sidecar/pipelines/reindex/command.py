"""`kafka-sidecar pipeline reindex`."""

from __future__ import annotations

import argparse
import time
from typing import Final

from kafka_sidecar.errors import ConfigError
from kafka_sidecar.pipelines.mirror.command import LISTS, options_of, say, say_result
from kafka_sidecar.pipelines.options import LOCAL, Settings, add_common, add_options, add_spark, write_result

TEXT: Final = (
    "copy topics that begin with entries from before the index into new ones, in which every record has an offset"
)
_VALUES: Final = (
    ("--name", "NAME", "of the reindex: under it its progress is kept, and it goes on where it was"),
    ("--prefix", "TEXT", "put this before the topics' names in the target"),
    ("--pulsar-url", "URL", "of the Pulsar cluster behind the source, as pulsar://broker:6650"),
    ("--pulsar-admin-url", "URL", "its admin address, as http://broker:8080"),
    ("--listener-name", "NAME", "the advertised listener to ask the brokers for"),
    (
        "--namespace",
        "TENANT/NAMESPACE",
        "of topics without one in their name, as the sidecar has it (default: public/default)",
    ),
)
_FLAGS: Final = (
    ("--continuous", "go on copying what is written, until it is stopped"),
    ("--accept-loss", "go on without entries that can't be read, or were removed before they were copied"),
    ("--into-existing", "add to partitions that hold what this reindex has not written"),
    ("--more-partitions", "take topics that have more partitions in the target"),
)
_SECONDS: Final = (("--patience-seconds", "how long a partition may stand still before it is given up (default: 300)"),)


def add(command: argparse.ArgumentParser) -> None:
    add_common(command)
    add_options(command, _VALUES, LISTS, _FLAGS, _SECONDS)
    add_spark(command)


def run(settings: Settings) -> int:
    options = options_of(settings, "reindex")
    for name in ("pulsar_url", "pulsar_admin_url"):
        if not settings.text(name):
            raise ConfigError(
                f"--{name.replace('_', '-')}: say where Pulsar is; Kafka's protocol does not reach entries without an "
                "index"
            )
    import pyarrow  # noqa: F401  # its lack is said before anything is done

    namespace = settings.text("namespace", "public/default")
    if not all(namespace.partition("/")[::2]) or namespace.count("/") != 1:
        raise ConfigError(f"--namespace {namespace}: write TENANT/NAMESPACE")
    from kafka_sidecar.pipelines.mirror.run import Mirror, result_of
    from kafka_sidecar.pipelines.reindex.run import Reindex
    from kafka_sidecar.pipelines.reindex.source import PulsarSource

    began = time.monotonic()
    pulsar = PulsarSource(
        url=settings.text("pulsar_url"),
        admin_url=settings.text("pulsar_admin_url"),
        listener_name=settings.text("listener_name"),
        namespace=namespace,
    )
    reindex = Reindex(Mirror(None, options, say), pulsar, say)
    reindex.reach()  # fails before a topic is created in the target
    reindex.look()  # other faults are reported before Spark starts
    for topic, index in sorted(reindex.has_none_left):
        say(f"{topic}-{index}: every entry that is left to copy has an index")
    for (topic, index), head in sorted(reindex.heads.items()):
        behind = (
            "nothing has an index yet" if head.first_offset is None else f"offset {head.first_offset} is behind them"
        )
        say(f"{topic}-{index}: {head.entries} entries without an index, {head.first} to {head.last}; {behind}")
    if not options.dry_run:
        from kafka_sidecar.pipelines.session import spark_session

        spark = spark_session(
            "reindex", settings.text("master", LOCAL), settings.texts("conf"), refuses_speculation=True
        )
        try:
            reindex.run(spark)
        except KeyboardInterrupt:
            say("stopped: it goes on from here when it is started again")
        finally:
            spark.stop()
    result = result_of(reindex.mirror, time.monotonic() - began) | {"pipeline": "reindex"}
    write_result(settings.text("result"), result)
    return say_result(reindex.mirror, result)
