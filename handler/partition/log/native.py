"""Pulsar's own messages, single and batched, as a Kafka record batch.

key        partition key (decoded where the client marked it base64), else ordering key
value      payload; null where the message says null_value
headers    properties, in order, as the bytes they are
timestamp  event time where there is one, else the publish time
"""

from __future__ import annotations

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from handler.pulsar.messages import read_messages
from handler.pulsar.pulsar_api_pb2 import MessageMetadata
from handler.wire.records import with_last_offset


def kafka_batch(metadata: MessageMetadata, payload: memoryview) -> tuple[bytes, int]:
    """The Kafka batch of a native entry, base offset 0, and how many offsets it takes."""
    messages, count = read_messages(metadata, payload)
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=2**31 - 1,
    )  # fmt: skip
    last = -1
    for message in messages:
        builder.append(message.number, message.timestamp, message.key, message.value, message.properties)
        last = message.number
    built = bytes(builder.build())
    return (built if last == count - 1 else with_last_offset(built, count - 1)), count
