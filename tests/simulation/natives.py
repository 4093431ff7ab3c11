"""Entries of other programs. The broker is told how many messages one holds, and its metadata may say more."""

from __future__ import annotations

from random import Random
from typing import Final

from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata, SingleMessageMetadata
from tests.simulation.stored import LZ4, NATIVE
from tests.simulation.topic import SimulatedTopic

_TOO_MANY: Final = (1, 3, 20, 1_000)


def write_native(topic: SimulatedTopic, draw: Random, number: int) -> None:
    """Messages that anybody can read, or what nobody can."""
    messages = draw.choice((1, 1, 2, 5))
    metadata = MessageMetadata(producer_name=NATIVE, sequence_id=number, publish_time=1, num_messages_in_batch=messages)
    if draw.random() < 0.4:
        payload = b"".join(_message(b"%b-%d/%d" % (NATIVE, number, place)) for place in range(messages))
    else:
        metadata.compression, metadata.uncompressed_size, payload = LZ4, 50, b"\xff" * 40
        metadata.num_messages_in_batch += draw.choice((0, *_TOO_MANY))
    topic.append_soon(metadata, messages, payload)


def _message(value: bytes) -> bytes:
    metadata = SingleMessageMetadata(payload_size=len(value)).SerializeToString()
    return len(metadata).to_bytes(4, "big") + metadata + value
