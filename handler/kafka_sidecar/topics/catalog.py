"""The topics of Pulsar: partition counts and ids, remembered for a short while."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Final, NamedTuple

from kafka_sidecar.loop.pace import Pace
from kafka_sidecar.loop.single_flight import SingleFlight
from kafka_sidecar.model.partition_name import split_partition_name
from kafka_sidecar.pulsar.admin import AlreadyExists, PulsarAdmin
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, Refused, TopicMissing, Unavailable, Undescribed
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.topics.deletions import Deletions
from kafka_sidecar.topics.description import FRESH_SECONDS, UNPARTITIONED_SECONDS, described
from kafka_sidecar.topics.id_search import IdSearch
from kafka_sidecar.topics.listing import Listing
from kafka_sidecar.topics.lost_topics import LostTopics
from kafka_sidecar.topics.names import InvalidTopicName, TopicName, TopicNames
from kafka_sidecar.topics.record_configs import ENTRY_FORMAT, PULSAR_FORMAT, RecordConfigs, record_configs
from kafka_sidecar.topics.replication import Replication
from kafka_sidecar.topics.skipped import skipped_of, skipping

log = logging.getLogger(__name__)
limited = RateLimitedLog(log)

# Limit of topics in the catalogue. More topics can be served, but evicted ones need another lookup.
MAX_TOPICS: Final = 50_000
# Other sidecars may not know a topic's new partition count for 40 s, since they refresh topics in use every 30 s.
GROWN_SECONDS: Final = 40.0
# Limit of other namespaces whose sidecars forward requests here. Their teams share the namespace of groups, and a
# search by topic id includes their namespaces.
MOST_NEIGHBOURS: Final = 100
# The sidecar opens nothing for a deleted topic for 60 s, unless it sees the topic again.
GONE_SECONDS: Final = 60.0
# How long a topic counts as deleted before a client's request makes the sidecar look again: somebody may have created
# it again.
AGAIN_SECONDS: Final = 2.0
# Limit of remembered deleted topics. Clients keep requesting a few of them; many more would come from a client that
# guesses names.
MAX_GONE: Final = 1_000
# Limit of concurrent lookups: the number of the admin client's connections.
CONCURRENT_LOOKUPS: Final = 16
# Topic creations take at most half of the admin client's connections, so that Metadata requests do not wait behind a
# thousand creations.
CONCURRENT_CREATIONS: Final = 8
# At shutdown the sidecar waits at most 5 s for topics that are being created.
CLOSE_SECONDS: Final = 5.0
# Partition 0 of a new topic exists within a second; until then the lookup is retried.
NEW_TOPIC_ATTEMPTS: Final = 20
NEW_TOPIC_SECONDS: Final = 0.1

# The topic id is derived from the topic's name and the creation time of its first partition. Every sidecar derives the
# same id, and a topic that is deleted and created again gets another.
_ID_SPACE: Final = uuid.UUID("6b9f4c0e-3f0e-5d5b-9a53-0f2c9a0c7e11")


@dataclass(frozen=True, slots=True)
class Topic:
    name: TopicName
    partitions: int
    topic_id: uuid.UUID
    learnt_at: float
    properties: Mapping[str, str] = field(default_factory=dict)  # properties of the Pulsar topic
    partitioned: bool = True  # False if the Pulsar topic has no partitions and is itself the log of partition 0

    @property
    def record_configs(self) -> RecordConfigs:
        return record_configs(self.properties)


class NotPartitioned(Refused):
    """Pulsar can't give partitions to a topic that has none."""


class _Gone(NamedTuple):
    until: float  # until then the sidecar opens nothing for the topic
    looked_for_at: float = -math.inf
    learnt_at: float = -math.inf  # when a lookup, or the sidecar that deleted the topic, said that it is gone


