"""Topics whose logs begin with entries that have no index, copied into topics in which every record has an offset.

source     the Pulsar cluster that is read by position, opened in a driver and in tasks
heads      what of a partition has no index, and in which pieces it is read
entries    Spark's data source: the pieces, read on executors
batches    its rows as the batches that are written, with the places of their records
run        the driver: rounds until nothing without an index is left, then a mirror of the rest
command    `kafka-sidecar pipeline reindex`
"""
