"""`kafka-sidecar groups`: offsets of consumer groups.

command     its options
transfer    `import` and `export`: from and to Pulsar subscriptions
translate   `translate`: from Kafka-on-Pulsar's offsets
"""
