"""What an audit finds out, as DataFrames over rows of the archive's schema: Spark's work, nothing passes through the driver but results."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

# Of each topic.
MOST_KEYS: Final = 20
LARGEST: Final = 20
_PLACE: Final = ("topic", "partition")


def measured(rows: DataFrame) -> DataFrame:
    """Every record's place, time, sizes and key, and the offset and greatest time before it. All else is made of this."""
    before = Window.partitionBy(*_PLACE).orderBy("offset")
    headers = F.aggregate("headers", F.lit(0), lambda size, one: size + F.length(one["key"]) + F.coalesce(F.length(one["value"]), F.lit(0)))
    sizes = [F.coalesce(F.length(name), F.lit(0)) for name in ("key", "value")]
    return rows.select(
        *_PLACE, "offset", "timestamp", "key",
        (sizes[0] + sizes[1] + F.coalesce(headers, F.lit(0))).cast("long").alias("bytes"),
        F.lag("offset").over(before).alias("offset_before"),
        F.max("timestamp").over(before.rowsBetween(Window.unboundedPreceding, -1)).alias("time_before"),
    )  # fmt: skip


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
    return found.select(*_PLACE, (F.col("offset_before") + 1).alias("from"), (F.col("offset") - 1).alias("to")).orderBy(*_PLACE, "from")


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
        records.where(F.col("key").isNotNull()).groupBy("topic", "key").agg(F.count("*").alias("records"), F.sum("bytes").alias("bytes"))
    )
    ranked = counted.withColumn("rank", F.row_number().over(Window.partitionBy("topic").orderBy(F.desc("records"), "key")))
    return ranked.where(F.col("rank") <= MOST_KEYS).orderBy("topic", "rank")


def largest(records: DataFrame) -> DataFrame:
    """The largest records of each topic."""
    rank = F.row_number().over(Window.partitionBy("topic").orderBy(F.desc("bytes"), "partition", "offset"))
    columns = (*_PLACE, "offset", "timestamp", "bytes", "rank")
    return records.withColumn("rank", rank).where(F.col("rank") <= LARGEST).select(*columns).orderBy("topic", "rank")


def fingerprints(rows: DataFrame, numbered: bool, topic: Column | None = None) -> DataFrame:
    """Each record's number and a hash of what it is. `numbered`: by its place in its partition's order; else the number is its offset."""
    order = F.row_number().over(Window.partitionBy(*_PLACE).orderBy("offset")).cast("long") if numbered else F.col("offset")
    # A hash passes over what is null.
    nulls = [F.isnull(name) for name in ("key", "value", "headers")]
    content = F.xxhash64("key", "value", F.to_json("headers"), F.unix_millis("timestamp"), *nulls)
    named = rows if topic is None else rows.withColumn("topic", topic)
    return named.select(*_PLACE, "offset", order.alias("number"), content.alias("content"))


def differences(left: DataFrame, right: DataFrame) -> DataFrame:
    """Records that are on one side alone, or are others. Both are fingerprints."""
    one, other = left.alias("l"), right.alias("r")
    same_place = [F.col(f"l.{name}") == F.col(f"r.{name}") for name in (*_PLACE, "number")]
    joined = one.join(other, on=same_place, how="full_outer")
    is_same = F.col("l.content") == F.col("r.content")
    return joined.where(~F.coalesce(is_same, F.lit(False))).select(
        *(F.coalesce(f"l.{name}", f"r.{name}").alias(name) for name in (*_PLACE, "number")),
        F.col("l.offset").alias("offset"), F.col("r.offset").alias("other_offset"),
    )  # fmt: skip


def _count(condition: Column) -> Column:
    return F.sum(F.when(condition, 1).otherwise(0))
