"""What all rooms speak of: values without I/O.

partition_name  Pulsar's names of partitions
sidecar         a sidecar, and where it is reached
"""
