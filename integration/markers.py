"""Markers of replicated subscriptions, as a broker writes them: entries that it keeps to itself."""

from __future__ import annotations

import uuid
from typing import Final

from kafka_sidecar.pulsar.client import PulsarClient
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from tests.contract.case import Scribe

# MarkersProtobuf.MarkerType.REPLICATED_SUBSCRIPTION_SNAPSHOT_REQUEST
_FIELDS: Final = MessageMetadata(marker_type=10).SerializePartialToString()
# CommandSend.marker, which no client of ours sets.
_OF_THE_COMMAND: Final = b"\x40\x01"


async def write_marker(client: PulsarClient, topic: str) -> None:
    events = Scribe()
    # A name of its own: the broker may not have let go of the one before, whose connection is just closed.
    producer = await client.producer(topic, f"marker-{uuid.uuid4()}", events)
    producer._command.send.MergeFromString(_OF_THE_COMMAND)
    producer.send(0, 1, _FIELDS, b"")
    await events.receipt(0)
    producer.close()
