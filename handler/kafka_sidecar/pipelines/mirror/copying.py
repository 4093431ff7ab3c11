"""What a Spark task does: source partitions, several at a time, each for a slice of time.

Whatever goes wrong here is an outcome, never an exception: Spark would take the healthy partitions of the stage down
with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from kafka_sidecar.errors import CommandFailed
from kafka_sidecar.kafka_client.client import KafkaClient, connected
from kafka_sidecar.kafka_client.cluster import Cluster
from kafka_sidecar.kafka_client.topics import EARLIEST, offsets
from kafka_sidecar.pipelines.copying.batches import Batches
from kafka_sidecar.pipelines.copying.copied_batches import FetchedRecords
from kafka_sidecar.pipelines.copying.delivery import Progress, Route
from kafka_sidecar.pipelines.copying.outcome import Outcome, failed
from kafka_sidecar.pipelines.copying.places import record_place
from kafka_sidecar.pipelines.copying.reading import fetch
from kafka_sidecar.pipelines.copying.target import Target

log = logging.getLogger(__name__)

# Partitions that are copied at a time: while one waits for a broker, another uses the processor.
AT_A_TIME: Final = 4
# A slice is cancelled 150 s after its own time is over, whatever hangs.
GRACE_SECONDS: Final = 150.0
RETRY_SECONDS: Final = 1.0
CLIENT_ID: Final = "kafka-sidecar-mirror"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """What one partition has to do in one round."""

    route: Route
    source: Cluster
    target: Cluster
    known: Progress | None  # from the record of runs, because the committed offset may have expired
    end: int  # source offset; a partition that has reached it has caught up
    seconds: float
    exactly_once: bool = True
    accept_loss: bool = False
    into_existing: bool = False


def copy_all(slices: Iterable[Slice]) -> Iterator[Outcome]:
    """For Spark's flatMap."""
    return iter(asyncio.run(_copy_all(list(slices))))


async def _copy_all(slices: list[Slice]) -> list[Outcome]:
    gate = asyncio.Semaphore(AT_A_TIME)

    async def one(slice_: Slice) -> Outcome:
        async with gate:
            return await copy(slice_)

    return list(await asyncio.gather(*map(one, slices)))


async def copy(slice_: Slice) -> Outcome:
    """Copy one partition until its end or the end of its time."""
    copying = _Copying(slice_)
    loop = asyncio.get_running_loop()
    until = loop.time() + slice_.seconds
    while True:
        try:
            async with asyncio.timeout(slice_.seconds + GRACE_SECONDS):
                async with connected(slice_.source, CLIENT_ID) as source, connected(slice_.target, CLIENT_ID) as target:
                    await copying.go_on(source, target)
            return copying.outcome
        except Exception as error:
            outcome = failed(copying.outcome, error)
        if (
            outcome.problem or outcome.is_fenced or loop.time() + RETRY_SECONDS >= until
        ):  # a fenced producer must not begin again: it would fence the other writer
            return outcome
        await asyncio.sleep(RETRY_SECONDS)


class _Copying:
    def __init__(self, slice_: Slice) -> None:
        self._slice = slice_
        self.outcome = Outcome(topic=slice_.route.topic, partition=slice_.route.partition, progress=slice_.known)

    async def go_on(self, source: KafkaClient, kafka: KafkaClient) -> None:
        """From the progress on, with a producer of its own."""
        target = await Target.open(kafka, self._slice.route, self._slice.exactly_once)
        try:
            begin = await self._begin(source, target)
            # The time of a slice begins behind this: connecting may take longer than the slice, and would else be for
            # nothing.
            until = asyncio.get_running_loop().time() + self._slice.seconds
            await self._copy(source, Batches(target, self.outcome, self._stored), begin, until)
        except BaseException:
            await target.give_up()
            raise

    async def _begin(self, source: KafkaClient, target: Target) -> int:
        """The source offset to go on from. CommandFailed where that is not what was copied from, or to."""
        slice_, route = self._slice, self._slice.route
        source_at = (route.topic, route.partition)
        first = (await offsets(source, [source_at], EARLIEST))[source_at]
        progress, target_end = await target.go_on(slice_.known, first, slice_.into_existing)
        self.outcome = replace(self.outcome, progress=progress)
        place = record_place(progress.next_source)
        if place is not None:
            raise CommandFailed(
                f"entries without an index were copied up to {place}: run `pipeline reindex` of this name to their end"
            )
        if not slice_.exactly_once and target_end > progress.target_end:
            self.outcome = replace(self.outcome, repeats=(progress.target_end, target_end))
        if first <= progress.next_source:
            return progress.next_source
        if not slice_.accept_loss:
            raise CommandFailed(
                f"the source has removed offsets {progress.next_source} to {first - 1} of partition {route.partition} "
                f"of topic {route.topic} before they were copied: go on without them with --accept-loss"
            )
        self.outcome = replace(self.outcome, lost=(progress.next_source, first))
        return first

    async def _copy(self, source: KafkaClient, batches: Batches, begin: int, until: float) -> None:
        route, loop = self._slice.route, asyncio.get_running_loop()
        leader = await source.leader(route.topic, route.partition)

        def fetching(offset: int) -> asyncio.Task[FetchedRecords]:
            return asyncio.create_task(fetch(source, leader, route.topic, route.partition, offset))

        at = begin
        coming = fetching(at)
        try:
            while at < self._slice.end and (loop.time() < until or not batches.has_stored):
                fetched = await coming
                is_empty = fetched.next_offset == at
                at = fetched.next_offset
                coming = fetching(at)  # the next Fetch is in flight while these batches are written
                for batch in fetched.batches:
                    await batches.add(batch)
                await batches.passed(at, ends_now=is_empty or at >= self._slice.end)
                if is_empty and loop.time() >= until:
                    break
            await batches.passed(at, ends_now=True)
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)

    def _stored(self, progress: Progress, records: int, size: int) -> None:
        self.outcome = self.outcome.with_stored(progress, records, size)
