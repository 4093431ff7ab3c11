"""Reads old data, and caches batches.

catch_up_reader, catch_up_readers   one Pulsar reader of old data for Fetch, and all of a partition
fetch_cache       batches of all partitions, within one byte budget
chunked_messages  puts a large native message together
log_start         where a partition begins
"""
