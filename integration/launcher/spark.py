"""Spark in this process, with its Kafka source as `--packages` would bring it. Spark itself comes with pyspark."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from integration.launcher.jars import Bundle, class_path

VERSION: Final = "4.0.0"
CONNECTOR: Final = Bundle(
    name=f"spark-sql-kafka-{VERSION}",
    jars=(f"org.apache.spark:spark-sql-kafka-0-10_2.13:{VERSION}",),
    # Part of Spark itself; a second copy on the class path would only get in its way.
    without=("org.apache.hadoop:hadoop-client-runtime", "org.apache.hadoop:hadoop-client-api", "org.scala-lang:scala-library"),
)


def spark_session(directory: Path, cores: int = 2) -> SparkSession:
    session = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.jars", ",".join(class_path(CONNECTOR).split(":")))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(directory))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session
