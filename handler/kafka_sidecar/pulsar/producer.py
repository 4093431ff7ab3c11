"""A producer on one Pulsar topic: pipelined SENDs, receipts in order, no retries of its own.

What to do when it ends is the partition's decision (`kafka_sidecar.partition.write.appender`): only the fold
knows what has landed.
"""

from __future__ import annotations

import time
from typing import Final

from kafka_sidecar.pulsar.connection import Connection
from kafka_sidecar.pulsar.errors import Fenced, PulsarError, Unavailable
from kafka_sidecar.pulsar.events import ProducerEvents
from kafka_sidecar.pulsar.frames import encode_send
from kafka_sidecar.pulsar.pulsar_api_pb2 import BaseCommand, MessageMetadata

Type = BaseCommand.Type

# PulsarApi.proto, enum ProducerAccessMode (PIP-68).
SHARED: Final = 0
EXCLUSIVE: Final = 1
WAIT_FOR_EXCLUSIVE: Final = 2


class Producer:
    __slots__ = (
        "_command",
        "_connection",
        "_events",
        "_id",
        "_metadata",
        "_open",
        "_varied",
        "_varying",
        "name",
        "topic",
        "topic_epoch",
    )

    def __init__(self, connection: Connection, topic: str, name: str, events: ProducerEvents) -> None:
        self.topic = topic
        self.name = name
        self.topic_epoch: int | None = None
        self._connection = connection
        self._events = events
        self._open = True
        self._id = connection.new_id()
        # Protobuf templates that each SEND fills in: building new ones costs more than the SEND itself.
        self._command = BaseCommand(type=Type.SEND)
        self._command.send.producer_id = self._id
        self._metadata = MessageMetadata(producer_name=name.encode())
        # Template with one more property, whose key and value each SEND sets.
        self._varied = MessageMetadata()
        self._varied.CopyFrom(self._metadata)
        self._varying = self._varied.properties.add()

    @classmethod
    async def open(
        cls,
        connection: Connection,
        topic: str,
        name: str,
        events: ProducerEvents,
        *,
        access_mode: int = SHARED,
        topic_epoch: int | None = None,
        wait_seconds: float | None = None,
    ) -> Producer:
        producer = cls(connection, topic, name, events)
        connection.producers[producer._id] = producer
        command = BaseCommand(type=Type.PRODUCER)
        command.producer.topic = topic
        command.producer.producer_id = producer._id
        command.producer.request_id = request_id = connection.new_id()
        command.producer.producer_name = name
        command.producer.user_provided_producer_name = True
        command.producer.producer_access_mode = access_mode
        if topic_epoch is not None:
            command.producer.topic_epoch = topic_epoch
        try:
            answer = (await connection.request(request_id, command)).producer_success
            if not answer.producer_ready:
                answer = (await connection.second_answer(request_id, wait_seconds)).producer_success
        except BaseException:
            producer.close()
            raise
        producer.name = answer.producer_name
        producer.topic_epoch = answer.topic_epoch if answer.HasField("topic_epoch") else None
        if topic_epoch is not None and producer.topic_epoch is not None and producer.topic_epoch < topic_epoch:
            producer.close()
            raise Fenced(f"{topic} has epoch {producer.topic_epoch}, older than {topic_epoch}")
        return producer

    @property
    def max_message_size(self) -> int:
        return self._connection.max_message_size

    def send(
        self,
        sequence: int,
        count: int,
        fields: bytes,
        payload: bytes | bytearray,
        varying: tuple[bytes, bytes] | None = None,
    ) -> None:
        """Write one entry that takes `count` indexes.

        `fields` are those of its MessageMetadata that say how to read it, encoded; `varying` is one more property of
        it.
        """
        if not self._open:
            raise Unavailable(f"the producer on {self.topic} is closed")
        send = self._command.send
        send.sequence_id = sequence
        send.num_messages = count
        if varying is None:
            metadata = self._metadata
        else:
            metadata = self._varied
            self._varying.key, self._varying.value = varying
        metadata.sequence_id = sequence
        metadata.publish_time = time.time_ns() // 1_000_000
        self._connection.write(
            encode_send(self._command.SerializeToString(), metadata.SerializeToString() + fields, payload), payload
        )

    def send_batch(self, sequence: int, count: int, payload: bytes) -> None:
        """Write one entry that holds `count` messages of Pulsar's own (see `messages.write_batch`)."""
        self.send(sequence, count, MessageMetadata(num_messages_in_batch=count).SerializePartialToString(), payload)

    def close(self) -> None:
        """Tell the broker; nobody waits for its answer."""
        if self._open:
            self._open = False
            if self._connection.producers.pop(self._id, None) is not None:
                self._connection.close_producer(self._id)

    def abort_connection(self, reason: PulsarError) -> None:
        """A SEND was never answered: the connection can't be trusted any more."""
        self._connection.abort(reason)

    # --- from the connection

    def on_receipt(self, sequence: int, ledger: int, entry: int) -> None:
        if self._open:
            self._events.on_receipt(sequence, ledger, entry)

    def on_send_error(self, sequence: int, code: int, message: str) -> None:
        if self._open:
            self._events.on_send_error(sequence, code, message)

    def on_end(self, reason: PulsarError) -> None:
        if self._open:
            self._open = False
            self._events.on_end(reason)
