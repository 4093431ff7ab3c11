"""Rows of Spark tasks written into topics: each partition's in their order, in transactions with the progress and the
record of offsets.

A task has all rows that a round has of a partition. Whatever goes wrong is an outcome: another round begins behind what
was committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from kafka_sidecar.kafka_client.client import connected
from kafka_sidecar.kafka_client.cluster import Cluster
from kafka_sidecar.kafka_client.topics import Partition
from kafka_sidecar.pipelines.copying.batches import Batches
from kafka_sidecar.pipelines.copying.copied_batches import CopiedBatch
from kafka_sidecar.pipelines.copying.delivery import Progress, Route
from kafka_sidecar.pipelines.copying.outcome import MOST_LEFT_OUT, Outcome, failed
from kafka_sidecar.pipelines.copying.target import Target

if TYPE_CHECKING:
    from pyspark.sql import Row

# Called with the text about a record or entry that can't be written and is left out.
LeaveOut = Callable[[str], None]
# Makes batches from the rows of one partition, from a source number on. The spans of the batches hold source numbers.
BatchesOf = Callable[["Iterator[Row]", int, LeaveOut], Iterator[CopiedBatch]]


@dataclass(frozen=True, slots=True)
class Goal:
    """What a round does with a partition."""

    route: Route
    known: Progress | None
    first: int = 0  # source number at which a partition without progress begins
    # Every record before this source number is in the rows of this round or an earlier one; 0 where only the rows
    # themselves show how far the source has been read.
    end: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WritingTask:
    """For Spark's mapPartitions, over rows sorted by topic, partition and their order in it."""

    target: Cluster
    client_id: str
    into_existing: bool
    goals: Mapping[Partition, Goal]
    batches_of: BatchesOf

    def __call__(self, rows: Iterable[Row]) -> Iterator[Outcome]:
        return iter(asyncio.run(self._write(rows)))

    async def _write(self, rows: Iterable[Row]) -> list[Outcome]:
        found = []
        for at, of_partition in groupby(rows, key=_partition):
            if at not in self.goals:  # the partition is copied, or was given up
                continue
            writing = _Writing(self, self.goals[at])
            try:
                await writing.write(of_partition)
            except Exception as error:
                found.append(failed(writing.outcome, error))
            else:
                found.append(writing.outcome)
        return found


def _partition(row: Any) -> Partition:
    return row.topic, row.partition


class _Writing:
    def __init__(self, task: WritingTask, goal: Goal) -> None:
        self._task = task
        self._goal = goal
        self._outcome = Outcome(topic=goal.route.topic, partition=goal.route.partition, progress=goal.known)
        self._left_out: list[str] = []

    @property
    def outcome(self) -> Outcome:
        return replace(self._outcome, left_out=tuple(self._left_out))

    async def write(self, rows: Iterator[Row]) -> None:
        task, goal = self._task, self._goal
        async with connected(task.target, task.client_id) as kafka:
            target = await Target.open(kafka, goal.route)
            try:
                progress, _ = await target.go_on(goal.known, goal.first, task.into_existing)
                self._outcome = replace(self._outcome, progress=progress)
                writer = Batches(target, self._outcome, self._stored)
                end = progress.next_source
                batches = task.batches_of(rows, end, self._leave_out)
                fault: Exception | None = None
                while batch := _next(batches):
                    if isinstance(batch, Exception):
                        fault = batch
                        break
                    await writer.add(batch)
                    end = batch.spans[-1].source + batch.spans[-1].length
                await writer.passed(
                    end if fault else max(end, goal.end), ends_now=True
                )  # after a fault, commit what was copied before it
                if fault:
                    raise fault
            except BaseException:
                await target.give_up()
                raise

    def _leave_out(self, text: str) -> None:
        if len(self._left_out) < MOST_LEFT_OUT:
            self._left_out.append(text)

    def _stored(self, progress: Progress, records: int, size: int) -> None:
        self._outcome = self._outcome.with_stored(progress, records, size)


def _next(batches: Iterator[CopiedBatch]) -> CopiedBatch | Exception | None:
    """What could not be read is no fault of who writes."""
    try:
        return next(batches, None)
    except Exception as error:
        return error
