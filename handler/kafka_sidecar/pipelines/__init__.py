"""What runs on Spark: the extra `[spark]`. Nothing else of the sidecar imports it.

command, options  `kafka-sidecar pipeline NAME`, and the flags that the pipelines share    __main__   the same for
                  spark-submit
session         the Spark that a pipeline runs on
mirror/         topics of one Kafka cluster copied to another, exactly once
migrate_groups/ committed offsets of a source's groups, set in the target of a mirror
copying/        how batches are copied exactly once
reindex/        topics without an index, copied into topics with offsets
archive/        topics as Parquet files or an Iceberg table, and back
audit/          topics and archives proved, and copies compared
progress        one line in a job: what its streaming queries have read, as committed offsets of a consumer group
offsets         what Spark says of offsets
committer       a thread that commits the latest offsets of each group
"""
