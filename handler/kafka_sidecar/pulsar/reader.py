"""Consumers: non-durable readers from a position, and Failover subscriptions for elections."""

from __future__ import annotations

import uuid
from typing import Final

from kafka_sidecar.pulsar.connection import Connection
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.pulsar.events import ConsumerEvents
from kafka_sidecar.pulsar.pulsar_api_pb2 import BaseCommand

Type = BaseCommand.Type

# PulsarApi.proto, enum SubType.
_EXCLUSIVE: Final = 0
_FAILOVER: Final = 2
# PulsarApi.proto, enum AckType.
_CUMULATIVE: Final = 1
# MessageId.earliest is −1:−1. PulsarApi.proto encodes both numbers as unsigned 64-bit integers.
_EARLIEST: Final = 2**64 - 1
# Limit of permits in one Flow command, since a broker counts them in a Java int. Only an entry that claims to hold so
# many messages needs more.
MOST_PERMITS: Final = 2**30


class Reader:
    """Entries from a position on, as many as were granted.

    The broker's start position is inclusive. A flow permit counts a message; an entry written by
    the sidecar is one, a native batch as many as it holds.
    """

    __slots__ = ("_connection", "_events", "_id", "_open", "topic")

    def __init__(self, connection: Connection, topic: str, events: ConsumerEvents) -> None:
        self.topic = topic
        self._connection = connection
        self._events = events
        self._open = True
        self._id = connection.new_id()

    @classmethod
    async def open(
        cls,
        connection: Connection,
        topic: str,
        start: Position | None,
        events: ConsumerEvents,
        *,
        compacted: bool = False,
    ) -> Reader:
        """A reader from `start` on, or from the earliest entry there is. Nothing comes before `grant`.

        `compacted`: up to where the topic was compacted, only the last message of each key.
        """
        reader = cls(connection, topic, events)
        command = reader._subscribe(f"kafka-sidecar-reader-{uuid.uuid4().hex[:12]}", _EXCLUSIVE)
        subscribe = command.subscribe
        subscribe.durable = False
        subscribe.read_compacted = compacted
        subscribe.start_message_id.ledger_id = _EARLIEST if start is None else start.ledger
        subscribe.start_message_id.entry_id = _EARLIEST if start is None else start.entry
        # If the ledger of the start position is deleted, the broker falls back to this initial position: earliest,
        # never a silent jump to the end.
        subscribe.initial_position = 1
        await reader._begin(command)
        return reader

    @classmethod
    async def join(
        cls,
        connection: Connection,
        topic: str,
        subscription: str,
        name: str,
        priority: int,
        events: ConsumerEvents,
        metadata: dict[bytes, bytes],
    ) -> Reader:
        """A Failover consumer: `on_active` tells whenever the election changes."""
        reader = cls(connection, topic, events)
        command = reader._subscribe(subscription, _FAILOVER)
        command.subscribe.durable = False
        command.subscribe.consumer_name = name
        command.subscribe.priority_level = priority
        for key, value in metadata.items():
            command.subscribe.metadata.add(key=key, value=value)
        await reader._begin(command)
        return reader

    def _subscribe(self, subscription: str, sub_type: int) -> BaseCommand:
        command = BaseCommand(type=Type.SUBSCRIBE)
        subscribe = command.subscribe
        subscribe.topic = self.topic
        subscribe.subscription = subscription
        subscribe.sub_type = sub_type
        subscribe.consumer_id = self._id
        subscribe.request_id = self._connection.new_id()
        subscribe.force_topic_creation = False
        return command

    async def _begin(self, command: BaseCommand) -> None:
        self._connection.consumers[self._id] = self
        try:
            await self._connection.request(command.subscribe.request_id, command)
        except BaseException:
            self.close()
            raise
        if not self._open:
            raise Unavailable(f"the reader on {self.topic} ended as it began")

    def grant(self, permits: int) -> None:
        if not self._open or permits <= 0:  # a Flow of 0 is a protocol error
            return
        while permits:
            command = BaseCommand(type=Type.FLOW)
            command.flow.consumer_id = self._id
            command.flow.message_permits = min(permits, MOST_PERMITS)
            self._connection.write_command(command)
            permits -= command.flow.message_permits
        # Sent at once: the broker is idle until it has permits, and this event loop turn may take long.
        self._connection.flush()

    def skip_to(self, position: Position) -> None:
        """Go on behind this entry. A cumulative acknowledgement moves the read position of a reader's cursor
        forward.
        """
        if self._open:
            command = BaseCommand(type=Type.ACK)
            command.ack.consumer_id = self._id
            command.ack.ack_type = _CUMULATIVE
            command.ack.message_id.add(ledger_id=position.ledger, entry_id=position.entry)
            self._connection.write_command(command)

    async def last_position(self) -> Position | None:
        """The last entry the broker would dispatch; None when there is none."""
        command = BaseCommand(type=Type.GET_LAST_MESSAGE_ID)
        command.get_last_message_id.consumer_id = self._id
        command.get_last_message_id.request_id = request_id = self._connection.new_id()
        answer = await self._connection.request(request_id, command)
        last = answer.get_last_message_id_response.last_message_id
        if last.ledger_id >= 2**63 or last.entry_id >= 2**63:
            return None
        return Position(last.ledger_id, last.entry_id)

    def close(self) -> None:
        if self._open:
            self._open = False
            if self._connection.consumers.pop(self._id, None) is not None:
                self._connection.close_consumer(self._id)

    # --- from the connection

    def on_entry(self, entry: RawEntry) -> None:
        if self._open:
            self._events.on_entry(entry)

    def on_active(self, active: bool) -> None:
        if self._open:
            self._events.on_active(active)

    def on_end(self, reason: PulsarError) -> None:
        if self._open:
            self._open = False
            self._events.on_end(reason)
