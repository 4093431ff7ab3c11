"""Behind a batch that was refused for a moment nothing of its producer is taken, until that batch is back.

A Kafka producer sends several batches of a partition before it has the first answer. Where one of them is refused and is to be sent
again, those behind it have left already. The partition may take batches again when they come: it was opened anew, say, or another
member has left. One that was taken then would stand before the refused batch in the log, and a log that knew nothing of the
producer would refuse that one for ever (OUT_OF_ORDER_SEQUENCE_NUMBER, which librdkafka takes for fatal).

A connection keeps the order of requests, so what was behind the refused batch comes before its second try.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final

from handler.partition.errors import SENT_AGAIN
from handler.partition.fold.producers import is_later
from handler.partition.log.basis import KnownProducer
from handler.wire.error_code import ErrorCode
from handler.wire.records import NO_PRODUCER_ID

# So long after the refusal has left, a producer is served though its batch has not come back: its client has given it up. It is more than
# a process may stand still before it ends its connections (`Awake`).
FORGET_SECONDS: Final = 15.0
# Of one connection. One that has more ends, and with it all that was behind them.
MOST_REFUSED: Final = 10_000

# Of a producer id the last batch in the partition's log, where that is known.
KnownProducers = Callable[[int], KnownProducer | None]


@dataclass(slots=True)
class Refused:
    epoch: int
    first_sequence: int
    error: ErrorCode
    at: float
    is_elsewhere: bool  # its client was sent to another leader
    left_at: float = math.inf  # the answer with the refusal may stand behind others


class RefusedBatches:
    """Of one connection: the first of each partition and producer."""

    __slots__ = ("_first", "read_since", "unanswered")

    def __init__(self) -> None:
        # While nothing is read of the connection, what was behind a batch waits in its socket: `math.inf`.
        self.read_since = 0.0
        self._first: dict[tuple[Hashable, int], Refused] = {}  # in the order of their times
        self.unanswered: deque[Refused] = deque()  # likewise: those whose answer has not left

    def answered(self, waiting_since: float | None, now: float) -> None:
        """Answers have left. `waiting_since`: when the oldest of the requests came that have none yet."""
        unanswered = self.unanswered
        while unanswered and (waiting_since is None or unanswered[0].at < waiting_since):
            unanswered.popleft().left_at = now

    def holds_any(self, now: float) -> bool:
        """Whether a batch may have to be refused. What clients have given up is forgotten: many go to another leader for good."""
        if not self._first:
            return False
        self._forget_old(now)
        return bool(self._first)

    def note(
        self, partition: Hashable, producer_id: int, epoch: int, first_sequence: int, error: ErrorCode, now: float,
        is_elsewhere: bool = False,
    ) -> bool:  # fmt: skip
        """A batch was refused. False where there are too many to remember."""
        if producer_id == NO_PRODUCER_ID or error not in SENT_AGAIN:
            return True
        key = partition, producer_id
        known = self._first.get(key)
        if known is not None and (known.epoch > epoch or (known.epoch == epoch and not is_later(known.first_sequence, first_sequence))):
            return True  # it stood behind another one
        self._first.pop(key, None)
        self._forget_old(now)
        if max(len(self._first), len(self.unanswered)) >= MOST_REFUSED:
            return False
        refused = self._first[key] = Refused(epoch, first_sequence, error, now, is_elsewhere)
        self.unanswered.append(refused)
        return True

    def before(
        self, partition: Hashable, producer_id: int, epoch: int, first_sequence: int, now: float, known: KnownProducers
    ) -> Refused | None:  # fmt: skip
        """The refused batch behind which this one comes, and for which it has to wait."""
        key = partition, producer_id
        refused = self._first.get(key)
        if refused is None or epoch < refused.epoch:
            return None
        if epoch == refused.epoch and is_later(refused.first_sequence, first_sequence):
            return None  # one from before it
        is_behind = epoch == refused.epoch and first_sequence != refused.first_sequence and not self._is_given_up(refused, now)
        if is_behind and not _is_written(refused, known(producer_id)):
            return refused
        del self._first[key]
        return None

    def _forget_old(self, now: float) -> None:
        while self._first:
            key, oldest = next(iter(self._first.items()))
            if not self._is_given_up(oldest, now):
                return
            del self._first[key]

    def _is_given_up(self, refused: Refused, now: float) -> bool:
        return now - max(refused.left_at, self.read_since) >= FORGET_SECONDS


def _is_written(refused: Refused, known: KnownProducer | None) -> bool:
    """Whether the refused batch is in the log by now: its client took it elsewhere."""
    if known is None or known.epoch != refused.epoch:
        return known is not None and known.epoch > refused.epoch
    last = known.last_sequence  # -1 where nothing of the epoch is
    return last >= 0 and (last == refused.first_sequence or is_later(last, refused.first_sequence))
