"""Producers with transactions, as clients of both versions have them: consume, transform, produce.

    version 1:  add partitions, produce, add the group, commit offsets, end
    version 2:  produce and commit offsets, which add what they are about; each end begins an epoch (KIP-890)

A producer that does not know what came of something aborts, or begins again: with who it was (KIP-360), or as one that
was started anew. Others of its id may have fenced it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Any, Final, NamedTuple, TypeVar, cast

from kafka_sidecar.apis.api import Services
from kafka_sidecar.apis.routing.transactions import commit_offsets, number_of, offsets_partition
from kafka_sidecar.groups.coordinator import Commit, CommittedOffset
from kafka_sidecar.transactions.coordinator import Coordinator, ProducerIdAndEpoch
from kafka_sidecar.transactions.machine import NOBODY, Producer
from kafka_sidecar.transactions.metadata import TopicPartition
from kafka_sidecar.wire.error_code import ErrorCode
from tests.simulation.coordinators.clients import Clients, answered
from tests.simulation.coordinators.fleet import Fleet, Member
from tests.simulation.coordinators.logs import JudgedTopic
from tests.simulation.coordinators.transactions import Decisions
from tests.simulation.coordinators.written_partitions import TOPIC, Transaction, WrittenPartition
from tests.simulation.history import Violation
from tests.support.group_members import NO_MEMBER

TIMEOUTS_MS: Final = (5_000, 60_000)
TRIES: Final = 4
# To ask again is of no use.
_FATAL: Final = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)
T = TypeVar("T")


class Who(NamedTuple):
    """A producer's process, of which several may have the same id."""

    client: str
    transactional_id: str


class GivenUp(Exception):
    """The producer does not know what came of something, or is told to begin again."""


class Told:
    """What producers were told, and what must be so in the end."""

    def __init__(self, counts: Counter[str]) -> None:
        self.counts = counts
        self.producers: dict[Producer, Who] = {}
        self.values: dict[str, Transaction] = {}  # that were acknowledged
        self.offsets: dict[str, tuple[str, Transaction]] = {}  # likewise: by their metadata, with their group
        self.ended: dict[Transaction, bool] = {}

    def note_producer(self, producer: Producer, who: Who) -> None:
        if self.producers.setdefault(producer, who) != who:
            raise Violation(f"{producer} is {self.producers[producer]}, and {who} is told the same")


class TransactionClients(Clients):
    def __init__(
        self,
        fleet: Fleet,
        decisions: Decisions,
        partitions: list[WrittenPartition],
        offsets: JudgedTopic,
        counts: Counter[str],
    ) -> None:
        self._fleet = fleet
        self._decisions = decisions
        self._partitions = partitions
        self._offsets = offsets
        self._told = Told(counts)
        self._producers: dict[Who, Producer] = {}
        self._have_given_up: set[Who] = set()  # they have to begin again

    async def do_something(self, draw: Random, member: Member, key: str, new_value: str) -> bool:
        who = Who(new_value.partition("/")[0], f"t{key}")
        try:
            await self._have_a_transaction(draw, member, who, new_value)
        except GivenUp:
            self._have_given_up.add(who)
            if draw.random() < 0.5:
                self._producers.pop(who, None)  # its process is started anew
            return False
        return True

    async def _have_a_transaction(self, draw: Random, member: Member, who: Who, value: str) -> None:
        producer = self._producers.get(who)
        if producer is None or who in self._have_given_up or draw.random() < 0.1:
            producer = self._producers[who] = await self._begin(draw, member, who, producer)
            self._have_given_up.discard(who)
        version = 1 + int(who.client) % 2
        one = _Attempt(
            self._fleet, self._partitions, self._told, draw, member, who.transactional_id, producer, version, value
        )
        committed = draw.random() < 0.7
        try:
            await one.write()
        except GivenUp:
            if draw.random() < 0.3:
                raise
            committed = False
        following = self._producers[who] = await one.end(committed)
        self._told.note_producer(following, who)

    async def _begin(self, draw: Random, member: Member, who: Who, before: Producer | None) -> Producer:
        expected, timeout_ms = before or NOBODY, draw.choice(TIMEOUTS_MS)
        for _ in range(TRIES):
            told = await self._init(member, who.transactional_id, timeout_ms, expected)
            if told is not None and told.error is ErrorCode.NONE:
                producer = Producer(told.producer_id, told.epoch)
                self._told.note_producer(producer, who)
                self._told.counts["a producer begins"] += 1
                return producer
            if told is not None and told.error in _FATAL:
                expected = NOBODY  # its process is started anew
            await asyncio.sleep(draw.choice((0.05, 1.0)))
        raise GivenUp

    async def _init(
        self, member: Member, transactional_id: str, timeout_ms: int, expected: Producer
    ) -> ProducerIdAndEpoch | None:
        def begin(one: Member) -> Coroutine[Any, Any, ProducerIdAndEpoch]:
            return one.transactions.coordinator.init_producer_id(transactional_id, timeout_ms, expected)

        told = await answered(self._fleet.ask(member, lambda one: one.transactions, transactional_id, begin))
        return None if told is None else told[0]

    # --- the end

    async def look(self, member: Member, key: str) -> bool:
        """Another producer of the id begins: what the one before has left ends."""
        told = await self._init(member, f"t{key}", TIMEOUTS_MS[-1], NOBODY)
        return told is not None and told.error is ErrorCode.NONE

    @property
    def is_settled(self) -> bool:
        return None not in self._fates().values()

    def _fates(self) -> dict[str, bool | None]:
        fates: dict[str, bool | None] = {}
        for partition in self._partitions:
            fates.update(partition.fates())
        return fates

    def check(self) -> None:
        fates = self._fates()
        without_end = [value for value, fate in fates.items() if fate is None]
        if without_end:
            raise Violation(f"the transactions of {without_end} have no end")
        for of, committed in self._told.ended.items():
            if self._decisions.is_committed(of) is not committed:
                raise Violation(
                    f"a producer was told that {of} ended with {committed}, and the log says something else"
                )
        for value, of in self._told.values.items():
            decided = self._decisions.is_committed(of)
            if fates.get(value) is not decided:
                raise Violation(f"{value!r} was acknowledged in {of}, which is {decided}: it is {fates.get(value)}")
        for commit_id, (group, of) in self._told.offsets.items():
            judged = self._offsets.of(group)
            judged.look()
            is_there = any(value == commit_id for _, value in judged.written)
            if is_there is not self._decisions.is_committed(of):
                raise Violation(f"the offset {commit_id} of {of} is{'' if is_there else ' not'} committed")


