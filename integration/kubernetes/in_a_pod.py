"""What the tests run in pods: applications with Kafka clients.

load BOOTSTRAP TOPIC PARTITIONS DIRECTORY   until DIRECTORY has a file `stop`; when records flow there is a file
                                            `flows`, and in the end what its applications saw is in `result.json`
fill BOOTSTRAP TOPIC                        writes a thousand records
spark BOOTSTRAP TOPIC TARGET                a Spark job that copies a topic and compares the copy
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

from integration.fleet import Load
from integration.kafka_clients import produce


def load(bootstrap: str, topic: str, partitions: str, directory: str) -> None:
    at = Path(directory)
    running = Load([bootstrap], topic, int(partitions), {"request.timeout.ms": 10_000, "socket.timeout.ms": 11_000})
    running.wait_for_more()
    (at / "flows").touch()
    while not (at / "stop").exists():
        time.sleep(0.2)
    running.wait_for_more()
    running.stop()
    running.check()
    records = sum(map(len, running.acknowledged.values()))
    result = {"records": records, "failed": running.failed, "timed_out": running.timed_out}
    (at / "result.json").write_text(json.dumps(result))


def fill(bootstrap: str, topic: str) -> None:
    produce(bootstrap, topic, [b"%d" % number for number in range(1_000)])


def spark(bootstrap: str, topic: str, target: str) -> None:
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()

    def read(name: str) -> list[str]:
        options = {"kafka.bootstrap.servers": bootstrap, "subscribe": name, "startingOffsets": "earliest"}
        return sorted(
            row.value
            for row in session.read.format("kafka")
            .options(**options)
            .load()
            .selectExpr("string(value) AS value")
            .collect()
        )

    source = session.read.format("kafka").options(**{"kafka.bootstrap.servers": bootstrap, "subscribe": topic}).load()
    source.write.format("kafka").options(**{"kafka.bootstrap.servers": bootstrap, "topic": target}).save()
    found = read(topic)
    assert found
    assert read(target) == found
    print(f"{len(found)} records copied")
    session.stop()


if __name__ == "__main__":
    programs: dict[str, Callable[..., None]] = {"load": load, "fill": fill, "spark": spark}
    programs[sys.argv[1]](*sys.argv[2:])
