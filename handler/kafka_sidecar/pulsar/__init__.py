"""An entry-level Pulsar client: connections, lookup, producers, readers, subscriptions, admin REST.

It stops at the entry: what a payload holds is for `kafka_sidecar.partition` to decide.
"""
