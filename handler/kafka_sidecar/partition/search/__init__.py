"""Finds offsets by time, and in tiered storage.

timestamp_search   ListOffsets by a time, and by the greatest timestamp
partition_times    keeps the index of timestamps up to date
time_index         the greatest timestamps by stretches of entries (pure)
tiered             what Pulsar has offloaded
"""
