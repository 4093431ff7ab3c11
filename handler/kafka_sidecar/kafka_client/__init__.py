"""A Kafka client for commands and pipelines: any request, typed.

client    connections and requests    cluster   how a cluster is reached, with its secrets
topics    topics and their configs    groups    groups and their committed offsets
committed  the committed offsets of a group, through aiokafka alone
"""
