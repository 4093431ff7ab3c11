"""Side by side: the sidecar, Apache Kafka and native Pulsar on one machine. `make bench`."""
