"""The Spark that a pipeline runs on: one of its own in this process, or the cluster that `--master` or spark-submit
names.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import SparkSession

import kafka_sidecar
from kafka_sidecar.errors import ConfigError

# The Kafka connector must have the version of the installed Spark.
KAFKA_SOURCE: Final = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
ICEBERG: Final = "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0"
LOCAL_SHUFFLES: Final = 4 * (os.cpu_count() or 1)
# spark-submit sets this environment variable. Its options then count instead of the pipeline's.
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"


def settings_of(conf: tuple[str, ...]) -> dict[str, str]:
    """What every pipeline's session is set to, and what `--conf` sets. ConfigError where that is no setting."""
    settings = {
        # Dates and hours of an archive are in UTC, whatever the time zone of the machine.
        "spark.sql.session.timeZone": "UTC",
        # Else Spark would read a topic named 007 as the number 7.
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    }
    for setting in conf:
        key, separator, value = setting.partition("=")
        if not separator:
            raise ConfigError(f"--conf {setting}: write KEY=VALUE")
        settings[key] = value
    return settings


def spark_session(
    name: str,
    master: str,
    conf: tuple[str, ...] = (),
    refuses_speculation: bool = False,
    packages: tuple[str, ...] = (),
) -> SparkSession:
    """`packages` are brought from Maven's repository, unless a setting names jars.

    ConfigError where Spark would run a task twice at the same time and the pipeline can't have that.
    """
    place = str(Path(kafka_sidecar.__file__).parents[1])
    builder = SparkSession.builder.appName(f"kafka-sidecar {name}")
    if _SUBMITTED not in os.environ:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (place, os.environ.get("PYTHONPATH", ""))))
        builder = (
            builder.master(master).config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
        )
        builder = builder.config(
            "spark.executorEnv.PYTHONPATH", place
        )  # for Spark workers on this machine; on others the package must be installed
        if master.startswith("local"):
            builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
            # Spark's default of 200 partitions is meant for a cluster.
            builder = builder.config("spark.sql.shuffle.partitions", str(LOCAL_SHUFFLES))
        if packages and not any(setting.startswith("spark.jars") for setting in conf):
            builder = builder.config("spark.jars.packages", ",".join(packages))
    for key, value in settings_of(conf).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if refuses_speculation and spark.conf.get("spark.speculation", "false") == "true":
        spark.stop()
        raise ConfigError(
            f"spark.speculation: {name} refuses it, two attempts of a task would fence each other. Set it to false"
        )
    spark.sparkContext.setLogLevel("ERROR")
    return spark
