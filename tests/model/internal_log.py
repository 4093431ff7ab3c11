"""A partition of an internal topic: one exclusive producer at a time, candidates of an election, compaction.

WaitForExclusive ──▶ waits ──the one before is gone──▶ exclusive
candidates ──▶ the one with the lowest priority is active ──a second later──▶ all are told
compact ──▶ phase one ──▶ phase two ──▶ readers of what is compacted are given that up to the horizon
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from operator import attrgetter
from typing import Any, Final

from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.pulsar.events import ConsumerEvents, ProducerEvents
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from tests.model.compaction import compacted
from tests.model.conduct import NOBODYS, Caller, Conduct, Way
from tests.model.connections import Connection, Reader, Writer
from tests.model.topic import Topic

# activeConsumerFailoverDelayTimeMillis.
FAILOVER_SECONDS: Final = 1.0
_position: Final = attrgetter("position")


class BatchWriter(Writer):
    def send_batch(self, sequence: int, count: int, payload: bytes) -> None:
        self.send(
            sequence, count, MessageMetadata(num_messages_in_batch=count).SerializePartialToString(), payload, None
        )

    def be_unknown(self) -> None:
        was_known = self.is_known
        super().be_unknown()
        if was_known and isinstance(self.topic, InternalLog):
            self.topic.let_next_in(self)


@dataclass(slots=True)
class _Waiting:
    writer: BatchWriter
    is_in: asyncio.Future[None]
    is_given_up: bool = False


class CompactedReader(Reader):
    """Up to the horizon of the last compaction it is given what that has left, wherever it began to read."""

    def _from_here(self) -> Iterator[RawEntry]:
        topic, next_ = self.topic, self._next
        assert isinstance(topic, InternalLog)
        if topic.horizon is None or (next_ is not None and next_ > topic.horizon):
            yield from super()._from_here()
            return
        yield from (entry for entry in topic.compacted if next_ is None or entry.position >= next_)
        first = max(topic.trimmed, bisect_right(topic.entries, topic.horizon, key=_position))
        yield from islice(topic.entries, first, len(topic.entries))


class Candidate(Connection):
    def __init__(
        self,
        log: InternalLog,
        election: _Election,
        way: Way,
        name: str,
        priority: int,
        events: ConsumerEvents,
        metadata: Mapping[bytes, bytes],
    ) -> None:
        super().__init__(log, way)
        self._election = election
        self.name = name
        self.priority = priority
        self.metadata = {key.decode(): value.decode() for key, value in metadata.items()}
        self._events = events

    def tell(self, active: Candidate | None) -> None:
        self.down(lambda: self._events.on_active(active is self))

    def cut(self, reason: Any = None) -> None:
        self.way.up(lambda: self._election.strike(self))
        super().cut(reason)

    def close(self) -> None:
        self.is_open = False
        self.way.up(self._closed)

    def _closed(self) -> None:
        self._election.strike(self)
        self.forget()

    def tell_end(self, reason: Any) -> None:
        self._events.on_end(reason)


class _Election:
    """Of one Failover subscription: AbstractDispatcherSingleActiveConsumer.pickAndScheduleActiveConsumer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, partition: int) -> None:
        self._loop = loop
        self._partition = partition
        self._candidates: list[Candidate] = []
        self._active: Candidate | None = None
        self._telling: asyncio.TimerHandle | None = None

    def join(self, candidate: Candidate) -> None:
        self._candidates.append(candidate)
        if not self._pick():
            candidate.tell(self._active)  # it alone, and at once

    def strike(self, candidate: Candidate) -> None:
        """From the list: the broker has noticed that it is gone."""
        if candidate in self._candidates:
            self._candidates.remove(candidate)
            self._pick()

    def _pick(self) -> bool:
        """Whether another is active from now on. All are told so later, by one task for all changes until then."""
        self._candidates.sort(key=lambda one: (one.priority, one.name))
        first = [one for one in self._candidates if one.priority == self._candidates[0].priority]
        active = first[self._partition % len(first)] if first else None
        if active is self._active:
            return False
        self._active = active
        if self._telling is None and active is not None:
            self._telling = self._loop.call_later(FAILOVER_SECONDS, self._tell_all, context=NOBODYS)
        return True

    def _tell_all(self) -> None:
        self._telling = None
        for one in list(self._candidates):
            one.tell(self._active)

    def stats(self) -> dict[str, Any]:
        """The new active candidate is named at once."""
        listed = [{"consumerName": one.name, "metadata": one.metadata} for one in self._candidates]
        return {"activeConsumerName": self._active.name if self._active is not None else "", "consumers": listed}

    def end(self) -> None:
        if self._telling is not None:
            self._telling.cancel()


