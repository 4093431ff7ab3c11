"""Spark in this process, with its Kafka source as `--packages` would bring it. Spark itself comes with pyspark."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Final

import pyspark
from pyspark.sql import SparkSession

from integration.launcher.jars import Bundle, class_path
from integration.launcher.jvm import SHORT_LIVED
from integration.launcher.process import Server, free_port

VERSION: Final = "4.0.0"
CONNECTOR: Final = Bundle(
    name=f"spark-sql-kafka-{VERSION}",
    jars=(f"org.apache.spark:spark-sql-kafka-0-10_2.13:{VERSION}",),
    # Part of Spark itself; a second copy on the class path would only get in its way.
    without=(
        "org.apache.hadoop:hadoop-client-runtime",
        "org.apache.hadoop:hadoop-client-api",
        "org.scala-lang:scala-library",
    ),
)
ICEBERG: Final = Bundle(name="iceberg-1.10.0", jars=("org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0",))


def spark_session(directory: Path, cores: int = 2) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # of its Python tasks
    session = (
        SparkSession.builder.master(f"local[{cores}]")
        .config("spark.jars", ",".join(f"{class_path(CONNECTOR)}:{class_path(ICEBERG)}".split(":")))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(directory))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


class SparkCluster:
    """A standalone cluster of workers with a core each, from pyspark's own jars."""

    def __init__(self, directory: Path, workers: int = 2) -> None:
        self._directory = directory
        self._port = free_port()
        self._master = self._daemon("master", "master.Master", "--host", "127.0.0.1", "--port", str(self._port))
        self._master.wait_until(self._listens)
        self._workers = [self._worker(number) for number in range(workers)]

    @property
    def url(self) -> str:
        return f"spark://127.0.0.1:{self._port}"

    def kill_worker(self, number: int) -> None:
        """With its executors, which are children in its process group; another takes its place."""
        self._workers[number].kill()
        self._workers[number] = self._worker(number)

    def stop(self) -> None:
        for server in (*self._workers, self._master):
            server.kill()

    def _worker(self, number: int) -> Server:
        place = self._directory / f"worker-{number}"
        limits = ("--cores", "1", "--memory", "1g", "--work-dir", str(place))
        return self._daemon(f"worker-{number}", "worker.Worker", self.url, "--host", "127.0.0.1", *limits)

    def _daemon(self, name: str, kind: str, *arguments: str) -> Server:
        home = Path(pyspark.__file__).parent
        command = [
            str(home / "bin" / "spark-class"),
            f"org.apache.spark.deploy.{kind}",
            *arguments,
            "--webui-port",
            str(free_port()),
        ]
        environment = {
            "SPARK_HOME": str(home),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": " ".join(SHORT_LIVED),
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        return Server(f"Spark's {name}", command, self._directory / f"{name}.log", environment)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0
