"""What Pulsar's compaction makes of a log of keyed messages (PublishingOrderCompactor, RawBatchConverter)."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final

from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.messages import Message, read_messages
from kafka_sidecar.pulsar.pulsar_api_pb2 import SingleMessageMetadata

_U32: Final = struct.Struct(">I")


def messages_in(entry: RawEntry) -> list[Message]:
    return read_messages(entry.message_metadata, entry.payload)


def compacted(entries: Sequence[RawEntry]) -> list[RawEntry]:
    """The last message of each key, at the place where it stood. One without a value goes, and all of its key before
    it.
    """
    last: dict[bytes, tuple[Position, int]] = {}
    for entry in entries:
        for message in messages_in(entry):
            if message.key is not None:
                last[message.key] = entry.position, message.number
                if not message.value:
                    del last[message.key]
    kept = set(last.values())
    left = (_with(entry, {number for position, number in kept if position == entry.position}) for entry in entries)
    return [entry for entry in left if entry is not None]


def _with(entry: RawEntry, numbers: Iterable[int]) -> RawEntry | None:
    """An entry keeps its place and its count: a message that is gone leaves its slot. One without any message is gone
    as well.
    """
    kept = set(numbers)
    if not kept:
        return None
    out, data, at = bytearray(), bytes(entry.payload), 0
    for number in range(entry.message_metadata.num_messages_in_batch):
        (size,) = _U32.unpack_from(data, at)
        single = SingleMessageMetadata.FromString(data[at + 4 : at + 4 + size])
        end = at + 4 + size + single.payload_size
        if number in kept:
            out += data[at:end]
        else:
            gone = SingleMessageMetadata(
                partition_key=single.partition_key, compacted_out=True, payload_size=0
            ).SerializeToString()
            out += _U32.pack(len(gone)) + gone
        at = end
    return RawEntry(entry.position, entry.last_index, entry.broker_timestamp, entry.metadata, memoryview(bytes(out)))
