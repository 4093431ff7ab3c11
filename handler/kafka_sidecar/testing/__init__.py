"""For tests of applications: Pulsar and the sidecar in containers (testcontainers), and pytest fixtures.

    from handler.testing import PulsarKafkaContainer

    with PulsarKafkaContainer() as kafka:
        producer = Producer({"bootstrap.servers": kafka.get_bootstrap_server()})

`pytest_plugins = ["handler.testing.fixtures"]` gives the fixtures. Needs the extra `[testcontainers]`.
"""

from handler.testing.container import PulsarKafkaContainer

__all__ = ["PulsarKafkaContainer"]
