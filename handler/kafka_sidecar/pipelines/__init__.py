"""What runs on Spark: the extra `[spark]`. Nothing else of the sidecar imports it.

command     `kafka-sidecar pipeline NAME`, and spark-submit
mirror      topics of one Kafka cluster copied to another, exactly once; groups moved with them
archive     topics as Parquet files or an Iceberg table, and back
audit       topics and archives proved, and copies compared
kafka       how their tasks talk to Kafka clusters
progress    one line in a job: what its streaming queries have read, as committed offsets of a consumer group
offsets     what Spark says of offsets, read and put together
committer   a thread that commits the latest of each group
"""
