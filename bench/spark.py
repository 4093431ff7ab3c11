"""A batch of Spark's over a topic of 16 partitions: every value is read, and its length added up."""

from __future__ import annotations

import os
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from bench.process import ProcessCost
from integration.kafka_clients import QUIET, create
from integration.launcher.spark import spark_session

RECORDS: Final = int(os.environ.get("BENCH_SPARK_RECORDS", "1000000"))
VALUE: Final = os.urandom(1024)
PARTITIONS: Final = 16
CORES: Final = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkCost:
    system: str
    seconds: float
    records_per_s: float
    mib_s: float
    server_cpu_s: float


def spark_costs(addresses: dict[str, str], pids: dict[str, int], directory: Path) -> list[SparkCost]:
    """Each system in turn, twice; the second reading counts: Spark has compiled its plan, and the systems have their
    caches.
    """
    topics = {system: filled(address, RECORDS) for system, address in addresses.items()}
    spark = spark_session(directory / "warehouse", CORES)
    found: dict[str, SparkCost] = {}
    for _ in range(2):
        for system, address in addresses.items():
            cost = ProcessCost(pids[system])
            begun = time.perf_counter()
            frame = (
                spark.read.format("kafka")
                .option("kafka.bootstrap.servers", address)
                .option("subscribe", topics[system])
                .load()
            )
            count, size = frame.selectExpr("count(*)", "sum(length(value))").first() or (0, 0)
            took = time.perf_counter() - begun
            if (count, size) != (RECORDS, RECORDS * len(VALUE)):
                raise SystemExit(f"Spark has read {count} records of {size} bytes from {system}, and not {RECORDS}")
            found[system] = SparkCost(
                system=system,
                seconds=took,
                records_per_s=count / took,
                mib_s=size / took / 2**20,
                server_cpu_s=cost.cpu_seconds(),
            )
    spark.stop()
    return list(found.values())


def filled(address: str, records: int) -> str:
    topic = f"spark-{uuid.uuid4().hex[:6]}"
    create(address, topic, PARTITIONS)
    client = Producer(
        {"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 20, "batch.size": 200_000, **QUIET}
    )
    for number in range(records):
        while True:
            try:
                client.produce(topic, VALUE, partition=number % PARTITIONS)
                break
            except BufferError:
                client.poll(0.1)
        client.poll(0)
    if client.flush(300):
        raise SystemExit(f"{address} has not taken {records} records")
    return topic
