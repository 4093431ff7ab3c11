"""For tests of applications: Pulsar and the sidecar in containers (testcontainers), and pytest fixtures.

    from kafka_sidecar.testing import PulsarKafkaContainer

    with PulsarKafkaContainer() as kafka:
        producer = Producer({"bootstrap.servers": kafka.get_bootstrap_server()})

`container` has both containers.
`pytest_plugins = ["kafka_sidecar.testing.fixtures"]` gives the fixtures. Needs the extra `[testcontainers]`.
"""

from kafka_sidecar.testing.container import PulsarKafkaContainer

__all__ = ["PulsarKafkaContainer"]
