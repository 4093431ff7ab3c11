"""The sidecars' own topics in Pulsar, which no sidecar leads, and the bytes that all internal topics use.

internal_topic            makes a topic on first use
compacted_topic           reads a compacted topic, and writes a key
shared_map                facts that any sidecar writes and all sidecars read: shared_map_reader reads them, left_out
                          reads what compaction has left out, and stored_values reads all of them once
log_starts, moved_start   where DeleteRecords has moved the starts of logs
transactional_partitions  the partitions that have had transactions
snapshot_topic            snapshots by key, each a value of any size; snapshot_shard, snapshot_places, snapshot_parts
                          and own_parts store them
compactor                 has partitions compacted
internal_storage          decides when to compact, and how much Pulsar may delete (pure)
refusals                  when it is believed that a role lacks a right
"""
