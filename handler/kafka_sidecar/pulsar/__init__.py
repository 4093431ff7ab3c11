"""An entry-level Pulsar client: connections, lookup, producers, readers, subscriptions, admin REST.

It stops at the entry: what a payload holds is for `kafka_sidecar.partition` to decide.

client       lookup, and connections to brokers
connection   one connection: handshake, requests, keepalive
frames, codecs, messages   Pulsar's frames, compressions, and messages in an entry
producer     sends entries, and gets receipts in order; it retries nothing
reader       readers from a position, and Failover subscriptions for elections
raw_entries  readers for one question
events       what a producer or consumer reports
entry        an entry, and what brokers say of a log
ports        Pulsar as internal topics use it; a simulation has its own
errors       errors by what a caller can do about them
admin/       the admin REST API
"""
