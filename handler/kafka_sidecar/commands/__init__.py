"""The commands of `kafka-sidecar`; `cli` has the table of them. `pipeline` is a room of its own, for it needs Spark.

command        what a command is, and the options that several have
serve          serves Kafka clients
doctor         checks the cluster
check_config   shows the settings
ctl            asks a running sidecar
inspect/       shows an entry, a fold, a group's records
verify/        accounts for every offset of a log
try_/          writes a record and reads it back
groups/        moves and translates a group's offsets
"""
