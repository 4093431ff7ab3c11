"""Pulsar's replicator between two models: what ProducerImpl does with the entries of another cluster."""

from __future__ import annotations

from collections.abc import Sequence

from handler.pulsar.entry import RawEntry
from handler.pulsar.pulsar_api_pb2 import MessageMetadata
from tests.support.memory_log import MemoryLog


def replicate(entries: Sequence[RawEntry], target: MemoryLog, source: str = "east") -> None:
    """Copy entries in order."""
    for entry in entries:
        metadata = metadata_of_copy(entry, source)
        target.append(metadata, metadata.num_messages_in_batch, bytes(entry.payload))


def metadata_of_copy(entry: RawEntry, source: str) -> MessageMetadata:
    """It stays as it is. The broker is told the number of messages that it says, or one where the field is missing."""
    metadata = MessageMetadata()
    metadata.CopyFrom(entry.message_metadata)
    metadata.replicated_from = source.encode()
    return metadata