@dataclass(slots=True)
class _Attempt:
    """One transaction of a producer."""

    fleet: Fleet
    partitions: list[WrittenPartition]
    told: Told
    draw: Random
    member: Member
    id: str
    producer: Producer
    version: int
    value: str
    of: Transaction | None = None

    async def write(self) -> None:
        for number in self.draw.sample(range(len(self.partitions)), self.draw.choice((1, 1, 2, 3))):
            await self._produce(number)
        if self.draw.random() < 0.5:
            await self._commit_offset()

    async def _produce(self, number: int) -> None:
        value = f"{self.value}@{number}"
        if self.version == 1:
            await self._add(lambda one: (one.topic(TOPIC), number))
        leader = self.draw.choice(self.fleet.members)

        async def append() -> int | ErrorCode:
            partition = leader.topic(TOPIC), number
            found = await number_of(cast(Services, leader), self.id, self.producer, partition, adds=self.version == 2)
            if isinstance(found, ErrorCode):
                return found
            error = await self.partitions[number].append(Transaction(self.producer.producer_id, found), value)
            return found if error is ErrorCode.NONE else error

        found = await self._tried(lambda: self.fleet.ask_of(leader, append))
        assert not isinstance(found, ErrorCode)
        of = Transaction(self.producer.producer_id, found)
        if self.of not in (None, of):
            raise Violation(f"{self.producer} of {self.id} writes in {self.of} and in {of}")
        self.of = self.told.values[value] = of
        self.told.counts["a batch of a transaction is acknowledged"] += 1

    async def _add(self, partition: Callable[[Member], TopicPartition]) -> None:
        await self._tried(
            lambda: self.fleet.ask(
                self.member,
                lambda one: one.transactions,
                self.id,
                lambda one: one.transactions.coordinator.add_partitions(self.id, self.producer, {partition(one)}, 0),
            )
        )

    async def _commit_offset(self) -> None:
        group, commit_id = f"g{self.id}", f"{self.value}!"
        if self.version == 1:
            found = await answered(
                self.fleet.ask_of(self.member, lambda: offsets_partition(cast(Services, self.member), group))
            )
            if found is None:
                raise GivenUp
            of_group = found[0]
            await self._add(lambda _: of_group)

        async def there(one: Member) -> ErrorCode:
            at = one.topic("t"), 0
            commit = Commit(group, NO_MEMBER, -1, {at: CommittedOffset(1, -1, commit_id)})
            told = await commit_offsets(cast(Services, one), commit, self.id, self.producer, adds=self.version == 2)
            return told if isinstance(told, ErrorCode) else told[at]

        await self._tried(lambda: self.fleet.ask(self.member, lambda one: one.groups, group, there))
        if self.of is not None:
            self.told.offsets[commit_id] = group, self.of
            self.told.counts["an offset of a transaction is acknowledged"] += 1

    async def end(self, committed: bool) -> Producer:
        """Who the producer is from then on."""

        def ending(one: Coordinator) -> Coroutine[Any, Any, ProducerIdAndEpoch]:
            return one.end(self.id, self.producer, committed, self.version)

        async def ended() -> ProducerIdAndEpoch | ErrorCode:
            told = await self._of_coordinator(ending)
            return told if told.error is ErrorCode.NONE else told.error

        told = await self._tried(ended)
        assert not isinstance(told, ErrorCode)
        if self.of is not None:
            self.told.ended[self.of] = committed
        self.told.counts["a transaction has ended"] += 1
        return Producer(told.producer_id, told.epoch)

    def _of_coordinator(self, work: Callable[[Coordinator], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]:
        return self.fleet.ask(
            self.member, lambda one: one.transactions, self.id, lambda one: work(one.transactions.coordinator)
        )

    async def _tried(self, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Asks again where that may help. An error is no answer."""
        for _ in range(TRIES):
            told = await answered(ask())
            if told is not None and (told[0] is ErrorCode.NONE or not isinstance(told[0], ErrorCode)):
                return told[0]
            if told is not None and told[0] in _FATAL:
                break
            await asyncio.sleep(self.draw.choice((0.02, 0.5)))
        raise GivenUp
