"""Internal topics give their bytes back: one sidecar of the fleet sees to it that each of them is compacted, and lets
Pulsar take the rest.

    kept without end ──every partition is held, at two looks──▶ kept for groups.internal_retention_minutes
          ▲                                                                     │
          └── a partition is not held any more, or its broker may forget what is compacted ◀──┘

One sidecar is elected for each topic. It looks at all partitions each minute. What coordinators lead is compacted by
their leaders, all else by the housekeeper. Nobody else compacts: a broker that is killed behind two compactions within
a second knows neither of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from kafka_sidecar.coordination.election import Election
from kafka_sidecar.internal_topics.compacted_topic import MARKER_KEY, KeyedWrites
from kafka_sidecar.internal_topics.compactor import Compactor, nobody_asks
from kafka_sidecar.internal_topics.internal_storage import (
    FOR_EVER,
    Retention,
    may_free,
    retention_of,
    retention_without_own,
    stored_bytes,
    what_moves_cursors,
)
from kafka_sidecar.internal_topics.internal_topic import count_of
from kafka_sidecar.loop.backoff import Backoff
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.loop.ids import WRITER_PREFIX, NewId
from kafka_sidecar.loop.supervised import SupervisedTask
from kafka_sidecar.model.partition_name import partition_name
from kafka_sidecar.pulsar.admin import NoTopicPolicies
from kafka_sidecar.pulsar.entry import CompactionStats
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, Refused, TopicMissing, Unavailable
from kafka_sidecar.pulsar.ports import Admin, Client
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog

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
        self,
        client: Client,
        admin: Admin,
        namespace: str,
        led: Sequence[str],
        followed: Sequence[str],
        kept: Sequence[str],
        minutes: int,
        clock: Clock,
        new_id: NewId,
    ) -> None:
        """`led`: topics whose partitions have leaders, which compact them. `kept`: what can be worked out of logs
        again, if it is lost.
        """
        self._client = client
        self._admin = admin
        self._namespace = namespace
        self._led = frozenset(led)
        self._kept = frozenset(kept)
        self._missing = [*led, *followed, *kept]
        self._wanted = retention_of(minutes)
        self._clock = clock
        self._new_id = new_id
        self._keepers: list[Housekeeper] = []
        self._task = SupervisedTask("housekeeping", namespace, self._find, backoff=Backoff(LOOK_SECONDS, LOOK_SECONDS))

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
        compactor = None
        if topic not in self._led:
            compactor = Compactor(
                self._admin, self._write_marker, nobody_asks if topic in self._kept else self._lacks_nothing
            )
        return Housekeeper(self._client, self._admin, topic, self._wanted, compactor, self._clock, self._new_id)

    async def _lacks_nothing(self, partition: str, stats: CompactionStats) -> bool:
        """Whether the log begins where it began when it was made: nothing is compacted of it, so what was before would
        be lost.
        """
        first = stats.log.first
        if first is None:
            is_whole = await self._admin.topics.index_property(partition) is None
        else:
            is_whole = (await self._admin.topics.index_of(partition, first) or 0) == 0
        if not is_whole:
            log.warning(
                "the beginning of %s is gone, and its broker does not know what was compacted of it. To go on without "
                "that, run pulsar-admin topics compact %s",
                partition,
                partition,
            )
        return is_whole

    async def _write_marker(self, partition: str) -> None:
        writes = KeyedWrites(partition, self._clock)
        producer = writes.producer = await self._client.producer(
            partition, WRITER_PREFIX + self._new_id(), writes, purpose="lead"
        )
        try:
            async with asyncio.timeout(MARKER_SECONDS):
                await writes.send(MARKER_KEY, b"for the housekeeper")
        except TimeoutError as error:
            raise Unavailable(f"{partition} took no marker within {MARKER_SECONDS:.0f} s") from error
        finally:
            producer.close()


class _InGeneral(NamedTuple):
    """What the namespace and the brokers say; None where they could not be asked."""

    policies: Mapping[str, Any] | None
    settings: Mapping[str, str]
    reasons: list[str]  # that speak against a finite retention


class Housekeeper:
    """Of one topic, in the sidecar that is elected."""

    def __init__(
        self,
        client: Client,
        admin: Admin,
        topic: str,
        wanted: Retention,
        compactor: Compactor | None,
        clock: Clock,
        new_id: NewId,
    ) -> None:
        self._client = client
        self._admin = admin
        self._topic = topic
        self._label = topic.rpartition("/")[2]
        self._wanted = wanted
        self._compactor = compactor
        self._looks = 0  # one after the other, at which every partition was held
        self._missed = 0  # looks, one after the other, at which this candidate was not listed
        self._said = ""
        self._name = WRITER_PREFIX + new_id()
        self._task = SupervisedTask("housekeeper", topic, self._keep, backoff=Backoff(LOOK_SECONDS, LOOK_SECONDS))
        self._election = Election(client, partition_name(topic, 0), SUBSCRIPTION, self._name, {}, self, clock.wall)

    def elect(self) -> None:
        self._task.start()

    def depose(self, reason: str) -> None:
        self._task.stop()
        self._looks = self._missed = 0
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
        for partition in [partition_name(self._topic, number) for number in range(count)]:
            try:
                found[partition] = await self._admin.topics.compaction_stats(partition)
            except PulsarError as error:
                log.info("%s can't be looked after now: %s", partition, error)
        if self._compactor is not None:
            for partition, stats in found.items():
                await self._compactor.look(partition, stats)
        if len(found) == count:
            metrics.INTERNAL_TOPIC_BYTES.labels(self._label).set(sum(map(stored_bytes, found.values())))
        self._looks = self._looks + 1 if len(found) == count and all(stats.is_held for stats in found.values()) else 0
        try:
            await self._set_retention(found)
        except (NoTopicPolicies, NotPermitted, Refused) as error:
            self._say(f"its retention can't be set: {error}")
        await self._stand_again_if_forgotten()

    async def _stand_again_if_forgotten(self) -> None:
        """A broker that closes a topic may have let this candidate in, and forgotten it: another is elected as well."""
        listed = (await self._admin.topics.partition_stats(self._topic)).get(0)
        if listed is None:
            return
        consumers = listed.get("subscriptions", {}).get(SUBSCRIPTION, {}).get("consumers") or []
        self._missed = 0 if any(one.get("consumerName") == self._name for one in consumers) else self._missed + 1
        if self._missed >= LOOKS:
            self._election.on_end(Unavailable("the broker has forgotten this candidate"))

    async def _set_retention(self, found: Found) -> None:
        """One reason is enough to keep it without end. It is finite only where all is known, and nothing speaks against
        it.
        """
        found_own = await self._admin.policies.retention(self._topic)
        own = None if found_own is None else Retention(*found_own)
        in_general = await self._policies_and_settings()
        if in_general.policies is None:
            now = own
        else:
            now = retention_without_own(in_general.policies, in_general.settings) if own is None else own
        forgetful = [await self._forgetful(partition) for partition in found]
        reasons = [*in_general.reasons, *[one for one in forgetful if one]]
        is_finite = now is not None and now.is_finite
        if is_finite:
            reasons += [
                f"its broker does not know what was compacted of {one}"
                for one, stats in found.items()
                if not stats.is_held
            ]
        if reasons and is_finite:
            log.warning("%s is kept without end from now on: %s", self._topic, reasons[0])
            await self._apply_retention(FOR_EVER)
        elif reasons:
            self._say(reasons[0])
        elif in_general.policies is None or None in forgetful or self._looks == 0:
            return  # something could not be asked
        elif own != self._wanted and (is_finite or (self._wanted.is_finite and self._looks >= LOOKS)):
            await self._apply_retention(self._wanted)
            log.info(
                "of %s Pulsar keeps what is not compacted, and what was written in %d minutes",
                self._topic,
                self._wanted.minutes,
            )

    async def _policies_and_settings(self) -> _InGeneral:
        namespace = self._topic.partition("://")[2].rpartition("/")[0]
        try:
            policies = await self._admin.cluster.namespace_policies(namespace)
            settings = await self._admin.cluster.broker_settings()
            own = await self._admin.policies.of_cursors(self._topic)
        except NotPermitted as error:
            return _InGeneral(None, {}, [f"this role may not ask what moves cursors: {error}"])
        except Unavailable:
            return _InGeneral(None, {}, [])
        return _InGeneral(policies, settings, list(what_moves_cursors(own, policies, settings)))

    async def _forgetful(self, partition: str) -> str | None:
        """Why its broker may forget what is compacted, if it may; None where it can't be asked."""
        try:
            version = await self._client.version_of_owner(partition)
        except Unavailable:
            return None
        return (
            ""
            if may_free(version)
            else f"the broker of {partition} may forget what is compacted: it is {version or 'behind a proxy'}"
        )

    async def _apply_retention(self, wanted: Retention) -> None:
        await self._admin.policies.set_retention(self._topic, *wanted)
        try:
            async with asyncio.timeout(POLICY_SECONDS):
                while await self._admin.policies.retention(self._topic) != wanted:  # noqa: ASYNC110
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError as error:
            raise Unavailable(
                f"the retention of {self._topic} was set, and is not that after {POLICY_SECONDS:.0f} s"
            ) from error

    def _say(self, reason: str) -> None:
        if reason != self._said:
            self._said = reason
            log.warning("%s keeps all that was ever written to it: %s", self._topic, reason)
