"""One connection to a broker: handshake, requests and answers, keepalive, and who gets which frame.

Producers and consumers register themselves by the id they chose; frames for an id nobody has are
dropped, for after a close some are always still under way.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple, cast
from urllib.parse import urlsplit

from google.protobuf.message import DecodeError

from kafka_sidecar import __version__
from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.loop.pace import AT_A_TIME_SECONDS
from kafka_sidecar.loop.turn_writer import TurnWriter
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable, from_code
from kafka_sidecar.pulsar.events import ConsumerEvents, ProducerEvents
from kafka_sidecar.pulsar.frames import decode_entry, encode_command, split_command
from kafka_sidecar.pulsar.pulsar_api_pb2 import BaseCommand
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.wire.framing import FrameBuffer

log = logging.getLogger(__name__)
limited = RateLimitedLog(log)

# Protocol version 18 is the first with broker entry metadata (PIP-90). Pulsar 2.9 to 4.x all support 19.
PROTOCOL_VERSION: Final = 19
REQUIRED_PROTOCOL_VERSION: Final = 18

# Pulsar's connectionTimeoutMs.
CONNECT_SECONDS: Final = 10.0
REQUEST_SECONDS: Final = 30.0  # Pulsar's own operationTimeoutMs
# A silent connection is read for another 0.2 s before it is given up: when the process was paused, received data may
# still be unread as the timer runs.
LAST_LOOK_SECONDS: Final = 0.2

# A frame may have maxMessageSize, a static broker setting, plus 10 KiB. Until CONNECTED names a larger size, no frame
# can exceed Pulsar's default.
_DEFAULT_MAX_MESSAGE: Final = 5 * 1024 * 1024
_FRAME_MARGIN: Final = 64 * 1024

Type = BaseCommand.Type
# The two commands that come for every entry, as plain numbers: a name of `Type` costs a call of a Python function each
# time.
_SEND_RECEIPT: Final = int(Type.SEND_RECEIPT)
_MESSAGE: Final = int(Type.MESSAGE)


class Keepalive(NamedTuple):
    """How often a silent broker is sent a PING, and after how much silence its connection is given up."""

    interval: float = 30.0  # seconds; as keepAliveIntervalSeconds of Pulsar's clients and brokers
    patience: float = 60.0


class Connection(asyncio.Protocol):
    def __init__(self, url: str, on_lost: Callable[[Connection], None], keepalive: Keepalive) -> None:
        self.url = url
        self.max_message_size = _DEFAULT_MAX_MESSAGE
        self.protocol_version = 0
        self.server_version = ""
        self.is_behind_proxy = False
        self.producers: dict[int, ProducerEvents] = {}
        self.consumers: dict[int, ConsumerEvents] = {}
        self.last_used = 0.0
        self._loop = asyncio.get_running_loop()
        self._on_lost = on_lost
        self._frames = FrameBuffer(_DEFAULT_MAX_MESSAGE + _FRAME_MARGIN)
        self._backlog: deque[memoryview] = deque()  # frames that were received but not handled yet
        self._is_behind = False  # True while reading is paused: other tasks run before the backlog is continued
        self._transport: asyncio.Transport | None = None
        self._writer: TurnWriter | None = None
        self._requests: dict[int, asyncio.Future[BaseCommand]] = {}
        self._next_id = 0
        self._connected = self._future()
        self._lost: PulsarError | None = None
        self._heard_at = self._loop.time()
        self._keepalive = keepalive
        self._keepalive_timer: asyncio.TimerHandle | None = None

    # --- life

    @classmethod
    async def open(
        cls, url: str, on_lost: Callable[[Connection], None], proxy_to: str | None, keepalive: Keepalive
    ) -> Connection:
        """A connection that has shaken hands, or Unavailable."""
        parts = urlsplit(url)
        loop = asyncio.get_running_loop()
        connection = cls(url, on_lost, keepalive)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await loop.create_connection(lambda: connection, parts.hostname or "localhost", parts.port or 6650)
                await connection._handshake(proxy_to)
        except (TimeoutError, OSError) as error:
            reason = f"can't connect to {url}: {str(error) or 'no answer'}"
            connection.abort(Unavailable(reason))
            raise Unavailable(reason) from error
        except BaseException:
            connection.close()
            raise
        return connection

    async def _handshake(self, proxy_to: str | None) -> None:
        command = BaseCommand(type=Type.CONNECT)
        command.connect.client_version = f"kafka-sidecar {__version__}"
        command.connect.protocol_version = PROTOCOL_VERSION
        command.connect.auth_method_name = "none"
        if proxy_to is not None:
            command.connect.proxy_to_broker_url = proxy_to
            # A standalone broker names itself as the owner: then there is no proxy.
            self.is_behind_proxy = proxy_to != self.url.removeprefix("pulsar://")
        # Only flags that this client implements: a feature flag promises that the client can handle the frames that
        # come with it.
        flags = command.connect.feature_flags
        flags.supports_auth_refresh = True
        flags.supports_broker_entry_metadata = True
        flags.supports_get_partitioned_metadata_without_auto_creation = True
        self.write_command(command)
        answer = (await self._connected).connected
        self.server_version = answer.server_version
        self.protocol_version = answer.protocol_version
        if answer.HasField("max_message_size") and answer.max_message_size > 0:
            self.max_message_size = answer.max_message_size
        self._frames.limit = self.max_message_size + _FRAME_MARGIN
        self._keepalive_timer = self._loop.call_later(self._keepalive.interval, self._keep_alive)

    @property
    def alive(self) -> bool:
        return self._lost is None

    @property
    def idle(self) -> bool:
        return not (self.producers or self.consumers or self._requests)

    def close(self) -> None:
        self.abort(Unavailable("closed by the sidecar"))

    def abort(self, reason: PulsarError) -> None:
        """End the connection and tell everyone on it, once."""
        if self._lost is not None:
            return
        self._lost = reason
        self._backlog.clear()
        if self._keepalive_timer is not None:
            self._keepalive_timer.cancel()
        if self._transport is not None:
            self._transport.abort()
        if not self._connected.done():
            self._connected.set_exception(reason)
        for waiting in self._requests.values():
            if not waiting.done():
                waiting.set_exception(reason)
        self._requests.clear()
        sinks: list[ProducerEvents | ConsumerEvents] = [*self.producers.values(), *self.consumers.values()]
        self.producers.clear()
        self.consumers.clear()
        self._on_lost(self)
        for sink in sinks:
            _tell_end(sink, reason)

    def _keep_alive(self) -> None:
        """PING a broker that was silent for an interval, give it up when it has been for longer than is patient."""
        silent = self._loop.time() - self._heard_at
        if silent >= self._keepalive.patience:
            self._keepalive_timer = self._loop.call_later(LAST_LOOK_SECONDS, self._give_up, self._heard_at)
            return
        if silent >= self._keepalive.interval:
            self.write_command(BaseCommand(type=Type.PING, ping={}))
        self._keepalive_timer = self._loop.call_later(self._keepalive.interval, self._keep_alive)

    def _give_up(self, heard_at: float) -> None:
        if self._heard_at > heard_at:
            self._keep_alive()
        else:
            self.abort(
                Unavailable(f"{self.url} did not answer a ping, and was silent for {self._keepalive.patience:.0f} s")
            )

    # --- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not derive from asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._writer = TurnWriter(self._transport)
        if self._lost is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.abort(Unavailable(f"the connection to {self.url} was lost: {exc or 'closed by the broker'}"))

    def data_received(self, data: bytes) -> None:
        self._heard_at = self._loop.time()
        try:
            self._backlog.extend(self._frames.feed(data))
        except ProtocolError as error:
            self._break(error)
            return
        if not self._is_behind:
            self._work_off()

    def _work_off(self) -> None:
        """Handle the frames that have come, for a few milliseconds; then others run, and nothing is read meanwhile.

        A broker hands out hundreds of small entries at once, when a partition is opened say.
        """
        backlog = self._backlog
        until = time.perf_counter() + AT_A_TIME_SECONDS
        while backlog and self._lost is None:
            self._handle_frame(backlog.popleft())
            if backlog and time.perf_counter() > until:
                self._be_behind(True)
                self._loop.call_soon(self._work_off)
                return
        self._be_behind(False)

    def _be_behind(self, is_behind: bool) -> None:
        if is_behind == self._is_behind:
            return
        self._is_behind = is_behind
        if self._transport is not None and not self._transport.is_closing():
            (self._transport.pause_reading if is_behind else self._transport.resume_reading)()

    def _handle_frame(self, frame: memoryview) -> None:
        try:
            command, rest = split_command(frame)
            try:
                self._handle(command, rest)
            except (ProtocolError, DecodeError):
                raise
            except Exception:
                self._end_addressee(command)
        except (ProtocolError, DecodeError) as error:
            self._break(error)

    def _break(self, error: Exception) -> None:
        log.error("closing the connection to %s: %s", self.url, error)
        self.abort(Unavailable(f"{self.url} sent a broken frame: {error}"))

    # --- writing

    def close_producer(self, producer_id: int) -> None:
        """Tell the broker; nobody waits for its answer."""
        command = BaseCommand(type=Type.CLOSE_PRODUCER)
        command.close_producer.producer_id = producer_id
        command.close_producer.request_id = self.new_id()
        self.write_command(command)

    def close_consumer(self, consumer_id: int) -> None:
        command = BaseCommand(type=Type.CLOSE_CONSUMER)
        command.close_consumer.consumer_id = consumer_id
        command.close_consumer.request_id = self.new_id()
        self.write_command(command)

    def new_id(self) -> int:
        self._next_id += 1
        return self._next_id

    def write(self, *parts: bytes | bytearray) -> None:
        """A frame, in parts. The frames of one turn of the loop leave together."""
        if self._lost is None and self._writer is not None:
            self._writer.write(*parts)

    def flush(self) -> None:
        """Send what was written, without waiting for the end of this turn."""
        if self._writer is not None:
            self._writer.flush()

    def write_command(self, command: BaseCommand) -> None:
        self.write(encode_command(command))

    def _future(self) -> asyncio.Future[BaseCommand]:
        """An answer to come. Its waiter may give up before it fails."""
        answer: asyncio.Future[BaseCommand] = self._loop.create_future()
        answer.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        return answer

    async def request(self, request_id: int, command: BaseCommand, seconds: float = REQUEST_SECONDS) -> BaseCommand:
        """Send a command and wait for the answer with its request id."""
        if self._lost is not None:
            raise self._lost
        answer = self._future()
        self._requests[request_id] = answer
        self.write_command(command)
        return await self._await_answer(request_id, answer, seconds)

    async def second_answer(self, request_id: int, seconds: float | None) -> BaseCommand:
        """Wait for one more answer to a request: a WaitForExclusive producer gets two (PIP-68)."""
        if self._lost is not None:
            raise self._lost
        return await self._await_answer(request_id, self._requests[request_id], seconds)

    async def _await_answer(
        self, request_id: int, answer: asyncio.Future[BaseCommand], seconds: float | None
    ) -> BaseCommand:
        try:
            async with asyncio.timeout(seconds):
                first = await answer
        except TimeoutError as error:
            self._requests.pop(request_id, None)
            raise Unavailable(f"{self.url} did not answer within {seconds:.0f} s") from error
        except BaseException:
            self._requests.pop(request_id, None)
            raise
        if self._requests.get(request_id) is answer:
            del self._requests[request_id]
        return first

    # --- reading

    def _handle(self, command: BaseCommand, rest: memoryview) -> None:
        kind = command.type
        if kind == _SEND_RECEIPT:
            receipt = command.send_receipt
            if (producer := self.producers.get(receipt.producer_id)) is not None:
                message_id = receipt.message_id
                producer.on_receipt(receipt.sequence_id, message_id.ledger_id, message_id.entry_id)
        elif kind == _MESSAGE:
            if (consumer := self.consumers.get(command.message.consumer_id)) is not None:
                message_id = command.message.message_id
                consumer.on_entry(decode_entry(message_id.ledger_id, message_id.entry_id, rest))
        else:
            self._handle_rarer(command)

    def _end_addressee(self, command: BaseCommand) -> None:
        """A producer or consumer has failed at a frame: it ends, and the others on the connection go on."""
        metrics.INTERNAL_ERRORS.labels("connection").inc()
        limited.exception("a frame of type %s from %s could not be handled", command.type, self.url)
        reason = Unavailable("the sidecar failed at a frame")
        match command.type:
            case Type.SEND_RECEIPT | Type.SEND_ERROR:
                receipt = command.send_receipt if command.type == Type.SEND_RECEIPT else command.send_error
                if (producer := self.producers.pop(receipt.producer_id, None)) is not None:
                    self.close_producer(receipt.producer_id)
                    _tell_end(producer, reason)
            case Type.MESSAGE | Type.ACTIVE_CONSUMER_CHANGE:
                change = command.message if command.type == Type.MESSAGE else command.active_consumer_change
                if (consumer := self.consumers.pop(change.consumer_id, None)) is not None:
                    self.close_consumer(change.consumer_id)
                    _tell_end(consumer, reason)

    def _handle_rarer(self, command: BaseCommand) -> None:
        match command.type:
            case Type.PING:
                self.write_command(BaseCommand(type=Type.PONG, pong={}))
            case Type.PONG:
                pass
            case Type.CONNECTED:
                if not self._connected.done():
                    self._connected.set_result(command)
            case Type.SEND_ERROR:
                failure = command.send_error
                if (producer := self.producers.get(failure.producer_id)) is not None:
                    producer.on_send_error(failure.sequence_id, failure.error, failure.message)
            case Type.CLOSE_PRODUCER:
                if (producer := self.producers.pop(command.close_producer.producer_id, None)) is not None:
                    producer.on_end(Unavailable("the broker closed the producer"))
            case Type.CLOSE_CONSUMER:
                if (consumer := self.consumers.pop(command.close_consumer.consumer_id, None)) is not None:
                    consumer.on_end(Unavailable("the broker closed the consumer"))
            case Type.ACTIVE_CONSUMER_CHANGE:
                change = command.active_consumer_change
                if (consumer := self.consumers.get(change.consumer_id)) is not None:
                    consumer.on_active(change.is_active)
            case Type.PRODUCER_SUCCESS:
                request_id = command.producer_success.request_id
                self._answer(request_id, command)
                if not command.producer_success.producer_ready and request_id in self._requests:
                    # For the second PRODUCER_SUCCESS, which may be in the same read.
                    self._requests[request_id] = self._future()
            case Type.SUCCESS:
                self._answer(command.success.request_id, command)
            case Type.LOOKUP_RESPONSE:
                self._answer(command.lookup_topic_response.request_id, command)
            case Type.GET_LAST_MESSAGE_ID_RESPONSE:
                self._answer(command.get_last_message_id_response.request_id, command)
            case Type.ERROR:
                self._fail(command)
            case Type.AUTH_CHALLENGE:
                # A broker may send AUTH_CHALLENGE ("PulsarAuthRefresh") at any time. A client without credentials
                # answers with empty auth data.
                answer = BaseCommand(type=Type.AUTH_RESPONSE)
                answer.auth_response.response.auth_method_name = command.auth_challenge.challenge.auth_method_name
                answer.auth_response.response.auth_data = b""
                answer.auth_response.protocol_version = PROTOCOL_VERSION
                self.write_command(answer)
            case _:
                log.debug("ignored a command of type %s from %s", command.type, self.url)

    def _answer(self, request_id: int, command: BaseCommand) -> None:
        waiting = self._requests.get(request_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(command)

    def _fail(self, command: BaseCommand) -> None:
        failure = from_code(command.error.error, command.error.message)
        waiting = self._requests.get(command.error.request_id)
        if waiting is not None and not waiting.done():
            waiting.set_exception(failure)
        elif not self._connected.done():
            self._connected.set_exception(failure)


def _tell_end(sink: ProducerEvents | ConsumerEvents, reason: PulsarError) -> None:
    try:
        sink.on_end(reason)
    except Exception:  # the other producers and consumers of the connection must still be notified
        metrics.INTERNAL_ERRORS.labels("connection").inc()
        limited.exception("the end of a producer or consumer could not be told")
