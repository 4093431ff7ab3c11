"""Tests and tools that need real servers: Pulsar, Kafka and Spark, all from jars."""
