"""A Kafka-protocol sidecar for Apache Pulsar."""

from typing import Final

__version__ = "0.3.0.dev0"

# It grows when a sidecar can read something new of what sidecars store in Pulsar. Members of a fleet tell it to each
# other, so that nobody writes what an older one can't read. 0.2.0 tells none.
STORED_FORMAT: Final = 1
