"""`kafka-sidecar inspect`: an entry, a partition or a group as it is stored in Pulsar.

command   its options
inspect   reads and decodes what is stored
"""
