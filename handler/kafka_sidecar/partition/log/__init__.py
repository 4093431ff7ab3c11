"""A partition's log: entries as Pulsar stores them, and what they mean to Kafka.

port            the log as a partition needs it           pulsar_log  the same over Pulsar
topic_logs      the logs of a topic's partitions          log_config  Kafka's LogConfig
formats/        how records are stored in an entry
basis           what an entry says of what its writer knew
opened_batch    a batch whose records are read, within a budget
unfolding, large_entries   read in a thread what takes long
packed_offsets  offsets of Kafka-on-Pulsar before 2.8 (pure)
errors          Kafka's error codes for Pulsar's errors
"""
