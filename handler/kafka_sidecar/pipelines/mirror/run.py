"""The driver of a mirror: rounds of slices until everything has caught up, or without end, and what it says of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kafka_sidecar.errors import CommandFailed, ConfigError
from kafka_sidecar.kafka_client.client import TRANSIENT, KafkaClient, Refused, connected, until_it_succeeds
from kafka_sidecar.kafka_client.topics import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    ClusterState,
    Partition,
    cluster_state,
    create_partitions,
    create_topic,
    described_topics,
    dynamic_configs,
    matching_topics,
    offsets_and_failures,
)
from kafka_sidecar.pipelines.copying.delivery import Progress, Route, not_the_same
from kafka_sidecar.pipelines.copying.outcome import MOST_LEFT_OUT, Outcome
from kafka_sidecar.pipelines.copying.places import RecordPlace, record_place, told
from kafka_sidecar.pipelines.copying.record import Recorded, latest
from kafka_sidecar.pipelines.copying.target import foreign_records
from kafka_sidecar.pipelines.mirror.copying import AT_A_TIME, CLIENT_ID, Slice, copy_all
from kafka_sidecar.pipelines.mirror.plan import RUNS_CONFIGS, Changes, MirrorOptions, changes, copied_configs, shares_of
from kafka_sidecar.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Pause after a round that had nothing to copy.
REST_SECONDS: Final = 1.0
LOOK_SECONDS: Final = 120.0
ALL: Final = -1  # in place of a partition index: all partitions of the topic
# The mirror reports a partition that is fenced in this many rounds in a row.
FENCED_ROUNDS: Final = 5


@dataclass(slots=True)
class PartitionState:
    """What the driver knows of one partition."""

    route: Route
    first: int = 0
    end: int = 0  # last stable offset of the source
    high_watermark: int = 0
    # High watermark with which the partition has caught up, whether or not its transactions have ended.
    goal: int | None = None
    progress: Progress | None = None
    records: int = 0
    bytes: int = 0
    lost: tuple[tuple[int, int], ...] = ()
    left_out: dict[str, None] = field(default_factory=dict)  # a dict as an ordered set
    repeats: tuple[tuple[int, int], ...] = ()
    trouble: str = ""
    problem: str = ""  # why the partition was given up; a continuous mirror tries again
    refusal: str = ""  # why the partition is never resumed: its topics are not those that were copied before
    fenced: int = 0
    moved_at: float = 0.0
    # No entry of the source log has an index, and all of them were copied. Later entries with an index are copied
    # behind them.
    is_drained: bool = False

    @property
    def fault(self) -> str:
        return self.refusal or self.problem

    @property
    def next_source(self) -> int:
        return self.first if self.progress is None else self.progress.next_source

    @property
    def place(self) -> RecordPlace | None:
        """How far it is in what has no index; None where that is done, or was not begun."""
        return None if self.progress is None else record_place(self.progress.next_source)

    @property
    def behind(self) -> int:
        return max(0, (self.goal or 0) - max(0, self.next_source))

    @property
    def is_done(self) -> bool:
        has_caught_up = self.progress is not None and self.place is None and self.goal is not None and self.behind == 0
        return has_caught_up or self.is_drained

    @property
    def has_work(self) -> bool:
        """Whether a task can do something for it."""
        return not self.fault and (self.progress is None or self.end > self.next_source)

    @property
    def unstable(self) -> int:
        """How many offsets are behind a transaction that has not ended."""
        return max(0, self.high_watermark - self.end)

    def take(self, outcome: Outcome, now: float) -> None:
        if outcome.progress is not None and outcome.progress != self.progress:
            self.progress, self.moved_at = outcome.progress, now
        self.records += outcome.records
        self.bytes += outcome.bytes
        if outcome.lost is not None and outcome.lost not in self.lost:
            self.lost = (*self.lost, outcome.lost)
        if outcome.repeats is not None and outcome.repeats not in self.repeats:
            self.repeats = (*self.repeats, outcome.repeats)
        for text in outcome.left_out:
            if len(self.left_out) < MOST_LEFT_OUT:
                self.left_out[text] = None
        self.trouble, self.problem = outcome.trouble, outcome.problem
        self.fenced = self.fenced + 1 if outcome.is_fenced else 0

    def lose_patience(self, now: float, patience: float) -> None:
        """Say what keeps it, where nothing was copied for a while."""
        if self.is_done or self.fault:
            return
        stood = now - self.moved_at
        if self.fenced >= FENCED_ROUNDS:
            self.problem = (
                f"its producer is fenced again and again: another run of mirror {self.route.mirror.name} works at this "
                "partition (stop one of them), or its transactions take longer than a minute"
            )
        elif stood <= patience:
            return
        elif self.trouble:
            self.problem = f"nothing was copied for {round(stood)} s: {self.trouble}"
        elif self.end > self.next_source:
            self.problem = f"the source gives nothing from offset {self.next_source} on, and ends at {self.end}"
        else:
            self.problem = (
                f"{self.unstable} offsets of the source are behind a transaction that has not ended:"
                " kafka-transactions find-hanging finds it"
            )


@dataclass(slots=True)
class Mirror:
    spark: SparkSession | None  # None in a dry run
    options: MirrorOptions
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    partitions: dict[Partition, PartitionState] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)  # topics that can't be created in the target, with the reason
    # Partitions that the mirror leaves alone, because a reindex still copies them.
    held: set[Partition] = field(default_factory=set)
    recorded: Recorded | None = None
    _began: float = 0.0
    _reported_at: float = 0.0
    _said: dict[Partition, str] = field(default_factory=dict)

    def run(self) -> None:
        """Until all that was there at the beginning is copied, or can't be; without an end where it is continuous."""
        while True:
            asyncio.run(self.look())
            if self.is_over:
                return
            self.copy()

    @property
    def is_over(self) -> bool:
        return not self.options.continuous and all(one.is_done or one.fault for one in self.partitions.values())

    def copy(self) -> None:
        """A round of what has work."""
        self._began = self._began or self.clock()
        free = {at: one for at, one in self.partitions.items() if at not in self.held and one.has_work}
        work = {
            at: max(1, one.end - one.next_source)
            for at, one in free.items()
            if self.options.continuous or not one.is_done
        }
        for outcome in self._round(work) if work else ():
            self.partitions[outcome.topic, outcome.partition].take(outcome, self.clock())
        self._judge()
        if self.clock() - self._reported_at >= REST_SECONDS and work:
            self._reported_at = self.clock()
            self._tell(self._reported_at - self._began)
        if not work or all(self.partitions[at].trouble for at in work):
            time.sleep(REST_SECONDS)

    def _judge(self) -> None:
        """A run that ends gives up what stands still; a continuous one says so, and tries again."""
        for at, one in self.partitions.items():
            if at in self.held:
                continue
            one.lose_patience(self.clock(), self.options.patience_seconds)
            if one.fault and self._said.get(at) != one.fault:
                self._said[at] = one.fault
                self.say(f"{at[0]}-{at[1]}: {one.fault}")
            if one.problem and self.options.continuous:
                one.problem, one.trouble, one.fenced, one.moved_at = "", one.problem, 0, self.clock()

    def _round(self, behind: dict[Partition, int]) -> list[Outcome]:
        assert self.spark is not None
        context = self.spark.sparkContext
        hands = shares_of(behind, context.defaultParallelism)
        slices = [[self._slice(at, len(hand)) for at in hand] for hand in hands]
        return list(context.parallelize(slices, len(slices)).flatMap(copy_all).collect())

    def _slice(self, at: Partition, of: int) -> Slice:
        options, state = self.options, self.partitions[at]
        # With many partitions slices are shorter, so that each partition has its turn within a few rounds.
        seconds = max(1.0, min(options.round_seconds, options.round_seconds * AT_A_TIME / of))
        return Slice(
            route=state.route,
            source=options.source,
            target=options.target,
            known=state.progress,
            end=state.end,
            seconds=seconds,
            exactly_once=options.exactly_once,
            accept_loss=options.accept_loss,
            into_existing=options.into_existing,
        )

    def _tell(self, seconds: float) -> None:
        states = self.partitions.values()
        done, troubles = sum(one.is_done for one in states), {one.trouble for one in states if one.trouble}
        copied, size = sum(one.records for one in states), sum(one.bytes for one in states)
        text = f"{done} of {len(states)} partitions have caught up, {sum(one.behind for one in states)} offsets behind"
        text += f"; {copied} records copied, {size / max(seconds, 0.001) / 1e6:.1f} MB/s"
        self.say(text + (f"; trying again: {sorted(troubles)[0]}" if troubles else ""))

    # --- what there is

    async def look(self) -> None:
        """The topics and ends of the source; what the target lacks is made."""
        try:
            async with AsyncExitStack() as stack:
                source = await stack.enter_async_context(connected(self.options.source, CLIENT_ID))
                target = await stack.enter_async_context(connected(self.options.target, CLIENT_ID))
                if self.recorded is None:
                    self.recorded = await until_it_succeeds(lambda: self._read_runs(target), LOOK_SECONDS / 2)
                async with asyncio.timeout(LOOK_SECONDS):
                    await until_it_succeeds(lambda: self._refresh(source, target), LOOK_SECONDS / 2)
        except (ConfigError, Refused, *TRANSIENT) as error:
            if not self.partitions:
                if isinstance(error, ConfigError):
                    raise
                raise CommandFailed(f"the mirror can't begin: {str(error) or type(error).__name__}") from error
            self.say(
                f"the clusters can't be looked at: {str(error) or type(error).__name__}"
            )  # not fatal: when copying loses patience, it reports how long nothing was copied
            await asyncio.sleep(REST_SECONDS)

    async def _read_runs(self, target: KafkaClient) -> Recorded:
        runs_topic = self.options.name.runs_topic
        if runs_topic in (await cluster_state(target)).topics:
            return await latest(target, runs_topic)
        if not self.options.dry_run:
            await create_topic(target, runs_topic, 1, RUNS_CONFIGS)
        return Recorded()

    async def _refresh(self, source: KafkaClient, target: KafkaClient) -> None:
        options = self.options
        source_state, target_state = await cluster_state(source), await cluster_state(target)
        same = bool(source_state.cluster_id) and source_state.cluster_id == target_state.cluster_id
        topics = self._topics(source_state, target_state)
        if same:  # source and target are one cluster: a copy must not be copied again
            topics = [topic for topic in topics if not options.prefix or not topic.startswith(options.prefix)]
        lacking = changes(options, topics, source_state, target_state)
        for topic, why in lacking.refused.items():
            if not self.partitions:
                raise ConfigError(why)
            self.refused[topic] = why
        if options.dry_run:
            self._say_changes(lacking)
        else:
            await self._make(lacking, source, target)
            target_state = await cluster_state(target)
        wanted = [(topic, index) for topic in topics for index in range(source_state.topics[topic].partitions)]
        firsts, _ = await offsets_and_failures(source, wanted, EARLIEST)
        ends, _ = await offsets_and_failures(source, wanted, LATEST, READ_COMMITTED)
        high_watermarks, failures = await offsets_and_failures(source, wanted, LATEST)
        for at in wanted:
            state = self._state(at, source_state, target_state)
            if at in firsts and at in ends and at in high_watermarks:
                self._see(state, firsts[at], ends[at], high_watermarks[at])
            elif at in failures:
                state.trouble = str(failures[at])
        if options.dry_run:
            await self._see_foreign_records(target, target_state)

    def _topics(self, source: ClusterState, target: ClusterState) -> list[str]:
        """All that is meant has to be there at the beginning. Later one that is away, or was deleted, concerns itself
        alone.
        """
        options = self.options
        if not self.partitions:
            return matching_topics(options.topics, options.exclude, source)
        there = described_topics(options.topics, options.exclude, source)
        topics = [topic for topic in there if options.prefix + topic not in target.topics.away]
        for topic in {topic for topic, _ in self.partitions}.difference(topics):
            self._say_once(
                topic, "the clusters do not describe this topic at the moment, or it was deleted: the others go on"
            )
        for topic in topics:
            self._said.pop((topic, ALL), None)
        return topics

    def _say_once(self, topic: str, text: str) -> None:
        if self._said.get((topic, ALL)) != text:
            self._said[topic, ALL] = text
            self.say(f"{topic}: {text}")

    def _see(self, state: PartitionState, first: int, end: int, high_watermark: int) -> None:
        was_done = state.is_done
        state.first, state.end, state.high_watermark = first, end, high_watermark
        if self.options.continuous or state.goal is None:
            state.goal = high_watermark
        if was_done:
            state.moved_at = self.clock()  # patience_seconds count from the time when there is something to copy
        if state.progress is not None and high_watermark < state.progress.next_source:
            state.refusal = (
                f"the source ends at {high_watermark} and was copied up to {state.progress.next_source}: it has lost "
                "records, or the topic was made again. Begin with another --name"
            )

    async def _see_foreign_records(self, target: KafkaClient, target_state: ClusterState) -> None:
        """What a task would refuse: a dry run says it before."""
        new = {
            at: one for at, one in self.partitions.items() if one.progress is None and not self.options.into_existing
        }
        there = {
            at: (one.route.target_topic, at[1])
            for at, one in new.items()
            if one.route.target_topic in target_state.topics
            and at[1] < target_state.topics[one.route.target_topic].partitions
        }
        ends, _ = await offsets_and_failures(target, there.values(), LATEST)
        for at, target_at in there.items():
            if ends.get(target_at):
                new[at].refusal = foreign_records(new[at].route, ends[target_at])

    def _state(self, at: Partition, source: ClusterState, target: ClusterState) -> PartitionState:
        topic, index = at
        name = self.options.prefix + topic
        there = target.topics.get(name)
        route = Route(
            mirror=self.options.name,
            topic=topic,
            target_topic=name,
            partition=index,
            source_cluster=source.cluster_id,
            source_id=source.topics[topic].topic_id,
            target_id=there.topic_id if there is not None else "",
        )
        found = self.partitions.get(at)
        if found is None:
            found = self.partitions[at] = PartitionState(route, moved_at=self.clock())
            assert self.recorded is not None
            recorded = self.recorded.latest.get(at)
            if recorded is not None:
                found.progress = Progress(recorded.next_source, recorded.target_end)
                found.refusal = not_the_same(route.as_recorded(recorded), route)
        else:
            found.refusal = found.refusal or not_the_same(found.route, route)
            if not found.refusal:
                found.route = route  # when the route was made, the broker may not have known the topic's id
        found.refusal = found.refusal or self.refused.get(topic, "")
        return found

    async def _make(self, lacking: Changes, source: KafkaClient, target: KafkaClient) -> None:
        """What can't be made concerns its topic alone."""
        configs = await self._configs(source, [one.source for one in lacking.topics]) if lacking.topics else {}
        for one in lacking.topics:
            try:
                await create_topic(
                    target, one.name, one.partitions, copied_configs(self.options, configs.get(one.source, {}))
                )
                self.say(f"topic {one.name} was made with {one.partitions} partitions")
                self.refused.pop(one.source, None)
            except Refused as error:
                if error.is_retriable:
                    raise
                self.refused[one.source] = str(error)
        for name, count in lacking.partitions:
            await create_partitions(target, name, count)
            self.say(f"topic {name} has {count} partitions now")

    async def _configs(self, source: KafkaClient, topics: list[str]) -> dict[str, dict[str, str]]:
        try:
            return await dynamic_configs(source, topics)
        except Refused as error:
            if error.code is not ErrorCode.UNSUPPORTED_VERSION:
                raise
            self.say("the source does not tell which configs were set on its topics: new ones get none")
            return {}

    def _say_changes(self, lacking: Changes) -> None:
        for one in lacking.topics:
            self.say(f"topic {one.name} would be made with {one.partitions} partitions")
        for name, count in lacking.partitions:
            self.say(f"topic {name} would get {count} partitions")


def result_of(mirror: Mirror, seconds: float) -> dict[str, Any]:
    """For programs."""
    states = mirror.partitions
    return {
        "pipeline": "mirror",
        "name": mirror.options.name.name,
        "delivery": "exactly-once" if mirror.options.exactly_once else "at-least-once",
        "complete": bool(states) and all(one.is_done and not one.fault for one in states.values()),
        "seconds": round(seconds, 3),
        "records": sum(one.records for one in states.values()),
        "bytes": sum(one.bytes for one in states.values()),
        "partitions": [
            {
                "topic": topic,
                "target_topic": one.route.target_topic,
                "partition": index,
                "next_source": told(one.next_source),
                "target_end": None if one.progress is None else one.progress.target_end,
                "behind": one.behind,
                "unstable": one.unstable,
                "records": one.records,
                "bytes": one.bytes,
                "lost": [[told(begin), told(end)] for begin, end in one.lost],
                "left_out": list(one.left_out),
                "repeats": one.repeats,
                "problem": one.fault,
            }
            for (topic, index), one in sorted(states.items())
        ],
    }
