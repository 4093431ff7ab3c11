"""What an audit finds out, as DataFrames over rows of the archive's schema: Spark's work, nothing passes through the
driver but results.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

# Rows per topic in the tables of the most frequent keys and of the largest records.
MOST_KEYS: Final = 20
LARGEST: Final = 20
_PLACE: Final = ("topic", "partition")
_RUN: Final = "source: bigint, target: bigint, length: bigint, times: bigint, stride: bigint"


def measured(rows: DataFrame) -> DataFrame:
    """Every record's place, time, sizes and key, and the offset and greatest time before it. All else is made of
    this.
    """
    before = Window.partitionBy(*_PLACE).orderBy("offset")
    headers = F.aggregate(
        "headers",
        F.lit(0),
        lambda size, one: size + F.length(one["key"]) + F.coalesce(F.length(one["value"]), F.lit(0)),
    )
    sizes = [F.coalesce(F.length(name), F.lit(0)) for name in ("key", "value")]
    return rows.select(
        *_PLACE,
        "offset",
        "timestamp",
        "key",
        (sizes[0] + sizes[1] + F.coalesce(headers, F.lit(0))).cast("long").alias("bytes"),
        F.lag("offset").over(before).alias("offset_before"),
        F.max("timestamp").over(before.rowsBetween(Window.unboundedPreceding, -1)).alias("time_before"),
    )


def partitions(records: DataFrame) -> DataFrame:
    """Each partition's account."""
    step = F.col("offset") - F.col("offset_before")
    return (
        records.groupBy(*_PLACE)
        .agg(
            F.count("*").alias("records"),
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
            _count(step > 1).alias("gaps"),
            F.sum(F.when(step > 1, step - 1).otherwise(0)).alias("missing"),
            _count(step == 0).alias("repeats"),
            _count(F.col("timestamp") < F.col("time_before")).alias("earlier_than_before"),
            F.min("timestamp").alias("earliest"),
            F.max("timestamp").alias("latest"),
            F.sum("bytes").alias("bytes"),
            F.max("bytes").alias("largest"),
            _count(F.col("key").isNull()).alias("without_key"),
        )
        .orderBy(*_PLACE)
    )


def gaps(records: DataFrame) -> DataFrame:
    """Offsets that no record has, and what is before and behind them."""
    step = F.col("offset") - F.col("offset_before")
    found = records.where(step > 1)
    return found.select(*_PLACE, (F.col("offset_before") + 1).alias("from"), (F.col("offset") - 1).alias("to")).orderBy(
        *_PLACE, "from"
    )


def hours(records: DataFrame) -> DataFrame:
    """Records and bytes over time."""
    return (
        records.groupBy("topic", F.date_trunc("hour", "timestamp").alias("hour"))
        .agg(F.count("*").alias("records"), F.sum("bytes").alias("bytes"))
        .orderBy("topic", "hour")
    )


def keys(records: DataFrame) -> DataFrame:
    """The most frequent keys of each topic, and their share."""
    counted = (
        records.where(F.col("key").isNotNull())
        .groupBy("topic", "key")
        .agg(F.count("*").alias("records"), F.sum("bytes").alias("bytes"))
    )
    ranked = counted.withColumn(
        "rank", F.row_number().over(Window.partitionBy("topic").orderBy(F.desc("records"), "key"))
    )
    return ranked.where(F.col("rank") <= MOST_KEYS).orderBy("topic", "rank")


def largest(records: DataFrame) -> DataFrame:
    """The largest records of each topic."""
    rank = F.row_number().over(Window.partitionBy("topic").orderBy(F.desc("bytes"), "partition", "offset"))
    columns = (*_PLACE, "offset", "timestamp", "bytes", "rank")
    return records.withColumn("rank", rank).where(F.col("rank") <= LARGEST).select(*columns).orderBy("topic", "rank")


RUNS: Final = "topic string, partition int, source bigint, target bigint, length bigint, times bigint, stride bigint"


BOUNDS: Final = "topic string, partition int, source_end bigint, target_begin bigint, target_end bigint"


def within(rows: DataFrame, bounds: DataFrame, begin: Column, end: Column) -> DataFrame:
    """Those that are to be compared. `bounds` has the schema BOUNDS."""
    return (
        rows.join(bounds, on=[*_PLACE])
        .where((F.col("offset") >= begin) & (F.col("offset") < end))
        .select(*rows.columns)
    )


def in_order(rows: DataFrame) -> DataFrame:
    """With each record's place in its partition's order as its number."""
    return rows.withColumn("number", F.row_number().over(Window.partitionBy(*_PLACE).orderBy("offset")).cast("long"))


def by_offset(rows: DataFrame) -> DataFrame:
    return rows.withColumn("number", F.col("offset"))


def by_runs(rows: DataFrame, runs: DataFrame) -> DataFrame:
    """With the offset that a mirror has given each record's copy; null where it has copied none. `runs` has the schema
    RUNS.
    """
    run = F.struct("source", "target", "length", "times", "stride")
    places = rows.select(
        *_PLACE, "offset", F.lit(1).alias("kind"), F.lit(None).cast("struct<" + _RUN + ">").alias("run")
    )
    begins = runs.select(*_PLACE, F.col("source").alias("offset"), F.lit(0).alias("kind"), run.alias("run"))
    # For each record, the last run of copied offsets that begins at or before it.
    before = Window.partitionBy(*_PLACE).orderBy("offset", "kind").rowsBetween(Window.unboundedPreceding, 0)
    found = begins.unionByName(places).withColumn("run", F.last("run", ignorenulls=True).over(before)).where("kind = 1")
    found = found.withColumn(
        "piece", F.expr("if(run.stride = 0, 0, least((offset - run.source) div run.stride, run.times - 1))")
    )
    found = found.withColumn("at", F.expr("offset - run.source - piece * run.stride"))
    number = F.expr("if(at < run.length, run.target + piece * run.length + at, null)")
    return rows.join(found.select(*_PLACE, "offset", number.alias("number")), on=[*_PLACE, "offset"])


def fingerprints(rows: DataFrame) -> DataFrame:
    """Each record's number and a hash of what it is."""
    # xxhash64 skips nulls, so the hash also takes which fields are null.
    nulls = [F.isnull(name) for name in ("key", "value", "headers")]
    content = F.xxhash64("key", "value", F.to_json("headers"), F.unix_millis("timestamp"), *nulls)
    return rows.select(*_PLACE, "offset", "number", content.alias("content"))


def differences(left: DataFrame, right: DataFrame) -> DataFrame:
    """Records that are on one side alone, or are others. Both are fingerprints."""
    one, other = left.alias("l"), right.alias("r")
    same_place = [F.col(f"l.{name}") == F.col(f"r.{name}") for name in (*_PLACE, "number")]
    joined = one.join(other, on=same_place, how="full_outer")
    is_same = F.col("l.content") == F.col("r.content")
    return joined.where(~F.coalesce(is_same, F.lit(False))).select(
        *(F.coalesce(f"l.{name}", f"r.{name}").alias(name) for name in (*_PLACE, "number")),
        F.col("l.offset").alias("offset"),
        F.col("r.offset").alias("other_offset"),
    )


def _count(condition: Column) -> Column:
    return F.sum(F.when(condition, 1).otherwise(0))
