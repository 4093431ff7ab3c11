"""The Spark that a pipeline runs on: one of its own in this process, or the cluster that `--master` or spark-submit names."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

import handler
from handler.errors import ConfigError

# Set where spark-submit has started this program: then its options count.
_SUBMITTED: Final = "PYSPARK_GATEWAY_PORT"


def spark_session(name: str, master: str, conf: tuple[str, ...] = (), refuses_speculation: bool = False) -> SparkSession:
    """ConfigError where Spark would run a task twice at the same time and the pipeline can't have that."""
    place = str(Path(handler.__file__).parents[1])
    builder = SparkSession.builder.appName(f"kafka-sidecar {name}")
    if _SUBMITTED not in os.environ:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (place, os.environ.get("PYTHONPATH", ""))))
        builder = builder.master(master).config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
        if master.startswith("local"):
            builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    for setting in conf:
        key, separator, value = setting.partition("=")
        if not separator:
            raise ConfigError(f"--conf {setting}: write KEY=VALUE")
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if refuses_speculation and spark.conf.get("spark.speculation", "false") == "true":
        spark.stop()
        raise ConfigError(f"spark.speculation: {name} refuses it, two attempts of a task would fence each other. Set it to false")
    spark.sparkContext.setLogLevel("ERROR")
    return spark
