"""One Kafka partition over one Pulsar topic: the fold, what feeds it and what is answered from it.

port        what the partition needs of a log (the real one is in `store`, the twin in the tests)
entries     a stored entry → Kafka batches        native           Pulsar's own messages
producers   idempotence by Kafka's rules          fold             entries in log order → offsets
append      receipts, resends, verdicts           held_appends     those that wait until the end is known
tail        the shared reader at the end     log_end, read_to_end  the end as the broker has it
cache       recent batches, one byte budget       catch_up_reader, catch_up_readers  over old data
read_entries  short readers for one question
logstart    where it begins, after retention      offsets          earliest, by time, by index
failures    entries at which the sidecar itself failed
partition, table   all of it together
"""
