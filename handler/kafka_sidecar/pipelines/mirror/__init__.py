"""Topics of one Kafka cluster copied to another, exactly once, with a record of where each offset has gone.

plan     which topics and partitions are copied, which are made, what is refused
run      the driver: rounds of slices, and their results
copying  what a Spark task does: source partitions, each for a slice of time
command  `kafka-sidecar pipeline mirror`
"""
