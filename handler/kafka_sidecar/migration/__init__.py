"""What users of Kafka-on-Pulsar bring with them."""