class Catalog:
    def __init__(
        self, admin: PulsarAdmin, names: TopicNames, clock: Callable[[], float], replication: Replication | None = None
    ) -> None:
        self.names = names
        self._replication = replication  # None in a process that creates no topics
        self._admin = admin
        self._clock = clock
        self._grown: dict[TopicName, float] = {}  # topic → when its partition count was seen to change
        # Incremented when a topic is forgotten or its partition count changes: results from before may be about another
        # topic.
        self.forgotten = 0
        self._topics: OrderedDict[TopicName, Topic] = OrderedDict()
        self._by_id: dict[uuid.UUID, TopicName] = {}
        self._gone: OrderedDict[TopicName, _Gone] = OrderedDict()
        self._deletions = Deletions()
        self.lost = LostTopics(self.look_at, clock)
        self._finding: SingleFlight[TopicName, Topic] = SingleFlight()
        self._logs_in: SingleFlight[str, frozenset[str]] = SingleFlight()
        self._name_listing: SingleFlight[None, list[TopicName]] = SingleFlight()
        self._creating: SingleFlight[TopicName, Topic] = SingleFlight()
        self._lookups = asyncio.Semaphore(CONCURRENT_LOOKUPS)
        self.ids = IdSearch(self, self._lookups.locked, clock)
        self._creations = asyncio.Semaphore(CONCURRENT_CREATIONS)
        # Topic as Pulsar lists it → its name; None if Kafka clients have no name for it.
        self._parsed: dict[str, TopicName | None] = {}
        # Namespace → time of its listing, and its topics without partitions.
        self._without_partitions: dict[str, tuple[float, list[str]]] = {}
        self._looking: dict[TopicName, asyncio.Future[Topic]] = {}
        self.listing = Listing(self, clock)
        self._neighbours: dict[
            str, None
        ] = {}  # namespaces of other sidecars that forward requests here; a search by topic id includes them
        # Called when the record configs of a topic may have changed.
        self.on_record_configs: Callable[[Topic], None] = lambda _: None
        self._cluster_id: str | None = None
        self._cluster_lookups: SingleFlight[None, str] = SingleFlight()

    async def cluster_id(self) -> str:
        return self._cluster_id or await self._cluster_lookups.call(None, self._look_up_cluster)

    async def _look_up_cluster(self) -> str:
        clusters = [name for name in await self._admin.cluster.clusters() if name != "global"]
        self._cluster_id = clusters[0] if clusters else "pulsar"
        return self._cluster_id

    def may_have(self, name: TopicName, index: int) -> bool:
        """Whether the topic may have this partition: False where that is known for sure."""
        topic = self._topics.get(name)
        if topic is None and (gone := self._gone.get(name)) is not None and self._clock() < gone.until:
            return False
        fresh = topic is not None and self._clock() - topic.learnt_at < FRESH_SECONDS
        return index >= 0 and (topic is None or index < topic.partitions or not fresh)

    def remembers(self, name: TopicName, index: int) -> bool:
        """Whether the topic had this partition when it was looked at last."""
        topic = self._topics.get(name)
        return topic is not None and 0 <= index < topic.partitions

    def known(self, name: TopicName, within: float) -> Topic | None:
        """The topic as it was at most so many seconds ago, if that is remembered."""
        topic = self._topics.get(name)
        return topic if topic is not None and self._clock() - topic.learnt_at < within else None

    def remembered(self, name: TopicName) -> Topic | None:
        """The topic as it was when it was looked at last, however long ago."""
        return self._topics.get(name)

    def age(self, name: TopicName) -> float | None:
        """Seconds since a topic was looked at, None where it is not remembered."""
        topic = self._topics.get(name)
        return None if topic is None else self._clock() - topic.learnt_at

    def look_again_soon(self, name: TopicName) -> None:
        """A client wants a deleted topic: another sidecar may have created it again. Looks in the background."""
        gone = self._gone.get(name)
        if gone is not None and name not in self._looking and self._clock() >= gone.learnt_at + AGAIN_SECONDS:
            self._look_beside(name)

    async def look_at(self, name: TopicName) -> Topic:
        """The topic as it is now, or TopicMissing; those who look at the same time share the answer."""
        return await self._finding.call(name, lambda: self._find(name))

    def look_soon(self, name: TopicName) -> None:
        """Look at a topic that is about to be used, if what is remembered of it is not fresh. Nobody waits for it."""
        age = self.age(name)
        if age is not None and age >= FRESH_SECONDS and name not in self._looking:
            self._look_beside(name)

    def _look_beside(self, name: TopicName) -> None:
        self._looking[name] = looking = asyncio.ensure_future(self.look_at(name))
        looking.add_done_callback(partial(self._looked, name))

    def _looked(self, name: TopicName, looking: asyncio.Future[Topic]) -> None:
        del self._looking[name]
        if not looking.cancelled():
            looking.exception()  # marks the exception as retrieved, since errors that matter are logged elsewhere

    def is_missing(self, name: TopicName) -> bool:
        """Whether Pulsar said a moment ago that it is not there."""
        gone = self._gone.get(name)
        return gone is not None and name not in self._topics and self._clock() - gone.looked_for_at < FRESH_SECONDS

    def name_of(self, topic_id: uuid.UUID | None) -> TopicName | None:
        """The topic of an id that this process may have given to a client."""
        return None if topic_id is None else self._by_id.get(topic_id)

    async def find(self, name: TopicName, *, fresh: bool = False) -> Topic:
        """A topic as it is now, or TopicMissing. Those who ask for the same at a time share the answer, but for a
        `fresh` one.
        """
        topic = None if fresh else self.known(name, FRESH_SECONDS)
        if topic is not None:
            return topic
        return await (self._find(name) if fresh else self.look_at(name))

    async def _find(self, name: TopicName) -> Topic:
        while True:
            heard = self._deletions.heard
            async with self._lookups:
                begun = self._clock()
                try:
                    found, created = await described(self._admin, name)
                except TopicMissing:
                    now = self._clock()
                    self._note_gone(name, _Gone(now + FRESH_SECONDS, now, now))
                    raise
                except Undescribed:
                    self.lost.note(name, begun)
                    raise
            if not self._deletions.has_come(name, heard):
                break  # else the response may describe the topic that was deleted meanwhile
        topic_id = uuid.uuid5(_ID_SPACE, f"{name.pulsar}@{created}")
        topic = Topic(name, max(1, found.partitions), topic_id, self._clock(), found.properties, found.partitions > 0)
        self._remember(topic)
        self.lost.forget(name)
        return topic

    async def has_partition(self, name: TopicName, index: int) -> bool:
        """Whether a topic has this partition, and Pulsar its log. May raise PulsarError."""
        try:
            partitioned = (await self._admin.topics.describe(name.pulsar)).partitions > 0
            if not partitioned and index:
                return False
            log_ = name.partition(index) if partitioned else name.pulsar
            return log_ in await self._logs_in.call_after(
                f"{name.tenant}/{name.namespace}", partial(self._look_at_logs, name)
            )
        except TopicMissing:
            return False

    async def _look_at_logs(self, name: TopicName) -> frozenset[str]:
        return frozenset(await self._admin.topics.logs(f"{name.tenant}/{name.namespace}"))

    async def partition_count(self, name: TopicName) -> int:
        """Asks for no partition; 0 for a topic without any. May raise PulsarError."""
        return (await self._admin.topics.describe(name.pulsar)).partitions

    async def find_by_id(self, topic_id: uuid.UUID) -> TopicName | None:
        """As `name_of`, but looks through the namespaces when the id is new here. May raise PulsarError."""
        return await self.ids.find(topic_id)

    async def all_names(self) -> list[TopicName]:
        neighbours = await asyncio.gather(*map(self._names_in, list(self._neighbours)))
        names = await self._name_listing.call_after(None, self._list_names)
        return [*names, *chain.from_iterable(neighbours)]

    def has_neighbour(self, namespace: str) -> None:
        """A sidecar that has this namespace for its own passes requests on to this one."""
        if (
            namespace not in self._neighbours
            and namespace not in self.names.listed_namespaces
            and len(self._neighbours) < MOST_NEIGHBOURS
        ):
            self._neighbours[namespace] = None
            self.ids.forget_unknown()

    async def describe_id(self, topic_id: uuid.UUID) -> Topic | None:
        """The topic with this id, None where there is none."""
        try:
            name = await self.find_by_id(topic_id)
            return None if name is None else await self.find(name)
        except TopicMissing:
            return None

    async def record_configs(self, name: TopicName) -> RecordConfigs:
        """What is asked now of records that are appended to a topic. Asks for no partition of it."""
        topic = self.known(name, FRESH_SECONDS)
        return record_configs((topic or await self._admin.topics.describe(name.pulsar)).properties)

    async def skipped(self, name: TopicName, partition: int) -> frozenset[Position]:
        """The entries of a partition that an operator has skipped."""
        topic = self.known(name, FRESH_SECONDS)
        return skipped_of((topic or await self._admin.topics.describe(name.pulsar)).properties, partition)

    async def skip(self, name: TopicName, partition: int, position: Position, offset: int) -> None:
        """Let an entry that can't be read be passed over, by every sidecar. Refused where Pulsar keeps no property for
        it.
        """
        properties = (await self._admin.topics.describe(name.pulsar)).properties
        try:
            one_more = skipping(properties, partition, position, offset)
        except ValueError as error:
            raise Refused(str(error)) from error
        await self._admin.topics.set_properties(name.pulsar, one_more)
        await self.look_at(name)  # a lookup passes the new property on to the topic's open partitions

    async def log_of(self, partition: str) -> str:
        """Pulsar's topic that holds the entries of a partition. TopicMissing where there is none."""
        found = self.names.of_partition(partition)
        if found is None or found[1]:  # only partition 0 can be a topic without partitions
            return partition
        name, _ = found
        topic = self._topics.get(name)
        partitioned = (
            topic.partitioned if topic is not None else (await self._admin.topics.describe(name.pulsar)).partitions > 0
        )
        return partition if partitioned else name.pulsar

    async def look_at_all(self, pulsar_topics: Iterable[str]) -> None:
        """Those in use: clients that have what they need do not ask for them, and their configs or what they are may
        change.
        """
        for topic in pulsar_topics:
            name = self.names.from_pulsar(topic)
            if name is not None:
                with contextlib.suppress(PulsarError):  # the next request for the topic gets the error
                    await self.look_at(name)

    async def sizes(self, name: TopicName) -> dict[int, int]:
        """Bytes that Pulsar stores for each partition, what is offloaded included. TopicMissing where there is no such
        topic.
        """
        if not (await self.find(name)).partitioned:
            return {0: int((await self._admin.topics.stats(name.pulsar)).get("storageSize", 0))}
        stats = await self._admin.topics.partition_stats(name.pulsar)
        return {index: int(of_one.get("storageSize", 0)) for index, of_one in stats.items()}

    async def list_names(self) -> list[TopicName]:
        """Every topic of the namespaces that are listed and Kafka's internal ones, in the order of names."""
        return await self._name_listing.call(None, self._list_names)

    async def _list_names(self) -> list[TopicName]:
        namespaces = self.names.listed_namespaces
        named = asyncio.gather(*map(self._listed_in, namespaces), *map(self._unpartitioned, namespaces))
        listed, names = await asyncio.gather(named, self._internal())
        pace = Pace()
        if len(self._parsed) > 2 * MAX_TOPICS:
            self._parsed.clear()
        for topic in chain.from_iterable(listed):
            if topic not in self._parsed:
                self._parsed[topic] = self.names.from_pulsar(topic)
                await pace.maybe_yield()
            name = self._parsed[topic]
            if name is not None:
                names.add(name)
        return sorted(names, key=lambda name: (name.tenant, name.namespace, name.local))

    async def _listed_in(self, namespace: str) -> list[str]:
        """The partitioned topics of a namespace."""
        try:
            return await self._admin.topics.partitioned_topics(namespace)
        except (TopicMissing, NotPermitted) as error:
            if namespace == self.names.default_namespace:
                raise
            limited.warning("the topics of %s are not listed: %s", namespace, error)
            return []

    async def _unpartitioned(self, namespace: str) -> list[str]:
        """The topics of a namespace without partitions, as they were a moment ago: they are listed with all partitions
        of the others.
        """
        known = self._without_partitions.get(namespace)
        if known is None or self._clock() - known[0] > UNPARTITIONED_SECONDS:
            asked_at = self._clock()
            try:
                everything = await self._admin.topics.logs(namespace)
            except (TopicMissing, NotPermitted):  # _listed_in reports the same error
                return []
            known = self._without_partitions[namespace] = (
                asked_at,
                [topic for topic in everything if split_partition_name(topic) is None],
            )
        return known[1]

    async def _internal(self) -> set[TopicName]:
        try:
            listed = await self._admin.topics.partitioned_topics(self.names.metadata_namespace)
        except (TopicMissing, NotPermitted):
            return set()  # no client has used consumer groups yet
        return {name for name in map(self.names.from_pulsar, listed) if name is not None and name.internal}

    # --- for consumer groups, in the words of their members

    async def describe(self, name: str) -> tuple[uuid.UUID, int] | None:
        """A topic's id and partitions, None where there is none of that name."""
        try:
            topic = await self.find(self.names.parse(name))
        except (InvalidTopicName, TopicMissing):
            return None
        return topic.topic_id, topic.partitions

    def is_lost(self, name: str) -> bool:
        return self.lost.has(self.names.parse(name))

    async def id_of(self, name: str) -> uuid.UUID | None:
        """The id of a topic, None where there is none of that name. Raises PulsarError."""
        try:
            described = await self.describe(name)
        except Refused:
            return None
        return None if described is None else described[0]

    def scope_of(self, expression: str) -> tuple[str, str]:
        return self.names.scope_of(expression)

    async def listed(self, namespace: str) -> Mapping[str, str]:
        """The names of all topics, by the text that a regular expression has to match: internal ones too
        (GroupMetadataManager.refreshRegularExpressions). Of another namespace than the sidecar's own, by their short
        names there.
        """
        if namespace == self.names.default_namespace:
            return {name: name for name in map(self.names.kafka, await self.list_names())}
        named, internal = await asyncio.gather(self._names_in(namespace), self._internal())
        return {name.local: self.names.kafka(name) for name in chain(named, internal)}

    async def _names_in(self, namespace: str) -> list[TopicName]:
        found = await asyncio.gather(self._listed_in(namespace), self._unpartitioned(namespace))
        return [name for name in map(self.names.from_pulsar, chain.from_iterable(found)) if name is not None]

    def canonical(self, name: str) -> str:
        return self.names.canonical(name)

    async def create(
        self, name: TopicName, partitions: int, properties: Mapping[str, str] = MappingProxyType({})
    ) -> Topic:
        await self.make(name, partitions, properties)
        return await self.find_new(name)

    async def make(
        self, name: TopicName, partitions: int, properties: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        async with self._creations:
            await self._make(name, partitions, properties)

    async def find_new(self, name: TopicName) -> Topic:
        # A new topic exists before its partitions do, so their creation time can't be read for a moment.
        for _ in range(NEW_TOPIC_ATTEMPTS):
            try:
                return await self.find(name, fresh=True)
            except (Unavailable, TopicMissing) as error:
                log.debug("new topic %s: %s", name.pulsar, error)
                await asyncio.sleep(NEW_TOPIC_SECONDS)
        return await self.find(name, fresh=True)

    async def _make(self, name: TopicName, partitions: int, properties: Mapping[str, str]) -> None:
        if ENTRY_FORMAT not in properties and not name.internal and await self._is_replicated(name):
            with contextlib.suppress(Refused):  # raised by a broker that stores no topic properties
                # The topic is replicated, and the other cluster can read format pulsar.
                await self._admin.topics.create_topic(
                    name.pulsar, partitions, {**properties, ENTRY_FORMAT: PULSAR_FORMAT}
                )
                return
        await self._admin.topics.create_topic(name.pulsar, partitions, properties)

    async def _is_replicated(self, name: TopicName) -> bool:
        return self._replication is not None and await self._replication.is_namespace_replicated(
            f"{name.tenant}/{name.namespace}"
        )

    async def create_if_missing(self, name: TopicName, partitions: int) -> Topic:
        """Make a topic that many clients may ask for at once: they share one attempt."""
        return await self._creating.call(name, lambda: self._create_or_find(name, partitions))

    async def _create_or_find(self, name: TopicName, partitions: int) -> Topic:
        try:
            return await self.create(name, partitions)
        except AlreadyExists:
            return await self.find(name, fresh=True)

    async def close(self) -> None:
        """Topics that are being made are made; nobody waits for the other questions any more."""
        await self._creating.finished(CLOSE_SECONDS)
        for shared in (
            self.lost,
            self.ids,
            self._creating,
            self._finding,
            self._name_listing,
            self._cluster_lookups,
            self._logs_in,
        ):
            await shared.close()

    async def delete(self, name: TopicName, *, partitioned: bool) -> None:
        self.forget(name)
        await self._admin.topics.delete_topic(name.pulsar, partitioned=partitioned)
        self.gone(name)

    async def unmake(self, name: TopicName) -> None:
        """Delete a topic that was made a moment ago. While a client is connected to it, it is Refused, and stays.

        Without an answer nothing is mended: Pulsar may still be deleting, and would leave the partitions that are made
        meanwhile.
        """
        try:
            await self._admin.topics.delete_unused_topic(name.pulsar)
        except Refused:
            with contextlib.suppress(PulsarError):
                await self._admin.topics.create_missing_partitions(
                    name.pulsar
                )  # Pulsar may have deleted some partitions before it refused to delete the one in use
            raise
        self.gone(name)

    def gone(self, name: TopicName) -> None:
        """It was deleted. Clients that go on with it for a while are not to make Pulsar look for it each time."""
        self._deletions.note(name)
        self._note_gone(name, _Gone(self._clock() + GONE_SECONDS, learnt_at=self._clock()))

    def _note_gone(self, name: TopicName, gone: _Gone) -> None:
        self.forget(name)
        self.lost.forget(name)
        before = self._gone.get(name)
        # Counts even if the catalogue does not remember the topic, which may still be in use.
        self.forgotten += before is None
        self._gone[name] = gone if before is None else gone._replace(until=max(before.until, gone.until))
        self._gone.move_to_end(name)
        if len(self._gone) > MAX_GONE:
            self._gone.popitem(last=False)

    def check_partitioned(self, topic: Topic) -> None:
        """NotPartitioned for a topic that can't grow."""
        if not topic.partitioned:
            raise NotPartitioned(f"{topic.name.pulsar} was made in Pulsar without partitions, and can't get any")

    async def grow(self, name: TopicName, partitions: int) -> None:
        await self._admin.topics.grow_topic(name.pulsar, partitions)
        topic = self._topics.get(name)
        if topic is not None:  # the next request looks the topic up again; its id stays known meanwhile
            self._topics[name] = replace(topic, learnt_at=-math.inf)

    def has_just_grown(self, name: TopicName) -> bool:
        """Whether other sidecars may not know yet how many partitions it has."""
        at = self._grown.get(name)
        return at is not None and self._clock() - at < GROWN_SECONDS

    def forget(self, name: TopicName) -> None:
        topic = self._topics.pop(name, None)
        if topic is not None:
            self.forgotten += 1
            self._by_id.pop(topic.topic_id, None)

    def _remember(self, topic: Topic) -> None:
        before = self._topics.get(topic.name)
        if before is not None and before.topic_id != topic.topic_id:
            self.forget(topic.name)
        elif before is not None and before.partitions != topic.partitions:
            self.forgotten += 1  # other sidecars may lead its partitions now that their count has changed
            self._grown = {name: at for name, at in self._grown.items() if self._clock() - at < GROWN_SECONDS}
            self._grown[topic.name] = self._clock()
        if before is None or before.properties != topic.properties:
            self.on_record_configs(topic)  # also called for a topic that was created again, or evicted for a while
        self._gone.pop(topic.name, None)
        self._topics[topic.name] = topic
        self._topics.move_to_end(topic.name)
        self._by_id[topic.topic_id] = topic.name
        if len(self._topics) > MAX_TOPICS:
            _, oldest = self._topics.popitem(last=False)
            self._by_id.pop(oldest.topic_id, None)
