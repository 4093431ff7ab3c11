"""One Kafka partition over one Pulsar topic: the fold, what feeds it and what is answered from it.

log/        what the partition needs of a log (`port`; over Pulsar in `pulsar_log`, over a model of it in the tests), and what entries hold
fold/       entries in log order → offsets, and idempotence by Kafka's rules; pure
write/      appends: entries in flight, receipts, resends, verdicts, those that wait
read/       the shared reader at the end, readers of old data, the cache of batches, both ends, searches by time
failures    entries at which the sidecar itself failed
partition, table   all of it together
"""
