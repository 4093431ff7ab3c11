"""A Spark job of its own process: copies a topic into files until it is killed. Arguments: addresses, topic,
directory.
"""

from __future__ import annotations

import sys
from pathlib import Path

from integration.launcher.spark import spark_session


def main() -> None:
    addresses, topic, name = sys.argv[1:]
    directory = Path(name)
    spark = spark_session(directory / "warehouse")
    frame = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", addresses)
        # A Java client before 4.0 knows only whom its last Metadata answer named: of two that die in turn it may know
        # none that lives.
        .option("kafka.metadata.recovery.strategy", "rebootstrap")
        # Its admin client gives a sidecar that is gone a minute, otherwise, before it looks for another.
        .option("kafka.default.api.timeout.ms", "30000")  # longer than a broker takes to start
        .option("kafka.request.timeout.ms", "5000")
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
        .selectExpr("topic", "partition", "offset", "cast(value as string) as value")
    )
    writer = frame.writeStream.format("parquet").option("path", str(directory / "out"))
    query = (
        writer.option("checkpointLocation", str(directory / "checkpoint"))
        .trigger(processingTime="300 milliseconds")
        .start()
    )
    query.awaitTermination()


if __name__ == "__main__":
    main()
