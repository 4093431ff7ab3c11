"""Topics as Parquet files or an Apache Iceberg table, each offset exactly once; and back into topics.

layout    what is where in an archive of files, which offsets, and what the next batch takes
files     its directories, renamed into place; compaction
iceberg   the same in a table
write     the driver of an archive
replay    an archive's records, written into topics in their order
command, replay_command   `kafka-sidecar pipeline archive`, and `replay`
"""
