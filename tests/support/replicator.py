"""Pulsar's replicator between two twins: what ProducerImpl does with the entries of another cluster."""

from __future__ import annotations

from collections.abc import Sequence

from handler.pulsar.entry import RawEntry
from handler.pulsar.pulsar_api_pb2 import MessageMetadata
from tests.support.memory_log import MemoryLog


def replicate(entries: Sequence[RawEntry], target: MemoryLog, source: str = "east") -> None:
    """Copy entries in order. The metadata stays as it is, and the broker is told the number of messages that it says, or one."""
    for entry in entries:
        metadata = MessageMetadata()
        metadata.CopyFrom(entry.message_metadata)
        metadata.replicated_from = source.encode()
        target.append(metadata, metadata.num_messages_in_batch or 1, bytes(entry.payload))
