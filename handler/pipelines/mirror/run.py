"""The driver of a mirror: rounds of slices until everything has caught up, or for ever, and what is told of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from handler.errors import SidecarError
from handler.pipelines.kafka.client import TRANSIENT, KafkaClient, Refused, connected, until_it_succeeds
from handler.pipelines.kafka.reading import records
from handler.pipelines.kafka.topics import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    ClusterState,
    Partition,
    cluster_state,
    create_partitions,
    create_topic,
    dynamic_configs,
    matching_topics,
    offsets,
)
from handler.pipelines.mirror.copying import AT_A_TIME, CLIENT_ID, Outcome, Slice, copy_all
from handler.pipelines.mirror.offset_runs import Copied, decode, decode_key
from handler.pipelines.mirror.plan import RUNS_CONFIGS, Changes, MirrorOptions, changes, copied_configs, dealt
from handler.pipelines.mirror.target import TRANSACTION_TIMEOUT_MS, Progress, Route
from handler.wire.error_code import ErrorCode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Topics, partitions and configs are looked at again so often; new ones are copied from then on.
REST_SECONDS: Final = 1.0
PLAN_SECONDS: Final = 120.0
# As often in a row a partition may be taken away from this run before it says so.
FENCED_ROUNDS: Final = 5


class MirrorFailed(SidecarError):
    """One sentence for whoever runs the mirror."""


@dataclass(slots=True)
class PartitionState:
    """What the driver knows of one partition."""

    route: Route
    first: int = 0
    end: int = 0  # what committed readers of the source see
    high_watermark: int = 0
    progress: Progress | None = None
    records: int = 0
    bytes: int = 0
    lost: tuple[int, int] | None = None
    repeats: tuple[int, int] | None = None
    trouble: str = ""
    problem: str = ""
    fenced: int = 0
    moved_at: float = 0.0

    @property
    def next_source(self) -> int:
        return self.first if self.progress is None else self.progress.next_source

    @property
    def behind(self) -> int:
        return max(0, self.end - self.next_source)

    @property
    def is_done(self) -> bool:
        return self.progress is not None and self.behind == 0

    def take(self, outcome: Outcome, now: float, patience: float) -> None:
        if outcome.progress is not None and outcome.progress != self.progress:
            self.progress, self.moved_at = outcome.progress, now
        self.records += outcome.records
        self.bytes += outcome.bytes
        self.lost, self.repeats = outcome.lost or self.lost, outcome.repeats or self.repeats
        self.trouble, self.problem = outcome.trouble, outcome.problem
        self.fenced = self.fenced + 1 if outcome.is_fenced else 0
        if self.fenced >= FENCED_ROUNDS:
            self.problem = f"another run of mirror {self.route.mirror.name} works at this partition: stop one of them"
        elif self.trouble and now - self.moved_at > patience:
            self.problem = f"nothing was copied for {round(now - self.moved_at)} s: {self.trouble}"
        elif not self.is_done and not self.trouble and now - self.moved_at > patience:
            self.problem = f"the source gives nothing from offset {self.next_source} on, and ends at {self.end}"


@dataclass(slots=True)
class Mirror:
    spark: SparkSession | None  # None for a dry run
    options: MirrorOptions
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    partitions: dict[Partition, PartitionState] = field(default_factory=dict)
    _recorded: dict[Partition, Copied] | None = None

    def run(self) -> None:
        """Until all partitions have caught up or can't go on; without an end where it is continuous."""
        began = last_told = self.clock()
        while True:
            asyncio.run(self.look())
            behind = {at: one.behind for at, one in self.partitions.items() if not one.is_done and not one.problem}
            if not behind:
                if not self.options.continuous or all(one.problem for one in self.partitions.values()):
                    return
                time.sleep(REST_SECONDS)
                continue
            for outcome in self._round(behind):
                self.partitions[outcome.topic, outcome.partition].take(outcome, self.clock(), self.options.patience_seconds)
            if self.clock() - last_told >= REST_SECONDS:
                last_told = self.clock()
                self._tell(last_told - began)
            if all(one.trouble for one in self.partitions.values() if not one.is_done and not one.problem):
                time.sleep(REST_SECONDS)

    def _round(self, behind: dict[Partition, int]) -> list[Outcome]:
        assert self.spark is not None
        context = self.spark.sparkContext
        hands = dealt(behind, context.defaultParallelism)
        slices = [[self._slice(at, len(hand)) for at in hand] for hand in hands]
        return list(context.parallelize(slices, len(slices)).flatMap(copy_all).collect())

    def _slice(self, at: Partition, of: int) -> Slice:
        options, state = self.options, self.partitions[at]
        # Of many partitions each comes to its turn within a few rounds' time.
        seconds = max(1.0, min(options.round_seconds, options.round_seconds * AT_A_TIME / of))
        return Slice(
            route=state.route, source=options.source, target=options.target, known=state.progress, end=state.end, seconds=seconds,
            exactly_once=options.exactly_once, accept_loss=options.accept_loss, into_existing=options.into_existing,
        )  # fmt: skip

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
            async with asyncio.timeout(PLAN_SECONDS), AsyncExitStack() as stack:
                source = await stack.enter_async_context(connected(self.options.source, CLIENT_ID))
                target = await stack.enter_async_context(connected(self.options.target, CLIENT_ID))
                await until_it_succeeds(lambda: self._refresh(source, target), PLAN_SECONDS / 2)
        except (Refused, *TRANSIENT) as error:
            if not self.partitions:
                raise MirrorFailed(f"the mirror can't begin: {str(error) or type(error).__name__}") from error
            self.say(f"the clusters can't be looked at: {str(error) or type(error).__name__}")  # slices say how long that lasts
            await asyncio.sleep(REST_SECONDS)

    async def _refresh(self, source: KafkaClient, target: KafkaClient) -> None:
        options = self.options
        source_state, target_state = await cluster_state(source), await cluster_state(target)
        topics = matching_topics(options.topics, options.exclude, source_state)
        lacking = changes(options, topics, source_state, target_state)
        if options.dry_run:
            self._say_changes(lacking)
        else:
            await self._make(lacking, source, target)
            if options.name.runs_topic not in target_state.topics:
                await create_topic(target, options.name.runs_topic, 1, RUNS_CONFIGS)
            target_state = await cluster_state(target)
        if self._recorded is None:
            self._recorded = await self._read_runs(target) if options.name.runs_topic in target_state.topics else {}
        wanted = [(topic, index) for topic in topics for index in range(source_state.topics[topic].partitions)]
        firsts, ends = await offsets(source, wanted, EARLIEST), await offsets(source, wanted, LATEST, READ_COMMITTED)
        high_watermarks = await offsets(source, wanted, LATEST)
        for at in wanted:
            state = self._state(at, source_state, target_state)
            state.first, state.end, state.high_watermark = firsts[at], ends[at], high_watermarks[at]
            if state.is_done:
                state.moved_at = self.clock()  # patience begins when there is something to copy
            if not state.problem and state.progress is not None and state.end < state.progress.next_source <= high_watermarks[at]:
                state.end = state.progress.next_source  # a transaction has begun meanwhile
            elif not state.problem and state.progress is not None and state.high_watermark < state.progress.next_source:
                state.problem = (
                    f"the source ends at {state.high_watermark} and was copied up to {state.progress.next_source}: it has lost records,"
                    " or the topic was made anew. Begin with another --name"
                )

    def _state(self, at: Partition, source: ClusterState, target: ClusterState) -> PartitionState:
        topic, index = at
        found = self.partitions.get(at)
        name = self.options.prefix + topic
        there = target.topics.get(name)
        route = Route(
            mirror=self.options.name, topic=topic, target_topic=name, partition=index, source_id=source.topics[topic].topic_id,
            target_id=there.topic_id if there is not None else "",
        )  # fmt: skip
        if found is None:
            found = self.partitions[at] = PartitionState(route, moved_at=self.clock())
            assert self._recorded is not None
            recorded = self._recorded.get(at)
            if recorded is not None:
                found.progress = Progress(recorded.next_source, recorded.target_end)
                found.problem = _other_topic(recorded, route)
        elif (found.route.source_id, found.route.target_id) != (route.source_id, route.target_id):
            found.problem = f"topic {topic} was made anew while it was copied. Begin with another --name"
        return found

    async def _make(self, lacking: Changes, source: KafkaClient, target: KafkaClient) -> None:
        configs = await dynamic_configs(source, [one.source for one in lacking.topics]) if lacking.topics else {}
        for one in lacking.topics:
            await create_topic(target, one.name, one.partitions, copied_configs(self.options, configs[one.source]))
            self.say(f"topic {one.name} was made with {one.partitions} partitions")
        for name, count in lacking.partitions:
            await create_partitions(target, name, count)
            self.say(f"topic {name} has {count} partitions now")

    def _say_changes(self, lacking: Changes) -> None:
        for one in lacking.topics:
            self.say(f"topic {one.name} would be made with {one.partitions} partitions")
        for name, count in lacking.partitions:
            self.say(f"topic {name} would get {count} partitions")

    async def _read_runs(self, target: KafkaClient) -> dict[Partition, Copied]:
        """The latest of each partition. A run that was killed may hold back what others have written, until its transaction times out."""
        topic = self.options.name.runs_topic
        at = (topic, 0)
        end = (await offsets(target, [at], LATEST))[at]
        await until_it_succeeds(lambda: _stable(target, at, end), 1.5 * TRANSACTION_TIMEOUT_MS / 1_000)
        found: dict[Partition, Copied] = {}
        begin = (await offsets(target, [at], EARLIEST))[at]
        async for record in records(target, topic, 0, begin, end):
            copied = decode(record.value or b"")
            key = decode_key(record.key or b"")
            if key not in found or copied.next_source >= found[key].next_source:
                found[key] = copied
        return found


