"""What a partition stores of itself in `__kept_states`, so that the next sidecar need not read the whole log.

fold_snapshots       the fold of a partition with transactions
producer_snapshots   what producers wrote last
snapshot_values      the values of one partition, each with the part of the log that it covers
appending_mark       says that a sidecar may have appended more than is stored
gap_check            what a snapshot knows where offsets are missing before it
packed               compresses values
"""
