"""A Kafka-protocol sidecar for Apache Pulsar."""

__version__ = "0.2.0"
