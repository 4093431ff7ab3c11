"""Copies record batches from one log into another, exactly once. Mirrors, archives and reindexing use it.

reading, copied_batches    batches of a source, as a consumer reads them
target, batches, delivery  write them: in transactions, or at least once
offset_runs, record        which source offset is which target offset, and the topic that says so
names, places, outcome     names of a mirror, places without an offset, what a task reports
writing                    rows of Spark tasks, written into topics
"""
