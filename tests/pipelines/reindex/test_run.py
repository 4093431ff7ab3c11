"""When a partition is the mirror's, and when it is refused."""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.kafka_client.cluster import Cluster
from kafka_sidecar.kafka_client.topics import Partition
from kafka_sidecar.pipelines.copying.delivery import Progress, Route
from kafka_sidecar.pipelines.copying.names import MirrorName
from kafka_sidecar.pipelines.copying.places import number_of
from kafka_sidecar.pipelines.copying.record import Recorded
from kafka_sidecar.pipelines.mirror.plan import MirrorOptions
from kafka_sidecar.pipelines.mirror.run import Mirror, PartitionState
from kafka_sidecar.pipelines.reindex.heads import Head
from kafka_sidecar.pipelines.reindex.run import Reindex
from kafka_sidecar.pipelines.reindex.source import PulsarSource
from kafka_sidecar.pulsar.entry import LedgerInfo, LogStats, Position
from kafka_sidecar.pulsar.errors import Unavailable

AT: Partition = ("t", 0)
NAME = MirrorName.of("n")


class Pulsar:
    """What is asked of an opened source."""

    def __init__(self, log: object = None, refusal: str = "") -> None:
        self._log = log
        self._refusal = refusal

    async def not_the_same(self, _topic: str, _topic_id: str) -> str:
        if isinstance(self._log, Exception):
            raise self._log
        return self._refusal

    def log(self, *_: object) -> object:
        return self._log


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def begun(
    progress: Progress | None = None, accept_loss: bool = False, with_places: bool = False
) -> tuple[Reindex, PartitionState, Clock]:
    clock, cluster = Clock(), Cluster(bootstrap="nowhere:1")
    options = MirrorOptions(
        name=NAME, source=cluster, target=cluster, topics=("t",), prefix="p", accept_loss=accept_loss
    )
    state = PartitionState(Route(mirror=NAME, topic="t", target_topic="pt", partition=0), first=3, progress=progress)
    recorded = Recorded(with_places={AT} if with_places else set())
    mirror = Mirror(None, options, lambda _: None, clock=clock, partitions={AT: state}, recorded=recorded)
    return Reindex(mirror, PulsarSource(url="pulsar://x:1", admin_url="http://x:1"), lambda _: None), state, clock


def head(first: int = 1, last: int = 4, first_offset: int | None = 0) -> Head:
    stats = LogStats(tuple(LedgerInfo(ledger, 10, 100) for ledger in range(first, last + 2)))
    return Head(stats, Position(first, 0), Position(last, 9), first_offset)


def take_up(reindex: Reindex, found: Head | None) -> None:
    reindex.take_up(AT, reindex.mirror.partitions[AT], found)


def test_a_partition_without_a_head_is_the_mirrors() -> None:
    reindex, state, _ = begun()
    take_up(reindex, None)
    assert (reindex.heads, reindex.has_none_left, state.refusal) == ({}, {AT}, "")


def test_one_with_a_head_is_not_until_that_is_copied() -> None:
    reindex, state, _ = begun()
    take_up(reindex, head())
    assert list(reindex.heads) == [AT]
    state.progress = Progress(number_of(Position(3, 0)), 7)
    take_up(reindex, head())
    assert list(reindex.heads) == [AT]
    assert not reindex.has_none_left
    state.progress = Progress(0, 9)
    assert reindex.mirror.recorded is not None
    reindex.mirror.recorded.with_places.add(AT)  # a round has begun it
    take_up(reindex, head())
    assert (reindex.heads, reindex.has_none_left, state.refusal) == ({}, {AT}, "")


def test_a_head_that_a_mirror_of_this_name_has_passed_over_is_said() -> None:
    reindex, state, _ = begun(Progress(0, 0))
    take_up(reindex, head())
    assert "begin with another --name" in state.refusal
    assert not reindex.has_none_left


def test_what_was_removed_before_it_was_copied_is_lost_only_where_that_is_accepted() -> None:
    copied = Progress(number_of(Position(1, 5)), 7)
    for left, behind in ((head(first=2), number_of(Position(2, 0))), (None, 3)):
        reindex, state, _ = begun(copied, with_places=True)
        take_up(reindex, left)
        assert "entries from 1:5:0 on may have been removed" in state.refusal
        assert not reindex.has_none_left
        reindex, state, _ = begun(copied, accept_loss=True, with_places=True)
        take_up(reindex, left)
        assert (state.lost, state.progress, state.refusal) == (((copied.next_source, behind),), Progress(behind, 7), "")


def test_a_log_without_any_index_is_done_when_all_of_it_is_copied_and_goes_on_when_more_comes() -> None:
    reindex, state, _ = begun(Progress(number_of(Position(4, 10)), 7), with_places=True)
    take_up(reindex, head(first_offset=None))
    assert state.is_drained
    assert state.is_done
    assert AT not in reindex.has_none_left
    take_up(reindex, head(last=5, first_offset=None))
    assert not state.is_done


async def test_another_topic_of_the_same_name_is_refused() -> None:
    reindex, state, _ = begun()
    await reindex.look_at(Pulsar(refusal="it is another"), AT, asyncio.Semaphore(1))  # type: ignore[arg-type]
    assert state.refusal == "it is another"


async def test_a_partition_that_can_not_be_looked_at_is_given_up_in_the_end() -> None:
    reindex, state, clock = begun()
    away = Pulsar(Unavailable("the broker is away"))
    for after, is_given_up in ((0, False), (299, False), (2, True)):
        clock.now += after
        await reindex.look_at(away, AT, asyncio.Semaphore(1))  # type: ignore[arg-type]
        assert bool(state.problem) is is_given_up
    assert "the broker is away" in state.problem
    assert AT not in reindex.has_none_left


@pytest.mark.parametrize("first_offset", [0, 50])
def test_when_an_index_comes_behind_what_was_copied_the_mirror_goes_on_there(first_offset: int) -> None:
    reindex, state, _ = begun(Progress(number_of(Position(4, 10)), 7), with_places=True)
    take_up(reindex, head(first_offset=first_offset))
    reindex.copy(None, [AT])  # there is nothing for Spark to do
    assert state.progress == Progress(first_offset, 7)
    take_up(reindex, head(first_offset=first_offset))
    assert reindex.has_none_left == {AT}
