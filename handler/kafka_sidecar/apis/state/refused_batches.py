"""Behind a batch that was refused for a moment nothing of its producer is taken, until that batch is back.

A Kafka producer sends several batches of a partition before it has the first answer. Where one of them is refused and
is to be sent again, those behind it have left already. The partition may take batches again when they come: it was
opened again, say, or another member has left. One that was taken then would stand before the refused batch in the log,
and a log that knew nothing of the producer would always refuse that one (OUT_OF_ORDER_SEQUENCE_NUMBER, which librdkafka
takes for fatal).

A connection keeps the order of requests, so what was behind the refused batch comes before its second try.

That the log has the refused batch does not end the wait. It may have been a retry, whose first try is written and whose
producer does not know it. If later batches were taken, its next retry might not be among the last five of its producer
any more, and only those are recognised.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from kafka_sidecar.partition.fold.producers import is_later
from kafka_sidecar.partition.log.errors import SENT_AGAIN
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import NO_PRODUCER_ID

# So long after the refusal has left, a producer is served though its batch has not come back: its client has given it
# up. It is more than a process may stand still before it ends its connections (`Awake`).
FORGET_SECONDS: Final = 15.0
# Of one connection. One that has more ends, and with it all that was behind them.
MOST_REFUSED: Final = 10_000
MOST_OF_A_PRODUCER: Final = 1_000  # and of a partition


@dataclass(slots=True)
class Refused:
    epoch: int
    first_sequence: int
    error: ErrorCode
    at: float
    is_elsewhere: bool  # its client was sent to another leader
    left_at: float = (
        math.inf
    )  # on the clock that stands while nothing is read; the answer with the refusal may stand behind others


class RefusedBatches:
    """Of one connection: those of each partition and producer, in the order of their sequences."""

    __slots__ = ("_count", "_paused_at", "_refused", "_unread", "unanswered")

    def __init__(self) -> None:
        self._unread = 0.0  # seconds in which nothing was read of the connection
        self._paused_at = math.inf  # since when nothing is read of it
        self._refused: dict[tuple[Hashable, int], list[Refused]] = {}  # about in the order of their times
        self._count = 0  # of batches
        self.unanswered: deque[Refused] = deque()  # in the order of their times: those whose answer has not left

    def pause(self, now: float) -> None:
        """Nothing is read of the connection."""
        self._paused_at = now

    def resume(self, now: float) -> None:
        self._unread += now - self._paused_at
        self._paused_at = math.inf

    def _read_time(self, now: float) -> float:
        """A clock that stands while nothing is read: what was behind a batch waits in the socket."""
        return min(now, self._paused_at) - self._unread

    def answered(self, waiting_since: float | None, now: float) -> None:
        """Answers have left. `waiting_since`: when the oldest of the requests came that have none yet."""
        unanswered = self.unanswered
        while unanswered and (waiting_since is None or unanswered[0].at < waiting_since):
            unanswered.popleft().left_at = self._read_time(now)

    def holds_any(self, now: float) -> bool:
        """Whether a batch may have to be refused. What clients have given up is forgotten: many go to another leader
        for good.
        """
        if not self._refused:
            return False
        self._forget_old(now)
        return bool(self._refused)

    def note(
        self,
        partition: Hashable,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        error: ErrorCode,
        now: float,
        is_elsewhere: bool = False,
    ) -> bool:
        """A batch was refused. False where there are too many to remember."""
        if producer_id == NO_PRODUCER_ID or error not in SENT_AGAIN:
            return True
        key = partition, producer_id
        batches = self._refused.get(key, [])
        if batches and batches[0].epoch < epoch:
            self._forget(key)
            batches = []
        if batches and batches[0].epoch > epoch:
            return True
        place = len(batches)
        while place and not is_later(first_sequence, batches[place - 1].first_sequence):
            place -= 1
        if place < len(batches) and batches[place].first_sequence == first_sequence:
            return True
        self._forget_old(now)
        batches = self._refused.get(key, [])
        if max(self._count, len(self.unanswered)) >= MOST_REFUSED or len(batches) >= MOST_OF_A_PRODUCER:
            return False
        refused = Refused(epoch, first_sequence, error, now, is_elsewhere)
        batches.insert(place, refused)
        if batches[0] is refused:
            self._refused.pop(key, None)
            self._refused[key] = batches
        self._count += 1
        self.unanswered.append(refused)
        return True

    def before(
        self, partition: Hashable, producer_id: int, epoch: int, first_sequence: int, now: float
    ) -> Refused | None:
        """The refused batch behind which this one comes, and for which it has to wait."""
        key = partition, producer_id
        batches = self._refused.get(key)
        if batches is None or epoch < batches[0].epoch:
            return None
        if epoch > batches[0].epoch or self._is_given_up(batches[0], now):
            self._forget(key)
            return None
        while batches and not is_later(batches[0].first_sequence, first_sequence):
            first = batches[0]
            if first.first_sequence != first_sequence:
                return first
            self._is_back(key, batches, now)
        return None

    def _is_back(self, key: tuple[Hashable, int], batches: list[Refused], now: float) -> None:
        """The first one came again. The next one can come from now on."""
        del batches[0]
        self._count -= 1
        del self._refused[key]
        if batches:
            batches[0].left_at = max(batches[0].left_at, self._read_time(now))
            self._refused[key] = batches

    def _forget(self, key: tuple[Hashable, int]) -> None:
        self._count -= len(self._refused.pop(key, ()))

    def _forget_old(self, now: float) -> None:
        while self._refused:
            key, oldest = next(iter(self._refused.items()))
            if not self._is_given_up(oldest[0], now):
                return
            self._forget(key)

    def _is_given_up(self, first: Refused, now: float) -> bool:
        return self._read_time(now) - first.left_at >= FORGET_SECONDS
