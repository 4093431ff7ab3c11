"""Starts and stops a coordinator: its internal topic, the elections of its shards, its periodic tasks.

The part of Kafka's CoordinatorRuntime that loads, replays and writes one partition is in `term`.

Nothing happens before a client asks for a coordinator: a sidecar that coordinates nothing stands in no election and
holds no shard.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from kafka_sidecar import STORED_FORMAT, __version__
from kafka_sidecar.coordination.balance import Balance
from kafka_sidecar.coordination.candidate import metadata_of
from kafka_sidecar.coordination.codec import Codec
from kafka_sidecar.coordination.directory import VISITORS, Directory
from kafka_sidecar.coordination.election import Election, Nobody
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.coordination.home import Home, Names
from kafka_sidecar.coordination.leaders import Leaders
from kafka_sidecar.coordination.named_topics import IdOf, namespace_of
from kafka_sidecar.coordination.shards import Shards
from kafka_sidecar.coordination.term import Phase, Term
from kafka_sidecar.coordination.term_log import PulsarTermLog, TermLog
from kafka_sidecar.internal_topics.compactor import Compactor
from kafka_sidecar.internal_topics.internal_topic import partitions_of
from kafka_sidecar.loop.backoff import Backoff
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.loop.ids import NewId
from kafka_sidecar.loop.lasting import Lasting
from kafka_sidecar.loop.supervised import SupervisedTask, every
from kafka_sidecar.model.partition_name import partition_name
from kafka_sidecar.model.sidecar import SidecarInfo
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.pulsar.ports import Admin, Client
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.wire.error_code import ErrorCode

log = logging.getLogger(__name__)
limited = RateLimitedLog(log)

# As fine as the deadlines that are looked at.
BEAT_SECONDS: Final = 1.0
# A request waits for so long until the topic is known: a namespace and a topic may have to be made first.
READY_SECONDS: Final = 10.0
# While the topic can't be found or made, the admin API is asked no more often than that.
RETRY_SECONDS: Final = 2.0
# Counters here are looked at so often; Pulsar is asked where a shard has grown, and else each minute.
COMPACT_SECONDS: Final = 10.0
LOOK_SECONDS: Final = 60.0
# How often a sidecar that advertises no address looks who leads what: there may be one beside each application.
BALANCE_SECONDS: Final = 15.0
# A shard has grown by this many records, and by several for each that counts.
COMPACT_RECORDS: Final = 10_000
COMPACT_RATIO: Final = 4
# A topic that has lost a partition can not be described, and its log is not to be without a leader for that.
UNDECIDED_SECONDS: Final = 120.0
# A log is read again within seconds; a question may take half a minute.
UNDECIDED_PAUSE_SECONDS: Final = 60.0

R = TypeVar("R")
OpenLog = Callable[[], TermLog[R]]


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopic(Generic[R]):
    kind: str  # of what is coordinated, for the labels of errors
    namespace: str
    name: str
    partitions: int  # if it has to be made; what is there keeps its count
    subscription: str  # seen by Pulsar's operators, and the same in every sidecar
    producer: str
    codec: Codec[R]

    @property
    def pulsar(self) -> str:
        return f"persistent://{self.namespace}/{self.name}"


class Coordinator(Protocol[R]):
    """A coordinator, as far as the runtime needs it."""

    @property
    def shards(self) -> Shards[Any]: ...
    def begin(self, logs: Sequence[tuple[str, OpenLog[R]]]) -> None:
        """From now on there are shards, one for each log."""
        ...

    def beat(self) -> None:
        """Once a second."""
        ...

    def tasks(self) -> Sequence[SupervisedTask]:
        """More to be done while there are shards."""
        ...


C = TypeVar("C", bound=Coordinator[Any])


class CoordinatorRuntime(Generic[C]):
    def __init__(
        self,
        client: Client,
        admin: Admin,
        topic: InternalTopic[Any],
        own: SidecarInfo,
        names: Names,
        coordinator: C,
        clock: Clock,
        new_id: NewId,
        id_of: IdOf,
    ) -> None:
        self._clock = clock
        self._new_id = new_id
        self.coordinator = coordinator
        self.name = own.name
        self.control_address = ""  # where others reach this one, known once it listens
        self._client = client
        self._admin = admin
        self._topic = topic
        self._own = own
        self._names = names
        self._homes: dict[str, Home] = {}  # by partition
        self._id_of = id_of
        self._is_undecided = Lasting(UNDECIDED_SECONDS, UNDECIDED_PAUSE_SECONDS)  # whose topics a log names
        self._loop = asyncio.get_running_loop()
        self._directory = Directory(admin, topic.pulsar, topic.subscription, own.name, self._loop.time)
        self.leaders = Leaders(own, coordinator.shards, self._directory, self.candidate)
        self._elections: list[Election] = []
        self._visit: Election | None = None
        self._standing = SupervisedTask(
            "candidacy", topic.name, self._stand, backoff=Backoff(RETRY_SECONDS, RETRY_SECONDS)
        )
        self._is_candidate = asyncio.Event()
        self._has_left = False
        self._balance: Balance | None = None
        self._balance_at = 0.0
        self._beating = [
            every(BEAT_SECONDS, f"{topic.kind}_seconds", coordinator.beat),
            every(COMPACT_SECONDS, f"{topic.kind}_compaction", self._compact),
            every(BEAT_SECONDS, f"{topic.kind}_directory", self._refresh_directory),
            *coordinator.tasks(),
        ]
        self._compactor = Compactor(admin, self._write_marker)
        self._looked_at: dict[str, tuple[float, int]] = {}  # by partition: when, and how many records it had then

    @property
    def topic(self) -> str:
        """The internal topic, in Pulsar's words."""
        return self._topic.pulsar

    # --- standing for election

    def ensure_candidate(self) -> None:
        """Become a candidate for all shards, with the first request that needs a coordinator."""
        if not self._is_candidate.is_set() and not self._has_left:
            self._standing.start()

    async def candidate(self) -> None:
        """Return when this sidecar stands for election; CoordinatorError while it can't."""
        self.ensure_candidate()
        if self._has_left and not self._is_candidate.is_set():
            raise CoordinatorError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        try:
            async with asyncio.timeout(READY_SECONDS):
                await self._is_candidate.wait()
        except TimeoutError as error:
            raise CoordinatorError(ErrorCode.COORDINATOR_NOT_AVAILABLE) from error

    async def _stand(self) -> None:
        try:
            partitions = await self._partitions()
        except PulsarError as error:
            limited.warning("%s has to wait: %s", self._topic.name, error)
            raise
        metadata = metadata_of(
            self._own._replace(control=self.control_address, release=__version__, stored_format=STORED_FORMAT)
        )
        topics = [partition_name(self._topic.pulsar, number) for number in range(partitions)]
        self.coordinator.begin(
            [(f"{self._topic.name}-{number}", partial(self._open_log, topic)) for number, topic in enumerate(topics)]
        )
        if self._own.coordinates:
            for topic, shard in zip(topics, self.coordinator.shards, strict=True):
                election = Election(
                    self._client, topic, self._topic.subscription, self.name, metadata, shard.term, self._clock.wall
                )
                self._elections.append(election)
        else:  # it is seen, for its clients may mean other topics than those of the others
            self._visit = Election(self._client, topics[0], VISITORS, self.name, metadata, Nobody(), self._clock.wall)
        self._balance = Balance(self.name, partitions)
        for task in self._beating:
            task.start()
        self._is_candidate.set()
        what = "standing for coordinator" if self._own.coordinates else "leaving it to others to be the coordinator"
        log.info("%s of the %d partitions of %s", what, partitions, self._topic.pulsar)

    def _open_log(self, topic: str) -> PulsarTermLog[Any]:
        home = self._homes.setdefault(topic, Home(self._names, self._whose))
        return PulsarTermLog(
            self._client, self._admin, topic, self._topic.codec, home, self._topic.producer, self._clock, self._new_id
        )

    async def _whose(self, topics: Mapping[str, uuid.UUID | None]) -> str:
        """The namespace of the topics that a log names: the own, or that of another sidecar that is there."""
        own = self._names.default_namespace
        try:
            others = sorted(await self._directory.namespaces() - {own}) if topics else []
            found = await namespace_of(topics, self._names, others, self._id_of) if others else own
            self._is_undecided.deny()
            return found
        except PulsarError as error:
            now = self._loop.time()
            self._is_undecided.say(now)
            if not self._is_undecided.is_believed(now):
                raise
            log.warning(
                "%s has short names for the topics of %s from now on: others can't be looked up: %s",
                self._topic.name,
                own,
                error,
            )
            return own

    async def _partitions(self) -> int:
        return await partitions_of(self._admin, self._topic.pulsar, self._topic.partitions)

    def leave(self, *, others_are_there: bool = False) -> None:
        """Stand in no election any more: others take over at once, and waiting clients look for them."""
        self._has_left = True
        self.leaders.leave(others_are_there)
        self._standing.stop()
        for election in self._elections:
            election.close()
        self._elections.clear()
        if self._visit is not None:
            self._visit.close()

    async def close(self) -> None:
        for task in (self._standing, *self._beating):
            await task.stopped()
        await self.leaders.close()
        self.leave()

    # --- the seconds

    async def _refresh_directory(self) -> None:
        now = self._loop.time()
        if self._own.advertised or now >= self._balance_at:
            self._balance_at = now + BALANCE_SECONDS
            await self._directory.refresh_if_stale()
            for number, election in enumerate(self._elections):
                election.note_listed(self._directory.lists_own(number))
            if self._visit is not None:
                self._visit.note_listed(self._directory.lists_visit)
            self._keep_balance()

    def _keep_balance(self) -> None:
        """Claim a shard that this sidecar is to lead, if one is due."""
        leading = self._directory.known_leaders
        if self._elections and leading is not None and self._balance is not None:
            members = frozenset({self.name, *(other.name for other in self._directory.others)})
            number = self._balance.shard_to_claim(self._loop.time(), members, leading)
            if number is not None:
                log.info(
                    "claiming %s-%d: each of %d sidecars is to lead its share", self._topic.name, number, len(members)
                )
                self._elections[number].claim()

    async def _compact(self) -> None:
        """Have the shards compacted that have grown: the next leader reads what counts, and retention may take the
        rest.
        """
        now = self._loop.time()
        for number, shard in enumerate(self.coordinator.shards):
            term: Term[Any] = shard.term
            partition = partition_name(self._topic.pulsar, number)
            if term.phase is not Phase.LEADING:
                self._looked_at.pop(partition, None)
                self._compactor.forget(partition)
                continue
            at, records = self._looked_at.get(partition, (-LOOK_SECONDS, 0))
            if now - at < LOOK_SECONDS and term.record_count - records <= max(
                COMPACT_RECORDS, COMPACT_RATIO * term.live_record_count
            ):
                continue
            try:
                stats = await self._admin.topics.compaction_stats(partition)
            except PulsarError as error:
                limited.info("%s can't be looked at: %s", partition, error)
                continue
            self._looked_at[partition] = now, term.record_count
            await self._compactor.look(partition, stats)

    async def _write_marker(self, partition: str) -> None:
        term: Term[Any] = self.coordinator.shards[int(partition.rpartition("-")[2])].term
        try:
            await term.prove()
        except CoordinatorError as error:
            raise Unavailable(f"{term.name} is not led here any more") from error
