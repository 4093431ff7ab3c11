"""The directories of an archive, on whatever Hadoop's file systems reach: they are renamed into place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from kafka_sidecar.errors import CommandFailed
from kafka_sidecar.pipelines.archive.layout import (
    INTENT,
    OFFSETS,
    STAGING,
    BatchRange,
    Contents,
    SizedRange,
    batch_ranges,
    decode,
    encode,
    united,
)

# URI schemes of file systems that rename a directory atomically.
ATOMIC: Final = frozenset(("file", "hdfs", "viewfs", "abfs", "abfss"))
WRITTEN: Final = "_SUCCESS"  # Spark writes this file when all files of a job are stored


class ArchiveFiles:
    def __init__(self, spark: SparkSession, place: str) -> None:
        self.place = place.rstrip("/")
        self._spark = spark
        jvm: Any = spark._jvm
        self._path = jvm.org.apache.hadoop.fs.Path
        self._streams = jvm.org.apache.commons.io.IOUtils
        self._utf8 = jvm.java.nio.charset.StandardCharsets.UTF_8
        self._fs: Any = self._path(self.place).getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
        scheme = str(self._fs.getUri().getScheme())
        if scheme not in ATOMIC:
            raise CommandFailed(
                f"--path {place}: a kill in the middle of a rename would leave half a batch in {scheme}, which has no "
                "atomic rename of directories. Take an Iceberg table (--table) there"
            )

    # --- what is there

    def batches(self) -> list[BatchRange]:
        return batch_ranges(self._names(self.place))

    @property
    def next_number(self) -> int:
        batches = self.batches()
        return batches[-1].last + 1 if batches else 0

    def archived(self) -> Contents:
        """What is in the archive. CommandFailed where batches are missing, or come twice."""
        batches = self.batches()
        for before, after in pairwise(batches):
            if after.first != before.last + 1:
                raise CommandFailed(
                    f"{self.place} has {before.directory} and then {after.directory}: batches are missing, or there "
                    "twice"
                )
        return united(self.contents(one) for one in batches)

    def readable(self) -> None:
        """CommandFailed where a reader would miss batches or have them twice."""
        if any(self._exists(f"{STAGING}/{name}/{INTENT}") for name in self._names(f"{self.place}/{STAGING}")):
            raise CommandFailed(f"a compaction of {self.place} was not ended: run archive on it once")
        self.archived()

    def contents(self, batch: BatchRange) -> Contents:
        return decode(self._read(f"{self.place}/{batch.directory}/{OFFSETS}"))

    def sizes(self) -> list[SizedRange]:
        summary = self._fs.getContentSummary
        return [SizedRange(one, int(summary(self._at(one.directory)).getLength())) for one in self.batches()]

    # --- what is written

    def add(self, number: int, frame: DataFrame, contents: Contents, _: Contents) -> None:
        """A batch: there wholly or not at all. CommandFailed where another run has written it."""
        batch = BatchRange(number, number)
        staged = f"{STAGING}/{batch.directory}"
        self._delete(staged)
        self._write(frame, staged)
        self._put(f"{staged}/{OFFSETS}", encode(contents))
        self._check_written(staged)
        self._rename(staged, batch.directory)

    def replace(self, batches: Sequence[BatchRange]) -> BatchRange | None:
        """Put neighbours together. What a kill leaves half done `recover` ends. None where they have no records."""
        with_rows = [one for one in batches if self._has_rows(one)]
        if not with_rows:
            return None
        whole = BatchRange(batches[0].first, batches[-1].last)
        staged = f"{STAGING}/{whole.directory}"
        self._delete(staged)
        frames = self._spark.read.option("basePath", self.place)
        frame = frames.parquet(*(f"{self.place}/{one.directory}" for one in with_rows))
        self._write(frame.drop("batch"), staged, compact=True)
        self._put(f"{staged}/{OFFSETS}", encode(united(self.contents(one) for one in batches)))
        self._check_written(staged)
        self._put(f"{staged}/{INTENT}.new", "\n".join(one.directory for one in batches))
        # Atomic: the intent file is never there with half of its content.
        self._rename(f"{staged}/{INTENT}.new", f"{staged}/{INTENT}")
        self.recover()
        return whole

    def recover(self) -> None:
        """End what was begun: from its intent on, a compaction is done, and the old directories are those to go. For
        who writes alone.
        """
        for name in self._names(f"{self.place}/{STAGING}"):
            staged = f"{STAGING}/{name}"
            if not self._exists(f"{staged}/{INTENT}"):
                self._delete(staged)
                continue
            for old in self._read(f"{self.place}/{staged}/{INTENT}").split():
                self._delete(old)
            self._rename(staged, name)
            self._delete(f"{name}/{INTENT}")

    def _check_written(self, staged: str) -> None:
        if not self._exists(f"{staged}/{WRITTEN}"):
            raise CommandFailed(
                f"{self.place}/{staged} has gone while it was written: does another run write to this archive?"
            )

    def _write(self, frame: DataFrame, staged: str, compact: bool = False) -> None:
        if compact:
            frame = frame.repartition("topic", "date", "hour")
        ordered = frame.sortWithinPartitions("topic", "date", "hour", "partition", "offset")
        ordered.write.partitionBy("topic", "date", "hour").parquet(f"{self.place}/{staged}")

    def _has_rows(self, batch: BatchRange) -> bool:
        return any(name.startswith("topic=") for name in self._names(f"{self.place}/{batch.directory}"))

    # --- the file system

    def _at(self, name: str) -> Any:
        return self._path(f"{self.place}/{name}")

    def _names(self, directory: str) -> Iterable[str]:
        path = self._path(directory)
        return [str(one.getPath().getName()) for one in self._fs.listStatus(path)] if self._fs.exists(path) else []

    def _exists(self, name: str) -> bool:
        return bool(self._fs.exists(self._at(name)))

    def _delete(self, name: str) -> None:
        self._fs.delete(self._at(name), True)
        if self._exists(name):
            raise CommandFailed(f"{self.place}/{name} can't be deleted")

    def _rename(self, name: str, to: str) -> None:
        # Hadoop's rename onto an existing directory would move the source into it.
        if self._exists(to) or not self._fs.rename(self._at(name), self._at(to)):
            raise CommandFailed(f"{self.place}/{to} is there already: does another run write to this archive?")

    def _read(self, file: str) -> str:
        stream = self._fs.open(self._path(file))
        try:
            return str(self._streams.toString(stream, self._utf8))
        finally:
            stream.close()

    def _put(self, name: str, text: str) -> None:
        stream = self._fs.create(self._at(name), True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
