"""One Kafka client's connection.

Requests are begun in the order they come, many may be in flight, and answers leave in the order of
the requests. Reading stops while the client takes no answers, while too many of its requests are
in flight, and while the process has no bytes to spare (`connection_state` has the rest). A request that changes
something runs to its end also when its client goes: until then the connection counts as one of the listener's, which
bounds how much of that there can be.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final, cast

from kafka_sidecar.apis.api import BegunRequest, Response, Services
from kafka_sidecar.apis.state.answer_share import AnswerShare, CountedFetchResponse
from kafka_sidecar.apis.state.promise import Promise
from kafka_sidecar.apis.state.refused_batches import RefusedBatches
from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.fleet.fleet import View
from kafka_sidecar.loop.awake import Awake
from kafka_sidecar.loop.states import next_state
from kafka_sidecar.loop.turn_writer import TurnWriter
from kafka_sidecar.model.sidecar import Endpoint
from kafka_sidecar.server.budget import ByteBudget
from kafka_sidecar.server.connection_state import TRANSITIONS, ConnectionState
from kafka_sidecar.server.round_trip import round_trip
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.wire.framing import FrameBuffer
from kafka_sidecar.wire.message import Message

log = logging.getLogger(__name__)
limited = RateLimitedLog(log)

# Limit of requests in flight on a connection. Java clients have 5, librdkafka up to a million (max.in.flight), and each
# request holds objects in memory.
MAX_IN_WORK: Final = 128
RESUME_IN_WORK: Final = 64
# A client on a slow link makes progress more often than every 10 s. A suspended client may resume later, but must not
# hold memory that others wait for.
STALLED_SECONDS: Final = 10.0
# Minimum progress in bytes: per second while a request arrives, and per STALLED_SECONDS while fetch responses leave. A
# slower client counts as stalled while others wait for memory.
LEAST_RATE: Final = 64 * 1024
# After the sidecar has closed its side of a connection, the client has 1 s to close the other side.
FAREWELL_SECONDS: Final = 1.0
# A heartbeat whose response waits longer than 3 s behind other responses may soon exceed session.timeout.ms.
LATE_SECONDS: Final = 3.0


Dispatch = Callable[["KafkaConnection", memoryview], BegunRequest]


class _Slot:
    """A place in the order of answers."""

    __slots__ = (
        "abandoned",
        "answer",
        "answer_size",
        "begun",
        "handled",
        "orphaned",
        "ready",
        "ready_at",
        "size",
        "task",
    )

    def __init__(self, handled: BegunRequest, size: int, begun: float) -> None:
        self.handled = handled
        self.size = size
        self.begun = begun
        self.ready = False
        self.ready_at = 0.0  # when the response was complete, if it had to wait for earlier responses
        self.answer_size = 0  # bytes that this response counts in the AnswerShare
        self.abandoned = False  # the client has disconnected, and the result is discarded
        self.orphaned = False  # the client has disconnected, and the request runs to completion
        self.answer: Response = None  # stays None if the request gets no response
        self.task: asyncio.Future[Any] | None = None


class KafkaConnection(asyncio.Protocol):
    def __init__(
        self,
        services: Services,
        dispatch: Dispatch,
        budget: ByteBudget,
        answers: AnswerShare,
        max_request: int,
        on_lost: Callable[[KafkaConnection], None],
        awake: Awake,
        on_stood_still: Callable[[], None],
        is_external: bool = False,
    ) -> None:
        self.is_external = is_external
        self._awake = awake
        self._on_stood_still = on_stood_still
        self._dispatch = dispatch
        self._budget = budget
        self._answers = answers
        self._answer_bytes = 0  # bytes of completed fetch responses that the client has not received yet
        self._read_since = 0.0
        self._moved = (0, 0.0)  # bytes in the write buffer and loop time when the client last received response bytes
        self._on_lost = on_lost
        self._frames = FrameBuffer(max_request)
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._writer: TurnWriter | None = None
        self._slots: deque[_Slot] = deque()
        self._backlog: deque[memoryview] = deque()  # received requests that wait until earlier requests are answered
        self._reserved = 0  # bytes reserved for the frame that is still arriving
        self._reserved_at = 0.0
        self._waiting_for_budget = False
        self._client_is_slow = False
        self._orphans = 0
        self._state = ConnectionState.SERVING
        self._paused = False
        self._resuming = False
        self.services = services
        self.refused = RefusedBatches()
        self.peer = ""
        self.software = ""
        self.last_metadata: View | None = None
        self.local_address = Endpoint("", 0)
        self.last_active = self._loop.time()

    @property
    def waiting_since(self) -> float | None:
        """When the oldest of the requests that have no answer came."""
        return self._slots[0].begun if self._slots else None

    def __str__(self) -> str:
        """What an operator wants to know of one that does not end."""
        slots = list(self._slots)
        since = (
            f"{slots[0].handled.api} has had no answer for {self._loop.time() - slots[0].begun:.1f} s"
            if slots
            else "it has all answers"
        )
        return (
            f"{self.peer or 'a client'} ({self._state.name.lower()}, {len(slots)} requests, {self._orphans} go on "
            f"without it): {since}"
        )

    @property
    def round_trip(self) -> float:
        """How many seconds the network takes to the client and back."""
        return 0.0 if self._transport is None else round_trip(self._transport)

    # --- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not derive from asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._writer = TurnWriter(self._transport)
        peer = transport.get_extra_info("peername") or ("?", 0)
        local = transport.get_extra_info("sockname") or ("", 0)
        self.peer = f"{peer[0]}:{peer[1]}"
        self.local_address = Endpoint(str(local[0]), int(local[1]))
        metrics.CONNECTIONS.inc()
        if self._state is ConnectionState.DRAINING:  # drain() was called between accept and connection_made
            self._take_leave()

    def connection_lost(self, exc: Exception | None) -> None:
        metrics.CONNECTIONS.dec()
        self._transport = None
        if self._waiting_for_budget and self._budget.withdraw(self._budget_granted):
            self._reserved = 0
        self._release(self._reserved)
        self._reserved = 0
        self._give_back(self._answer_bytes)
        slots, self._slots = self._slots, deque()
        for slot in slots:
            has_ended = (
                slot.task is not None and slot.task.done()
            )  # the request may have failed, and that closed the connection
            if slot.ready or has_ended or slot.handled.ends_with_client:
                slot.abandoned = True
                if slot.task is not None:
                    slot.task.cancel()
                self._release(slot.size)
            else:
                slot.orphaned = True
                self._orphans += 1
        self._backlog.clear()
        if not self._orphans:
            self._on_lost(self)

    def eof_received(self) -> bool:
        return False

    def data_received(self, data: bytes) -> None:
        self.last_active = self._loop.time()
        if self._state is ConnectionState.LEAVING:
            return
        if self._awake.stood_still():
            self._on_stood_still()
            return
        try:
            frames = self._frames.feed(data)
        except ProtocolError as error:
            self._refuse("frame", error)
            return
        if frames and self._reserved:
            self._release(self._reserved)  # the request counts these bytes again when it begins, in _begin
            self._reserved = 0
        self._backlog.extend(frames)
        self._begin_backlog()
        announced = self._frames.announced
        if announced and not self._reserved and not self._waiting_for_budget and self._transport is not None:
            self._reserved = announced
            self._reserved_at = self.last_active
            self._waiting_for_budget = not self._budget.reserve(announced, self._budget_granted)
        self._regulate()

    def pause_writing(self) -> None:
        self._client_is_slow = True
        self._regulate()

    def resume_writing(self) -> None:
        self._client_is_slow = False
        self._give_back(self._answer_bytes - sum(slot.answer_size for slot in self._slots))
        self._flush()
        self._begin_backlog()
        self._regulate()

    # --- reading

    def _budget_granted(self) -> None:
        self._waiting_for_budget = False
        self._regulate()

    def _regulate(self) -> None:
        """Read on or not, from everything that has a say in it."""
        if self._transport is None or self._state is ConnectionState.LEAVING:
            return
        pause = (
            self._waiting_for_budget
            or self._client_is_slow
            or self._state is not ConnectionState.SERVING
            or bool(self._backlog)
            or len(self._slots) >= MAX_IN_WORK
        )
        if pause and not self._paused:
            self._transport.pause_reading()
            self.refused.pause(self._loop.time())
        elif not pause and self._paused:
            self._transport.resume_reading()
            self._read_since = self._loop.time()
            self.refused.resume(self._read_since)
        self._paused = pause

    def _begin_backlog(self) -> None:
        while self._backlog and len(self._slots) < MAX_IN_WORK and not self._client_is_slow:
            if self._transport is None or self._state is not ConnectionState.SERVING:
                return
            self._begin(self._backlog.popleft())

    def _begin(self, frame: memoryview) -> None:
        size = len(frame)
        begun = self._loop.time()
        try:
            handled = self._dispatch(self, frame)
        except ProtocolError as error:
            self._refuse("request", error)
            return
        except Exception:
            metrics.INTERNAL_ERRORS.labels("request").inc()
            log.exception("a request of %s ended in an error of the sidecar; its connection is closed", self.peer)
            self.abort()
            return
        self._budget.take(size)
        slot = _Slot(handled, size, begun)
        self._slots.append(slot)
        answer = handled.answer
        if answer is None or isinstance(answer, Message | bytes):
            self._finish(slot, answer)
        elif isinstance(answer, Promise):
            answer.then(self._finish, slot)
        else:
            task = asyncio.ensure_future(answer)
            slot.task = task
            task.add_done_callback(lambda done: self._task_done(slot, done))

    def _refuse(self, cause: str, error: ProtocolError) -> None:
        metrics.REFUSED.labels(cause).inc()
        limited.warning("closing the connection of %s: %s", self.peer, error)
        self.abort()

    # --- answering

    def _task_done(self, slot: _Slot, task: asyncio.Future[Any]) -> None:
        failure = None if task.cancelled() else task.exception()
        if failure is not None:
            metrics.INTERNAL_ERRORS.labels("request").inc()
            log.error(
                "a %s request of %s ended in an error of the sidecar", slot.handled.api, self.peer, exc_info=failure
            )
            self.abort()
        if not task.cancelled() and failure is None:
            self._finish(slot, task.result())
        elif slot.orphaned:
            self._finish(slot, None)
        elif not slot.abandoned:
            self.abort()  # responses keep the order of requests, so later ones would wait without end

    def _finish(self, slot: _Slot, answer: Response) -> None:
        if slot.orphaned:
            self._release(slot.size)
            self._orphans -= 1
            if not self._orphans:
                self._on_lost(self)
            return
        if isinstance(answer, CountedFetchResponse):
            slot.answer_size = answer.counted_bytes
        if slot.abandoned:
            self._answers.release(slot.answer_size)
            return
        slot.ready = True
        slot.answer = answer
        self._release(slot.size)
        slot.size = 0
        if slot.answer_size and not self._answer_bytes:
            self._moved = (0, self._loop.time())
        self._answer_bytes += slot.answer_size
        if self._slots[0] is not slot:
            slot.ready_at = self._loop.time()
        self._flush()

    def _flush(self) -> None:
        """Send what is ready and next; what is sent in one turn of the loop leaves together.

        An answer is encoded when its turn has come and its client takes answers: before that it is a few
        references to what the cache holds, after that a copy.
        """
        slots = self._slots
        now = self._loop.time()
        before: _Slot | None = None
        while slots and slots[0].ready and not self._client_is_slow:
            slot = slots.popleft()
            slot.handled.took(now - slot.begun)
            if slot.ready_at and now - slot.ready_at > LATE_SECONDS and before is not None:
                limited.warning(
                    "an answer to %s of %s waited for %.1f s behind one to %s, which took %.1f s",
                    slot.handled.api,
                    self.peer,
                    now - slot.ready_at,
                    before.handled.api,
                    now - before.begun,
                )
            else:
                before = slot
            if self._answer_bytes:
                self._moved = (0, now)
            if slot.answer is not None and self._transport is not None and not self._send(slot):
                return
            if slot.answer_size and not self._client_is_slow:
                self._give_back(slot.answer_size)
        if self.refused.unanswered:
            self.refused.answered(self.waiting_since, now)
        if self._state is ConnectionState.DRAINING and not slots:
            self._take_leave()
        elif (self._backlog or self._paused) and len(slots) <= RESUME_IN_WORK and not self._resuming:
            # Later requests begin in the next event loop turn: the code that completed this response may complete
            # others in this one.
            self._resuming = True
            self._loop.call_soon(self._resume)

    def _send(self, slot: _Slot) -> bool:
        assert self._writer is not None
        assert slot.answer is not None
        try:
            pieces = slot.handled.encode(slot.answer)
        except Exception:
            metrics.INTERNAL_ERRORS.labels("request").inc()
            log.exception("the answer to a %s request of %s could not be encoded", slot.handled.api, self.peer)
            self.abort()
            return False
        self._writer.write(*pieces)
        if slot.answer_size:
            self._writer.flush()  # the response counts in the AnswerShare until the transport has its bytes
        return True

    def _resume(self) -> None:
        self._resuming = False
        self._begin_backlog()
        self._regulate()

    def _release(self, size: int) -> None:
        if size:
            self._budget.release(size)

    # --- holding bytes that others wait for

    def has_stalled(self, now: float) -> bool:
        """Whether it holds bytes that others wait for, and has not moved for a while."""
        return self._sends_nothing(now) or self._takes_nothing(now)

    def _sends_nothing(self, now: float) -> bool:
        """The rest of its request does not come, although it is read."""
        if not self._reserved or self._paused or not self._budget.is_wanted:
            return False
        if now - max(self._reserved_at, self._read_since) > STALLED_SECONDS + self._reserved / LEAST_RATE:
            return True  # the request arrives in small pieces, slower than LEAST_RATE
        return now - max(self.last_active, self._read_since) > STALLED_SECONDS

    def _takes_nothing(self, now: float) -> bool:
        """Its answers do not leave: it takes none, or waits for one that stands before them."""
        if not self._answer_bytes or self._transport is None or not self._answers.is_wanted:
            return False
        left = self._transport.get_write_buffer_size()
        before, at = self._moved
        if not before < left and before - left < LEAST_RATE:
            return now - at > STALLED_SECONDS
        self._moved = (left, now)
        return False

    def _give_back(self, size: int) -> None:
        self._answer_bytes -= size
        self._answers.release(size)

    # --- ending

    def drain(self) -> None:
        """Take no more requests; close when what is begun is answered."""
        if self._state is not ConnectionState.SERVING:
            return
        self._become(ConnectionState.DRAINING)
        self._backlog.clear()
        self._regulate()
        if not self._slots:
            self._take_leave()

    def _take_leave(self) -> None:
        """Send the end, and drop what still comes until the client has ended too.

        A socket that is closed with unread requests sends a reset instead, which takes back answers that are on their
        way: a client would send again what was appended.
        """
        if self._transport is None:
            return
        self._become(ConnectionState.LEAVING)
        if self._writer is not None:
            self._writer.flush()
        with contextlib.suppress(OSError):  # the client may have disconnected meanwhile
            self._transport.write_eof()
        self._transport.resume_reading()
        self._loop.call_later(FAREWELL_SECONDS, self.close)

    def _become(self, state: ConnectionState) -> None:
        self._state = next_state(TRANSITIONS, self._state, state)

    def close(self) -> None:
        if self._transport is not None:
            if self._writer is not None:
                self._writer.flush()
            self._transport.close()

    def abort(self) -> None:
        self._backlog.clear()
        if self._transport is not None:
            if self._writer is not None:
                self._writer.flush()  # responses to earlier requests are sent before the abort
            self._transport.abort()
