"""An archive in an Apache Iceberg table. How far it is stands in the summary of the snapshot that brought the
records.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from kafka_sidecar.pipelines.archive.layout import Contents, decode, encode

# How far the archive is: in the summary of each snapshot that appends, and in a table property as well, because
# snapshots expire.
OFFSETS: Final = "kafka-sidecar.offsets"
_SCHEMA: Final = (
    "topic string, partition int, offset bigint, timestamp timestamp, timestamp_type string, key binary, value binary,"
    " headers array<struct<key: string, value: binary>>, date date, hour int"
)


class IcebergTable:
    def __init__(self, spark: SparkSession, table: str) -> None:
        self._spark = spark
        self._table = table

    def recover(self) -> None:
        """The table says how far it is as well as its snapshots, because they expire."""
        if self._exists():
            archived = self.archived()
            if archived.ranges and archived != self._in_table():
                self._tell(archived)

    @property
    def next_number(self) -> int:
        """How many batches there were."""
        return 0 if not self._exists() else self._appended().count()

    def archived(self) -> Contents:
        """By the current snapshot and those it came from: after a rollback they are what counts."""
        if not self._exists():
            return Contents({}, {})
        texts = [row.offsets for row in self._appended().orderBy("committed_at").collect()]
        return decode(texts[-1]) if texts else self._in_table()

    def add(self, _number: int, frame: DataFrame, _contents: Contents, archived: Contents) -> None:
        """`archived`: all that is there then."""
        if not self._exists():
            self._spark.sql(f"CREATE TABLE {self._table} ({_SCHEMA}) USING iceberg PARTITIONED BY (topic, date, hour)")
        ordered = frame.sortWithinPartitions("topic", "date", "hour", "partition", "offset")
        ordered.writeTo(self._table).option(f"snapshot-property.{OFFSETS}", encode(archived)).append()
        self._tell(archived)

    def _tell(self, archived: Contents) -> None:
        # Hexadecimal, because Spark redacts values that contain "password" or "token", and a topic's name may contain
        # them.
        self._spark.sql(
            f"ALTER TABLE {self._table} SET TBLPROPERTIES ('{OFFSETS}' = '{encode(archived).encode().hex()}')"
        )

    def _in_table(self) -> Contents:
        for row in self._spark.sql(f"SHOW TBLPROPERTIES {self._table}").collect():
            if row.key == OFFSETS:
                return decode(bytes.fromhex(row.value).decode())
        return Contents({}, {})

    def compact(self, target_bytes: int) -> None:
        catalog = self._table.partition(".")[0]
        options = f"map('target-file-size-bytes', '{target_bytes}', 'min-input-files', '2')"
        self._spark.sql(f"CALL {catalog}.system.rewrite_data_files(table => '{self._table}', options => {options})")

    def _exists(self) -> bool:
        return bool(self._spark.catalog.tableExists(self._table))

    def _appended(self) -> Any:
        snapshots = self._spark.table(f"{self._table}.snapshots")
        current = (
            self._spark.table(f"{self._table}.history").where("is_current_ancestor").select("snapshot_id").distinct()
        )
        offsets = snapshots.selectExpr("snapshot_id", "committed_at", f"summary['{OFFSETS}'] AS offsets").where(
            "offsets IS NOT NULL"
        )
        return offsets.join(current, "snapshot_id")
