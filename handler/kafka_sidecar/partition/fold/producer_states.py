"""The states of all producers of a fold. Those that write are objects; those that have not written for a while are
packed. Pure.

awake ── others write, or a while has passed ──▶ asleep ── it writes again ──▶ awake
                                                   └── producer.id.expiration.ms later ──▶ expired

The place of a state says which entries its producer did not write, and is the same for all that fold a log. Which have
expired is not: each notes times of its own. So what a writer knew, of a producer that has expired here, gets no later
place. It is spared instead.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, Protocol

from kafka_sidecar.partition.fold.log_times import DAY_MS, LogTimes
from kafka_sidecar.partition.fold.packed_states import PackedStates
from kafka_sidecar.partition.fold.producer_state import ProducerState
from kafka_sidecar.partition.fold.transactions import TransactionVerdicts
from kafka_sidecar.pulsar.entry import Position

# One fold keeps the states of at most this many producers unpacked (awake).
MOST_AWAKE: Final = 1_024
# The limit for one fold while all folds together have too many unpacked states. With many folds it is lower still.
LEAST_AWAKE: Final = 8
# Approximate bytes of an unpacked state with five batches.
AWAKE_BYTES: Final = 2_048
# Approximate bytes of an entry in `_spared`, which exempts a producer from expiry.
SPARED_BYTES: Final = 256
# Unpacked states may use one fourth of the memory limit.
AWAKE_SHARE: Final = 4
# Limits for one call: pages that are searched for expired producers, and states that are packed.
_SWEPT_PAGES: Final = 16
_PUT_TO_SLEEP: Final = 64
# A Python dictionary never shrinks. One that held more states than this is replaced by a copy when less than a quarter
# of them is left.
_WIDE: Final = 64


class Counted(Protocol):
    """What a fold knows of its producers."""

    states: ProducerStates

    @property
    def size(self) -> int: ...


class ProducerMemory:
    """What all folds of a process may take together, for what they know of producers."""

    __slots__ = ("_folds", "_most_awake", "awake", "expiry_ms", "limit", "used")

    def __init__(self, limit: int = 64 * 1024 * 1024, expiry_ms: int = DAY_MS, most_awake: int = MOST_AWAKE) -> None:
        self.limit = limit
        self.expiry_ms = expiry_ms
        self._most_awake = most_awake
        self._folds = 0  # number of folds at the last count
        self.awake = 0  # approximate number of unpacked states; counted again every few seconds
        self.used = 0  # bytes at the last count

    @property
    def is_full(self) -> bool:
        return self.used > self.limit

    @property
    def is_half_full(self) -> bool:
        return self.used > self.limit / 2

    @property
    def most_awake(self) -> int:
        """Of one fold."""
        all_may_have = self.limit // AWAKE_SHARE // AWAKE_BYTES
        if self.awake <= all_may_have:
            return self._most_awake
        return min(self._most_awake, LEAST_AWAKE, max(1, all_may_have // max(1, self._folds)))

    def count(self, tables: Iterable[Counted]) -> None:
        self.awake = self.used = self._folds = 0
        for table in tables:
            self.awake += len(table.states.awake)
            self.used += table.size
            self._folds += 1


class ProducerStates:
    __slots__ = (
        "_asleep",
        "_memory",
        "_spared",
        "_sweeping_to",
        "_swept_to",
        "_transactions",
        "_widest",
        "awake",
        "times",
    )

    def __init__(self, memory: ProducerMemory, transactions: TransactionVerdicts | None) -> None:
        self._memory = memory
        self._transactions = transactions  # a producer with an open transaction does not expire
        self._asleep = PackedStates()
        self.times = LogTimes(memory.expiry_ms)
        self._swept_to = self._sweeping_to = self.times.expired_to
        # By producer id, the one that wrote last at the end. A caller that finds no state here has to call `get`, which
        # also searches the packed states.
        self.awake: OrderedDict[int, ProducerState] = OrderedDict()
        self._widest = 0  # the most states that this `awake` dictionary has held
        # Producers that do not expire although their state is old: they count as having written at this position.
        self._spared: dict[int, Position] = {}

    def __len__(self) -> int:
        return len(self.awake) + len(self._asleep)

    def __contains__(self, producer_id: int) -> bool:
        return self.get(producer_id) is not None

    def __getitem__(self, producer_id: int) -> ProducerState:
        state = self.get(producer_id)
        if state is None:
            raise KeyError(producer_id)
        return state

    def get(self, producer_id: int) -> ProducerState | None:
        state = self.awake.get(producer_id)
        if state is None:
            state = self._asleep.pop(producer_id) if self._asleep else None
            if state is None:
                return None
            self[producer_id] = state
        if state.at <= self.times.expired_to and self._has_expired(producer_id, state.at):
            del self[producer_id]
            return None
        return state

    def is_asleep(self, producer_id: int) -> bool:
        return producer_id in self._asleep

    def __setitem__(self, producer_id: int, state: ProducerState) -> None:
        awake = self.awake
        if producer_id in awake:
            awake[producer_id] = state
            return
        if self._asleep:
            self._asleep.pop(producer_id)
        self._memory.awake += 1
        awake[producer_id] = state
        self._widest = max(self._widest, len(awake))
        self._pack(len(awake) - self._memory.most_awake)  # the state just inserted is the last one, so it is not packed

    def put_though_old(self, producer_id: int, state: ProducerState) -> None:
        """A writer knew this of a producer. Its place may be one from which producers have expired here, and not for
        that writer.
        """
        if state.at <= self.times.expired_to:
            self._spared[producer_id] = self.times.expired_to.after()
        self[producer_id] = state

    def __delitem__(self, producer_id: int) -> None:
        if self.pop(producer_id) is None:
            raise KeyError(producer_id)

    def pop(self, producer_id: int) -> ProducerState | None:
        self._spared.pop(producer_id, None)
        state = self.awake.pop(producer_id, None)
        if state is None:
            return self._asleep.pop(producer_id)
        self._memory.awake -= 1
        return state

    def move_to_end(self, producer_id: int) -> None:
        """Of one that is awake: it has written."""
        self.awake.move_to_end(producer_id)

    def items(self) -> Iterator[tuple[int, ProducerState]]:
        """Those that are awake come last. They may go on while this is read."""
        awake = list(self.awake.items())
        for producer_id, state in chain(self._asleep.copy().items(), awake):
            if not self._has_expired(producer_id, state.at):
                yield producer_id, state

    def that_follow(self) -> Iterator[tuple[int, ProducerState]]:
        """Those whose earlier batches are missing. They may go on while this is read."""
        awake = list(self.awake.items())
        for producer_id, state in chain(self._asleep.copy().that_follow(), awake):
            if state.follows is not None and not self._has_expired(producer_id, state.at):
                yield producer_id, state

    def copy(self) -> tuple[PackedStates, list[tuple[int, ProducerState]]]:
        """Those that are asleep, and those that are awake."""
        return self._asleep.copy(), [(producer_id, state.copy()) for producer_id, state in self.awake.items()]

    def take(self, asleep: PackedStates) -> None:
        """Those that were kept, by a fold that knows of none yet."""
        assert not self
        self._asleep = asleep

    @property
    def size(self) -> int:
        """About how many bytes they take."""
        return AWAKE_BYTES * len(self.awake) + SPARED_BYTES * len(self._spared) + self._asleep.size

    def learn_expired(self, later: ProducerStates) -> None:
        """Of a fold that has come further."""
        self.times.learn(later.times)
        self._spared |= later._spared
        later.times, later._spared = self.times, self._spared

    def expire_first(self, earlier: ProducerStates) -> None:
        """A producer that was unknown when it came had expired before, unless the earlier ones know it."""
        for producer_id, state in self.awake.items():
            if state.is_first and not earlier.has_unexpired(producer_id):
                state.has_expired = True
        if self._asleep:
            self._asleep.expire_first(earlier.has_unexpired)

    def has_unexpired(self, producer_id: int) -> bool:
        state = self.awake.get(producer_id)
        if state is not None:
            return not state.has_expired and not self._has_expired(producer_id, state.at)
        place = self._asleep.place_of_unexpired(producer_id) if self._asleep else None
        return place is not None and not self._has_expired(producer_id, place)

    # --- asleep, and expired

    def put_to_sleep(self, before: Position) -> None:
        """Those that have written nothing behind that entry, some at a time."""
        self._pack(len(self.awake) - self._memory.most_awake)
        for _ in range(_PUT_TO_SLEEP):
            state = next(iter(self.awake.values()), None)
            if state is None or state.at > before:
                break
            self._pack(1)
        if self._widest > max(_WIDE, 4 * len(self.awake)):
            self.awake, self._widest = OrderedDict(self.awake), len(self.awake)

    def expire(self) -> None:
        """Let those go whose time is over, some at a time."""
        self._sweep(_SWEPT_PAGES)

    def _pack(self, count: int) -> None:
        awake = self.awake
        for _ in range(min(count, _PUT_TO_SLEEP)):
            producer_id, state = awake.popitem(last=False)
            has_expired = self._has_expired(producer_id, state.at)
            if not has_expired and state.follows is not None and state.follows.seen:
                # The fold may still learn the producer's earlier batches, and then judges those in `follows.seen`
                awake[producer_id] = state
                continue
            self._memory.awake -= 1
            if not has_expired:
                self._asleep.add(producer_id, state)
        if count > 0:
            self._sweep(1)

    def _sweep(self, pages: int) -> None:
        if self._sweeping_to == self._swept_to:
            self._sweeping_to = self.times.expired_to
        if self._sweeping_to != self._swept_to and self._asleep.sweep(pages, self._has_expired):
            self._swept_to = self._sweeping_to
            self._spared = {producer_id: to for producer_id, to in self._spared.items() if to > self._swept_to}

    def _has_expired(self, producer_id: int, at: Position) -> bool:
        expired_to = self.times.expired_to
        if at > expired_to or self._spared.get(producer_id, at) > expired_to:
            return False
        return self._transactions is None or not self._transactions.is_open(producer_id)
