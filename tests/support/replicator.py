"""Pulsar's replicator between two models: what ProducerImpl does with the entries of another cluster."""

from __future__ import annotations

from collections.abc import Sequence

from kafka_sidecar.pulsar.entry import RawEntry
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from tests.contract.copies import ENTRY_PROPERTY
from tests.model.topic import Topic, is_marker


def is_copied(entry: RawEntry) -> bool:
    """What came from another cluster is not copied back."""
    return not is_marker(entry) and not entry.message_metadata.replicated_from


def replicate(entries: Sequence[RawEntry], target: Topic, source: str = "east", *, names_entries: bool = True) -> None:
    """Copy entries in order."""
    for entry in entries:
        copy_one(entry, target, source, names_entries=names_entries)


def copy_one(entry: RawEntry, target: Topic, source: str, *, names_entries: bool) -> None:
    """It stays as it is. The broker is told the number of messages that it says, or one where the field is missing.

    `names_entries`: the copy says which entry it was, as brokers with apache/pulsar#23697 do.
    """
    metadata = MessageMetadata()
    metadata.CopyFrom(entry.message_metadata)
    metadata.replicated_from = source.encode()
    if names_entries:
        metadata.properties.add(key=ENTRY_PROPERTY, value=b"%d:%d" % entry.position[:2])
    target.append(metadata, metadata.num_messages_in_batch, bytes(entry.payload))


class Replicator:
    """From one topic to another of its name."""

    def __init__(self, origin: Topic, source: str, target: Topic, *, names_entries: bool) -> None:
        self._origin = origin
        self._source = source
        self._target = target
        self._names_entries = names_entries
        self._at = 0

    def go_on(self) -> None:
        """To the end."""
        entries = self._origin.entries[self._at :]
        self._at += len(entries)
        replicate(
            [one for one in entries if is_copied(one)], self._target, self._source, names_entries=self._names_entries
        )
