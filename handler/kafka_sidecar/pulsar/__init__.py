"""An entry-level Pulsar client: connections, lookup, producers, readers, subscriptions, admin REST.

It stops at the entry: what a payload holds is for `handler.partition` to decide.
"""
