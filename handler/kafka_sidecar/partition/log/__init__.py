"""A partition's log: entries as Pulsar stores them, and what they mean to Kafka."""