async def _stable(kafka: KafkaClient, at: Partition, end: int) -> None:
    if (await offsets(kafka, [at], LATEST, READ_COMMITTED))[at] < end:
        raise Refused(ErrorCode.CONCURRENT_TRANSACTIONS, f"a transaction in topic {at[0]} was not ended; it times out within a minute")


def _other_topic(recorded: Copied, route: Route) -> str:
    """Why a partition can't be gone on with; empty where it can."""
    for which, before, now in (("source", recorded.source_id, route.source_id), ("target", recorded.target_id, route.target_id)):
        if before and now and before != now:
            return f"topic {route.topic} was made anew in the {which} since it was copied. Begin with another --name"
    return ""


def result_of(mirror: Mirror, seconds: float) -> dict[str, Any]:
    """For programs."""
    states = mirror.partitions
    return {
        "pipeline": "mirror", "name": mirror.options.name.name,
        "delivery": "exactly-once" if mirror.options.exactly_once else "at-least-once",
        "complete": all(one.is_done and not one.problem for one in states.values()), "seconds": round(seconds, 3),
        "records": sum(one.records for one in states.values()), "bytes": sum(one.bytes for one in states.values()),
        "partitions": [
            {
                "topic": topic, "target_topic": one.route.target_topic, "partition": index, "next_source": one.next_source,
                "target_end": None if one.progress is None else one.progress.target_end, "behind": one.behind,
                "unstable": max(0, one.high_watermark - one.end), "records": one.records, "bytes": one.bytes, "lost": one.lost,
                "repeats": one.repeats, "problem": one.problem,
            }
            for (topic, index), one in sorted(states.items())
        ],
    }  # fmt: skip
