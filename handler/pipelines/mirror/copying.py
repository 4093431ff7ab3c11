"""What a Spark task does: source partitions, several at a time, each for a slice of time.

Whatever goes wrong here is an outcome, never an exception: Spark would take the healthy partitions of the stage down with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from handler.errors import ProtocolError, SidecarError
from handler.pipelines.kafka.client import TRANSIENT, KafkaClient, Refused, connected
from handler.pipelines.kafka.cluster import Cluster
from handler.pipelines.kafka.copied_batches import CopiedBatch, FetchedRecords
from handler.pipelines.kafka.reading import fetch
from handler.pipelines.kafka.topics import EARLIEST, LATEST, offsets
from handler.pipelines.mirror.delivery import ForeignProgress, Progress, Route
from handler.pipelines.mirror.target import Target
from handler.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

# While one partition waits for a broker another has the processor.
AT_A_TIME: Final = 4
# A transaction ends when it has so much, or after so long: readers of committed records wait for its end.
TRANSACTION_BYTES: Final = 16 * 1_024 * 1_024
TRANSACTION_SECONDS: Final = 2.0
# The record of a transaction's runs is well below what any topic takes.
TRANSACTION_RUNS: Final = 2_000
# No slice takes longer than its time and this, whatever hangs.
GRACE_SECONDS: Final = 150.0
RETRY_SECONDS: Final = 1.0
CLIENT_ID: Final = "kafka-sidecar-mirror"
FENCED: Final = frozenset((ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING))


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """What one partition has to do in one round."""

    route: Route
    source: Cluster
    target: Cluster
    known: Progress | None  # from the record of runs: what is committed may have expired
    end: int  # of the source: with this the partition has caught up
    seconds: float
    exactly_once: bool = True
    accept_loss: bool = False
    into_existing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    topic: str
    partition: int
    progress: Progress | None = None
    records: int = 0
    bytes: int = 0
    lost: tuple[int, int] | None = None  # source offsets that were removed before they could be copied
    repeats: tuple[int, int] | None = None  # target offsets that may be there twice
    trouble: str = ""  # another round may mend it
    is_fenced: bool = False  # somebody else has begun with this partition, or its transaction has timed out
    problem: str = ""  # nothing will but somebody


class CanNotCopy(SidecarError):
    """One sentence for whoever runs the mirror."""


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
        except (CanNotCopy, ForeignProgress) as error:
            return replace(copying.outcome, problem=str(error))
        except Refused as error:
            if error.code in FENCED:  # to begin again would fence the other
                return replace(copying.outcome, trouble=str(error), is_fenced=True)
            if not error.is_mended_by_beginning_again:
                return replace(copying.outcome, problem=str(error))
            trouble = str(error)
        except (ProtocolError, *TRANSIENT) as error:
            trouble = str(error) or type(error).__name__
        except Exception as error:
            log.exception("copying partition %d of topic %s", slice_.route.partition, slice_.route.topic)
            return replace(copying.outcome, problem=f"{type(error).__name__}: {error}")
        if loop.time() + RETRY_SECONDS >= until:
            return replace(copying.outcome, trouble=trouble)
        await asyncio.sleep(RETRY_SECONDS)


class _Copying:
    def __init__(self, slice_: Slice) -> None:
        self._slice = slice_
        self.outcome = Outcome(topic=slice_.route.topic, partition=slice_.route.partition, progress=slice_.known)

    async def go_on(self, source: KafkaClient, kafka: KafkaClient) -> None:
        """From the progress on, with a producer of its own."""
        target = await Target.open(kafka, self._slice.route, self._slice.exactly_once)
        try:
            begin = await self._begin(source, kafka, target)
            # To connect may take longer than a slice has: what was connected for is done.
            until = asyncio.get_running_loop().time() + self._slice.seconds
            await self._copy(source, _Batches(target, self), begin, until)
        except BaseException:
            await target.give_up()
            raise

    async def _begin(self, source: KafkaClient, kafka: KafkaClient, target: Target) -> int:
        """The source offset to go on from. CanNotCopy where that is not what was copied from, or to."""
        slice_, route = self._slice, self._slice.route
        known = [one for one in (await target.progress(), slice_.known) if one is not None]
        progress = max(known, key=lambda one: one.next_source, default=None)
        source_at, target_at = (route.topic, route.partition), (route.target_topic, route.partition)
        first = (await offsets(source, [source_at], EARLIEST))[source_at]
        target_end = (await offsets(kafka, [target_at], LATEST))[target_at]
        if progress is None:
            if target_end and not slice_.into_existing:
                raise CanNotCopy(foreign_records(route, target_end))
            # Also if nothing is there to be copied: groups at the end of an empty log have a place.
            await target.begin(with_copies=False)
            self.stored(await target.commit(first, target_end), 0, 0)
            return first
        self.outcome = replace(self.outcome, progress=progress)
        if target_end < progress.target_end:
            raise CanNotCopy(
                f"partition {route.partition} of topic {route.target_topic} ends at {target_end} and was written up to"
                f" {progress.target_end}: the topic was made anew. Begin with another --name"
            )
        if not slice_.exactly_once and target_end > progress.target_end:
            self.outcome = replace(self.outcome, repeats=(progress.target_end, target_end))
        if first <= progress.next_source:
            return progress.next_source
        if not slice_.accept_loss:
            raise CanNotCopy(
                f"the source has removed offsets {progress.next_source} to {first - 1} of partition {route.partition} of topic"
                f" {route.topic} before they were copied: go on without them with --accept-loss"
            )
        self.outcome = replace(self.outcome, lost=(progress.next_source, first))
        return first

    async def _copy(self, source: KafkaClient, batches: _Batches, begin: int, until: float) -> None:
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
                coming = fetching(at)  # while these are written
                for batch in fetched.batches:
                    await batches.add(batch)
                await batches.passed(at, ends_now=is_empty or at >= self._slice.end)
                if is_empty and loop.time() >= until:
                    break
            await batches.passed(at, ends_now=True)
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)

    @property
    def progress(self) -> Progress:
        assert self.outcome.progress is not None
        return self.outcome.progress

    def stored(self, progress: Progress, records: int, size: int) -> None:
        outcome = self.outcome
        self.outcome = replace(outcome, progress=progress, records=outcome.records + records, bytes=outcome.bytes + size)


class _Batches:
    """Batches on their way, in transactions that begin with the first record and end in time."""

    def __init__(self, target: Target, copying: _Copying) -> None:
        self._target = target
        self._copying = copying
        self.has_stored = False
        self._repeats = copying.outcome.repeats
        self._is_open = False
        self._ends_at = 0.0
        self._bytes = self._records = self._runs = 0

    async def add(self, batch: CopiedBatch) -> None:
        if not self._is_open:  # only now: an open transaction holds back readers
            await self._target.begin()
            self._is_open = True
            self._ends_at = asyncio.get_running_loop().time() + TRANSACTION_SECONDS
        await self._target.produce(batch)
        self._bytes, self._records, self._runs = (
            self._bytes + len(batch.data), self._records + batch.record_count, self._runs + len(batch.spans),
        )  # fmt: skip
        is_late = asyncio.get_running_loop().time() >= self._ends_at
        if is_late or self._bytes >= TRANSACTION_BYTES or self._runs >= TRANSACTION_RUNS:
            last = batch.spans[-1]
            await self._commit(last.source + last.length)

    async def passed(self, offset: int, ends_now: bool) -> None:
        """All before this source offset is on its way, or needs no copy. It is stored at the latest when there is nothing to wait for."""
        if ends_now and (self._is_open or offset > self._copying.progress.next_source):
            if not self._is_open:
                await self._target.begin(with_copies=False)
            await self._commit(offset)

    async def _commit(self, next_source: int) -> None:
        progress = await self._target.commit(next_source, self._copying.progress.target_end, self._repeats)
        self._copying.stored(progress, self._records, self._bytes)
        self.has_stored = True
        self._repeats = None
        self._is_open = False
        self._bytes = self._records = self._runs = 0


def foreign_records(route: Route, target_end: int) -> str:
    return (
        f"partition {route.partition} of topic {route.target_topic} has {target_end} offsets in the target that this mirror has not"
        " written: take another --name or --prefix, or say --into-existing to add to it"
    )
