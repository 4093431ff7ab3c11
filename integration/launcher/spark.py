"""Spark's Kafka source, as `--packages` would bring it. Spark itself comes with pyspark."""

from __future__ import annotations

from typing import Final

from integration.launcher.jars import Bundle

VERSION: Final = "4.0.0"
CONNECTOR: Final = Bundle(
    name=f"spark-sql-kafka-{VERSION}",
    jars=(f"org.apache.spark:spark-sql-kafka-0-10_2.13:{VERSION}",),
    # Part of Spark itself; a second copy on the class path would only get in its way.
    without=("org.apache.hadoop:hadoop-client-runtime", "org.apache.hadoop:hadoop-client-api", "org.scala-lang:scala-library"),
)
