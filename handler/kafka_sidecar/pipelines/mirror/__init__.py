"""Topics of one Kafka cluster copied to another, exactly once, with a record of where each offset has gone.

names         what a mirror's name makes: its group, its topic of runs, its producers
plan          which topics and partitions are copied, which are made, what is refused
offset_runs   which source offsets are which target offsets, and what that makes of a committed offset
delivery      in transactions, exactly once, or by acknowledgements, at least once
record        the mirror's own topic, read back
target        batches, runs and progress of one partition, valid together
batches       batches on their way, in transactions that end in time
outcome       what a task tells of a partition, and makes of a failure
copying       what a Spark task does: source partitions, each for a slice of time
run           the driver: rounds of slices, and what is told of them
groups        committed offsets of the source's groups, set in the target
"""
