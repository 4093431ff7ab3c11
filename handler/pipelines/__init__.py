"""What runs on Spark: the extra `[spark]`. Nothing else of the sidecar imports it.

progress    one line in a job: what its streaming queries have read, as committed offsets of a consumer group
offsets     what Spark says of offsets, read and put together
committer   a thread that commits the latest of each group
"""
