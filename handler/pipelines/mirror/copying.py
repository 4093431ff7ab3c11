"""What a Spark task does: source partitions, several at a time, each for a slice of time.

Whatever goes wrong here is an outcome, never an exception: Spark would take the healthy partitions of the stage down with it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from handler.errors import SidecarError
from handler.pipelines.kafka.client import TRANSIENT, KafkaClient, Refused, connected
from handler.pipelines.kafka.cluster import Cluster
from handler.pipelines.kafka.reading import Fetched, fetch
from handler.pipelines.kafka.topics import EARLIEST, LATEST, offsets
from handler.pipelines.mirror.target import Progress, Route, Target, TargetWithoutTransactions
from handler.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

# While one partition waits for a broker another has the processor.
AT_A_TIME: Final = 4
# A transaction ends when it has so much, or after so long: readers of committed records wait for its end.
TRANSACTION_BYTES: Final = 16 * 1_024 * 1_024
TRANSACTION_SECONDS: Final = 2.0
# The record of a transaction's runs is well below what any topic takes.
TRANSACTION_RUNS: Final = 2_000
# No wait of a slice is longer, whatever hangs.
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
    """For Spark's mapPartitions."""
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
                await copying.go_on(until)
            return copying.outcome
        except (CanNotCopy, ValueError) as error:
            return replace(copying.outcome, problem=str(error))
        except Refused as error:
            if error.code in FENCED:
                return replace(copying.outcome, trouble=str(error), is_fenced=True)  # to begin again would fence the other
            if not error.is_retriable:
                return replace(copying.outcome, problem=str(error))
            trouble = str(error)
        except TRANSIENT as error:
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

    async def go_on(self, until: float) -> None:
        """From the progress on, with a producer of its own."""
        slice_ = self._slice
        async with connected(slice_.source, CLIENT_ID) as source, connected(slice_.target, CLIENT_ID) as kafka:
            target = await (Target if slice_.exactly_once else TargetWithoutTransactions).open(kafka, slice_.route)
            try:
                begin = await self._begin(source, kafka, target)
                await self._copy(source, target, begin, until)
            except BaseException:
                await _give_up(target)
                raise

    async def _begin(self, source: KafkaClient, kafka: KafkaClient, target: Target) -> int:
        """The source offset to go on from. CanNotCopy where that is not what was copied from, or to."""
        slice_, route = self._slice, self._slice.route
        committed = await target.progress()
        progress = max((one for one in (committed, slice_.known) if one is not None), key=lambda one: one.next_source, default=None)
        source_at, target_at = (route.topic, route.partition), (route.target_topic, route.partition)
        first = (await offsets(source, [source_at], EARLIEST))[source_at]
        target_end = (await offsets(kafka, [target_at], LATEST))[target_at]
        if progress is None:
            if target_end and not slice_.into_existing:
                raise CanNotCopy(
                    f"partition {route.partition} of topic {route.target_topic} has {target_end} offsets in the target that this"
                    " mirror has not written: take another --name or --prefix, or say --into-existing to add to it"
                )
            self._at(Progress(first, target_end))
            await self._note(target, first, target_end)
            return first
        if target_end < progress.target_end:
            raise CanNotCopy(
                f"partition {route.partition} of topic {route.target_topic} ends at {target_end} and was written up to"
                f" {progress.target_end}: the topic was made anew. Begin with another --name"
            )
        if not slice_.exactly_once and target_end > progress.target_end:
            self.outcome = replace(self.outcome, repeats=(progress.target_end, target_end))
        self._at(progress)
        if first > progress.next_source:
            if not slice_.accept_loss:
                raise CanNotCopy(
                    f"the source has removed offsets {progress.next_source} to {first - 1} of partition {route.partition} of topic"
                    f" {route.topic} before they were copied: go on without them with --accept-loss"
                )
            self.outcome = replace(self.outcome, lost=(progress.next_source, first))
            return first
        return progress.next_source

    async def _note(self, target: Target, next_source: int, target_end: int) -> None:
        """Where the copy begins, also if nothing is there to be copied: groups at the end of an empty log have a place."""
        await target.begin()
        await target.commit(next_source, target_end)

    async def _copy(self, source: KafkaClient, target: Target, begin: int, until: float) -> None:
        slice_, route = self._slice, self._slice.route
        loop = asyncio.get_running_loop()
        leader = await source.leader(route.topic, route.partition)
        at = stored = begin

        def fetching(offset: int) -> asyncio.Task[Fetched]:
            return asyncio.create_task(fetch(source, leader, route.topic, route.partition, offset))

        coming = fetching(at)
        try:
            while stored < slice_.end and loop.time() < until:
                fetched = await coming
                if fetched.records.next_offset == at:
                    coming = fetching(at)
                    continue
                # Only now: an open transaction holds back readers of the target, and the source may have nothing for a while.
                await target.begin()
                ends_at, size, runs, records = loop.time() + TRANSACTION_SECONDS, 0, 0, 0
                while True:
                    at = fetched.records.next_offset
                    coming = fetching(at)
                    for batch in fetched.records.batches:
                        await target.produce(batch)
                        size, records, runs = size + len(batch.data), records + batch.record_count, runs + len(batch.spans)
                    is_full = size >= TRANSACTION_BYTES or runs >= TRANSACTION_RUNS or loop.time() >= ends_at
                    if is_full or at >= slice_.end:
                        break
                    fetched = await coming
                    if fetched.records.next_offset == at:
                        break
                repeats = self.outcome.repeats if stored == begin else None
                copied = await target.commit(at, self._progress.target_end, repeats)
                stored = at
                self._at(Progress(at, copied.target_end))
                self.outcome = replace(self.outcome, records=self.outcome.records + records, bytes=self.outcome.bytes + size)
        finally:
            coming.cancel()
            await asyncio.gather(coming, return_exceptions=True)

    @property
    def _progress(self) -> Progress:
        assert self.outcome.progress is not None
        return self.outcome.progress

    def _at(self, progress: Progress) -> None:
        self.outcome = replace(self.outcome, progress=progress)


async def _give_up(target: Target) -> None:
    """What is open need not hold back readers until it times out."""
    try:
        await target.close()
        async with asyncio.timeout(5):
            await target.abort()
    except (Refused, *TRANSIENT):
        pass
