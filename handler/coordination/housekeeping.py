"""Internal topics give their bytes back: one sidecar of the fleet sees to it that each of them is compacted, and lets Pulsar take the rest.

    kept for ever ──every partition is held, at two looks──▶ kept for groups.internal_retention_minutes
          ▲                                                                     │
          └── a partition is not held any more, or its broker may forget what is compacted ◀──┘

One sidecar is elected for each topic. It looks at all partitions each minute. What coordinators lead is compacted by their leaders, all
else by the housekeeper. Nobody else compacts: a broker that is killed behind two compactions within a second knows neither of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from typing import Final

from handler.clock import Clock
from handler.coordination.compacted_topic import MARKER_KEY, KeyedWrites
from handler.coordination.compactor import Compactor
from handler.coordination.election import Election
from handler.coordination.internal_storage import (
    FOR_EVER,
    Retention,
    may_free,
    retention_of,
    retention_without_own,
    stored_bytes,
    what_moves_cursors,
)
from handler.coordination.internal_topic import count_of
from handler.ids import WRITER_PREFIX, NewId
from handler.pulsar.admin import NoTopicPolicies
from handler.pulsar.entry import CompactionStats
from handler.pulsar.errors import NotPermitted, PulsarError, Refused, TopicMissing, Unavailable
from handler.pulsar.ports import Admin, Client
from handler.tasks import Backoff, KeptAlive
from handler.telemetry import metrics
from handler.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

SUBSCRIPTION: Final = "kafka-sidecar-housekeeper"
LOOK_SECONDS: Final = 60.0
# At which every partition is held. A broker stores the cursor of compaction within a minute.
LOOKS: Final = 2
# A broker takes a policy by writing it to a topic, and has it when it has read it there.
POLICY_SECONDS: Final = 10.0
POLL_SECONDS: Final = 0.25
MARKER_SECONDS: Final = 10.0

Found = Mapping[str, CompactionStats]  # by partition


class Housekeeping:
    """Of all internal topics. A topic is looked after once it is there."""

    def __init__(
        self, client: Client, admin: Admin, namespace: str, led: Sequence[str], others: Sequence[str], minutes: int, clock: Clock,
        new_id: NewId,
    ) -> None:  # fmt: skip
        """`led`: topics whose partitions have leaders, which compact them."""
        self._client = client
        self._admin = admin
        self._namespace = namespace
        self._led = frozenset(led)
        self._missing = [*led, *others]
        self._wanted = retention_of(minutes)
        self._clock = clock
        self._new_id = new_id
        self._keepers: list[Housekeeper] = []
        self._task = KeptAlive("housekeeping", namespace, self._find, backoff=Backoff(LOOK_SECONDS, LOOK_SECONDS))

    def start(self) -> None:
        self._task.start()

    async def close(self) -> None:
        await self._task.stopped()
        for keeper in self._keepers:
            await keeper.close()
        self._keepers.clear()

    async def _find(self) -> None:
        while self._missing:
            with contextlib.suppress(TopicMissing):  # nobody has made the namespace yet
                there = await self._admin.topics.partitioned_topics(self._namespace)
                for topic in [topic for topic in self._missing if topic in there]:
                    self._missing.remove(topic)
                    self._keepers.append(self._keeper(topic))
            await asyncio.sleep(LOOK_SECONDS)

    def _keeper(self, topic: str) -> Housekeeper:
        compactor = None if topic in self._led else Compactor(self._admin, self._write_marker)
        return Housekeeper(self._client, self._admin, topic, self._wanted, compactor, self._clock, self._new_id)

    async def _write_marker(self, partition: str) -> None:
        writes = KeyedWrites(partition, self._clock)
        producer = writes.producer = await self._client.producer(partition, WRITER_PREFIX + self._new_id(), writes, purpose="lead")
        try:
            async with asyncio.timeout(MARKER_SECONDS):
                await writes.send(MARKER_KEY, b"for the housekeeper")
        except TimeoutError as error:
            raise Unavailable(f"{partition} took no marker within {MARKER_SECONDS:.0f} s") from error
        finally:
            producer.close()


class Housekeeper:
    """Of one topic, in the sidecar that is elected."""

    def __init__(
        self, client: Client, admin: Admin, topic: str, wanted: Retention, compactor: Compactor | None, clock: Clock, new_id: NewId
    ) -> None:
        self._client = client
        self._admin = admin
        self._topic = topic
        self._label = topic.rpartition("/")[2]
        self._wanted = wanted
        self._compactor = compactor
        self._looks = 0  # one after the other, at which every partition was held
        self._said = ""
        self._task = KeptAlive("housekeeper", topic, self._keep, backoff=Backoff(LOOK_SECONDS, LOOK_SECONDS))
        self._election = Election(client, f"{topic}-partition-0", SUBSCRIPTION, WRITER_PREFIX + new_id(), {}, self, clock.wall)

    def elect(self) -> None:
        self._task.start()

    def depose(self, reason: str) -> None:
        self._task.stop()
        self._looks = 0
        if self._compactor is not None:
            self._compactor.forget_all()
        with contextlib.suppress(KeyError):
            metrics.INTERNAL_TOPIC_BYTES.remove(self._label)

    async def close(self) -> None:
        self._election.close()
        await self._task.stopped()

    async def _keep(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(LOOK_SECONDS)

    async def _look(self) -> None:
        count = await count_of(self._admin, self._topic)
        found = dict[str, CompactionStats]()
        for partition in [f"{self._topic}-partition-{number}" for number in range(count)]:
            try:
                found[partition] = await self._admin.topics.compaction_stats(partition)
            except PulsarError as error:
                log.info("%s can't be looked after now: %s", partition, error)
        if self._compactor is not None:
            for partition, stats in found.items():
                await self._compactor.look(partition, stats)
        if len(found) == count:
            metrics.INTERNAL_TOPIC_BYTES.labels(self._label).set(sum(map(stored_bytes, found.values())))
            await self._keep_retention(found)

    async def _keep_retention(self, found: Found) -> None:
        self._looks = self._looks + 1 if all(stats.is_held for stats in found.values()) else 0
        try:
            await self._set_retention(found)
        except (NoTopicPolicies, NotPermitted, Refused) as error:
            self._say(f"its retention can't be set: {error}")

    async def _set_retention(self, found: Found) -> None:
        policies = await self._admin.cluster.namespace_policies(self._topic.partition("://")[2].rpartition("/")[0])
        settings = await self._admin.cluster.broker_settings()
        found_own = await self._admin.policies.retention(self._topic)
        own = None if found_own is None else Retention(*found_own)
        now = retention_without_own(policies, settings) if own is None else own
        reasons = [*what_moves_cursors(policies, settings), *await self._forgetful_brokers(list(found))]
        if now.is_finite:
            reasons += [f"its broker does not know what was compacted of {one}" for one, stats in found.items() if not stats.is_held]
        if now.is_finite and reasons:
            log.warning("%s is kept for ever from now on: %s", self._topic, reasons[0])
            await self._be_kept(FOR_EVER)
        elif reasons:
            self._say(reasons[0])
        elif (now.is_finite and own != self._wanted) or (self._wanted.is_finite and not now.is_finite and self._looks >= LOOKS):
            await self._be_kept(self._wanted)
            log.info("of %s Pulsar keeps what is not compacted, and what was written in %d minutes", self._topic, self._wanted.minutes)

    async def _forgetful_brokers(self, partitions: Sequence[str]) -> list[str]:
        versions = [await self._client.version_of_owner(partition) for partition in partitions]
        return [
            f"the broker of {partition} may forget what is compacted: it is {version or 'behind a proxy'}"
            for partition, version in zip(partitions, versions, strict=True)
            if not may_free(version)
        ]

    async def _be_kept(self, wanted: Retention) -> None:
        await self._admin.policies.set_retention(self._topic, *wanted)
        try:
            async with asyncio.timeout(POLICY_SECONDS):
                while await self._admin.policies.retention(self._topic) != wanted:  # noqa: ASYNC110
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError as error:
            raise Unavailable(f"the retention of {self._topic} was set, and is not that after {POLICY_SECONDS:.0f} s") from error

    def _say(self, reason: str) -> None:
        if reason != self._said:
            self._said = reason
            log.warning("%s keeps all that was ever written to it: %s", self._topic, reason)
