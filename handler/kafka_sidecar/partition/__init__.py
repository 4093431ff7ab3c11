"""One Kafka partition over one Pulsar topic: the fold, what feeds it and what is answered from it.

log/        entries as Pulsar stores them, and what they mean to Kafka
fold/       entries in log order → offsets, and idempotence by Kafka's rules (pure)
follow/     keeps the fold at the end of the log
write/      appends: entries in flight, receipts, retries
read/       readers of old data, and the cache of batches
search/     offsets by time
snapshots/  what a partition stores of itself, so that the next sidecar need not read the whole log

partition, table  one partition put together, and all that are open
opening           how a partition begins
tail_fold         folds the entries that the tail reader brings
folded_entries    tells the cache, the time index and waiting consumers of a folded entry
"""