class InternalLog(Topic):
    def __init__(self, conduct: Conduct, loop: asyncio.AbstractEventLoop, partition: int = 0, **kinds: bool) -> None:
        super().__init__(conduct, **kinds)
        self.loop = loop
        self.partition = partition
        self.exclusive: BatchWriter | None = None
        self._waiting: deque[_Waiting] = deque()
        self._elections: dict[str, _Election] = {}  # by subscription
        self.compacted: list[RawEntry] = []
        self.compacted_ledger = self.cursors_ledger = -1
        self.horizon: Position | None = None
        self.is_compacting = False
        self.retention: tuple[int, int] | None = None  # minutes and MiB; None keeps all
        self._compactions = 0

    # --- AbstractTopic.incrementTopicEpochIfNeeded, handleProducerRemoved

    async def exclusive_as(self, name: str, events: ProducerEvents, way: Way, seconds: float | None) -> BatchWriter:
        """When nobody else writes. Who gives up stays in the queue, and is let in and closed when it is its turn."""
        if name in self.known_writers:
            raise Unavailable("a producer of this name is connected")
        writer = BatchWriter(self, name, events, way)
        waiting = _Waiting(writer, self.loop.create_future())
        if self.exclusive is None and not self._waiting:
            self._let_in(waiting)
        else:
            self._waiting.append(waiting)
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(waiting.is_in)
        except BaseException as error:
            waiting.is_given_up = True
            writer.close()
            if isinstance(error, TimeoutError):
                raise Unavailable(f"another producer has {name} wait") from error
            raise
        if not writer.is_open:
            raise Unavailable("cut")
        return writer

    def _let_in(self, waiting: _Waiting) -> None:
        self.exclusive = waiting.writer
        self.conduct.store(lambda: self._is_in(waiting))  # the topic's epoch is stored first

    def _is_in(self, waiting: _Waiting) -> None:
        if self.exclusive is not waiting.writer:
            return
        if waiting.is_given_up or not waiting.writer.is_connected:
            waiting.writer.be_unknown()
            self.let_next_in(waiting.writer)
            return
        waiting.writer.down(lambda: None if waiting.is_in.done() else waiting.is_in.set_result(None))

    def let_next_in(self, gone: BatchWriter) -> None:
        if self.exclusive is gone:
            self.exclusive = None
            if self._waiting:
                self._let_in(self._waiting.popleft())

    # --- elections

    def candidate_as(
        self,
        subscription: str,
        name: str,
        priority: int,
        events: ConsumerEvents,
        metadata: Mapping[bytes, bytes],
        way: Way,
    ) -> Candidate:
        election = self._elections.setdefault(subscription, _Election(self.loop, self.partition))
        candidate = Candidate(self, election, way, name, priority, events, metadata)
        if self.conduct.forgets_reader():
            # It stands at what is being closed, where nobody else does. Whoever asks the topic later is not told of it.
            self.loop.call_later(FAILOVER_SECONDS, candidate.tell, candidate, context=NOBODYS)
        else:
            election.join(candidate)
        return candidate

    def subscription_stats(self) -> dict[str, Any]:
        return {name: election.stats() for name, election in self._elections.items()}

    # --- TwoPhaseCompactor, CompactedTopicImpl

    def compacted_reader_as(
        self, name: str, start: Position | None, events: ConsumerEvents, caller: Caller
    ) -> CompactedReader:
        self.opened_at.append(start)
        return CompactedReader(self, start, events, caller.way(self.opens("reader", name)))

    def compact(self, delay: Callable[[], float]) -> None:
        """Phase one goes to what is the last entry when it begins."""
        assert not self.is_compacting
        self.is_compacting = True
        self.loop.call_later(delay(), self._begin_phase_one, delay, context=NOBODYS)

    def _begin_phase_one(self, delay: Callable[[], float]) -> None:
        if self.entries and self.is_compacting:
            self.loop.call_later(delay(), self._end_phase_two, self.entries[-1].position, context=NOBODYS)
        else:
            self.is_compacting = False

    def _end_phase_two(self, last: Position) -> None:
        if not self.is_compacting:
            return  # the topic was closed
        self.is_compacting = False
        first = 0 if self.horizon is None else bisect_right(self.entries, self.horizon, key=_position)
        first, until = max(first, self.trimmed), bisect_right(self.entries, last, key=_position)
        self.compacted = compacted([*self.compacted, *self.entries[first:until]])
        self.horizon = last
        self._compactions += 1
        self.compacted_ledger = self.cursors_ledger = 1_000_000 + self._compactions
        self.take_what_is_old()

    # --- ManagedLedgerImpl.internalTrimLedgers

    def roll(self) -> None:
        super().roll()
        self.take_what_is_old()

    def take_what_is_old(self) -> None:
        """Closed ledgers at the front, up to the cursor of compaction. Where there is no such cursor nothing is
        held.
        """
        if self.retention is None or self.retention[0] < 0 or not self.entries:
            return
        oldest = self.conduct.now_ms() - self.retention[0] * 60_000
        until = self.trimmed
        for place in range(self.trimmed, len(self.entries)):
            entry = self.entries[place]
            ends_ledger = (
                place + 1 == len(self.entries) or self.entries[place + 1].position.ledger != entry.position.ledger
            )
            is_held = self.was_compacted and (self.horizon is None or entry.position > self.horizon)
            if entry.position.ledger == self.ledger or is_held or (entry.broker_timestamp or 0) > oldest:
                break
            if ends_ledger:
                until = place + 1
        self.trimmed = until

    def kept_though_old(self, minutes: int) -> str | None:
        """What this log keeps though it was to be gone, in words."""
        if self.retention != ((minutes, -1) if minutes else (0, 0)):
            return f"the retention {self.retention}"
        behind = len(self.entries) - (
            0 if self.horizon is None else bisect_right(self.entries, self.horizon, key=_position)
        )
        return (
            f"{behind} entries behind {len(self.compacted)} that are compacted"
            if behind * 4 >= max(4, len(self.compacted))
            else None
        )

    @property
    def compaction_cursor(self) -> Position | None:
        """It is made when the first compaction begins, before the first entry."""
        if self.horizon is not None or not self.was_compacted:
            return self.horizon
        return Position(self.entries[0].position.ledger if self.entries else self.ledger, -1)

    @property
    def was_compacted(self) -> bool:
        """Whether the `__compaction` cursor is there."""
        return self.horizon is not None or self.is_compacting

    # --- what becomes of it

    def _end(self, recovered: int) -> None:
        """It is unloaded: the broker that has it next knows nobody."""
        self.is_compacting = False
        waiting, self._waiting = self._waiting, deque()
        self.exclusive = None
        elections, self._elections = self._elections, {}
        for election in elections.values():
            election.end()
        super()._end(recovered)
        for one in waiting:
            if not one.is_in.done():
                one.is_in.set_exception(Unavailable("the topic is closed"))
                one.is_in.exception()
