"""Fetch sessions: partitions with nothing new are not looked at, and nobody can tell."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_sidecar.apis.a01_fetch import handle
from kafka_sidecar.apis.api import Call
from kafka_sidecar.apis.state.fetch_session_cache import WALK_SECONDS
from kafka_sidecar.partition.partition import TAIL_IDLE_SECONDS, Partition
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kafka_sidecar.wire.records import split_batches
from tests.apis.test_produce import NAME, TOPIC_ID, Setup
from tests.support.batches import batch
from tests.support.partitions import Told

PARTITIONS = 2


@dataclass
class Consumer:
    """It follows all partitions in one session, as Java's consumers do: a request names what has moved."""

    setup: Setup
    session_id: int = 0
    epoch: int = 0
    offsets: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    epochs: list[int] = field(default_factory=lambda: [0] * PARTITIONS)  # of the leader that it knows
    moved: set[int] = field(default_factory=lambda: set(range(PARTITIONS)))

    def begin(self, wait: float) -> Any:
        wanted = [
            FetchPartition(
                partition=one,
                fetch_offset=self.offsets[one],
                partition_max_bytes=10**6,
                current_leader_epoch=self.epochs[one],
            )
            for one in sorted(self.moved)
        ]
        request = FetchRequest(
            topics=[FetchTopic(topic_id=TOPIC_ID, partitions=wanted)] if wanted else [],
            max_wait_ms=round(wait * 1000),
            min_bytes=1,
            max_bytes=10**6,
            session_id=self.session_id,
            session_epoch=self.epoch,
        )
        self.moved.clear()
        return handle(self.setup.services, Call(13, "test", cast(Any, self.setup), memoryview(b""), 0), request)

    async def fetch(self, wait: float = 0.0) -> dict[int, tuple[ErrorCode, int, int, bytes]]:
        begun = self.begin(wait)
        async with asyncio.timeout(10):
            answer = begun if isinstance(begun, FetchResponse) else await begun
        self.session_id, self.epoch = answer.session_id, self.epoch + 1
        told = {}
        for topic in answer.responses:
            for part in topic.partitions:
                records = b"".join(part.records or ())
                for header, _ in split_batches(records):
                    self.offsets[part.partition_index] = header.base_offset + header.offset_count
                    self.moved.add(part.partition_index)
                told[part.partition_index] = (part.error_code, part.high_watermark, part.log_start_offset, records)
        return told

    def seek(self, index: int, offset: int) -> None:
        self.offsets[index] = offset
        self.moved.add(index)

    def looks_at_all(self) -> None:
        """With the next request."""
        session = self.setup.services.sessions._sessions.get(self.session_id)
        if session is not None:
            session.walked_at = -WALK_SECONDS


KINDS = ("produce", "foreign", "start moves", "end", "forgotten", "seek", "seek end", "epoch", "fetch", "fetch")
ACTIONS = st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, PARTITIONS - 1)), min_size=3, max_size=25)


async def _settled(setup: Setup, consumers: Sequence[Consumer]) -> None:
    """What consumers will ask for is here: how much of it has come by then is no matter of sessions."""
    for index in range(PARTITIONS):
        partition = setup.table.get(NAME.partition(index))
        await partition.confirmed_end()
        for offset in {consumer.offsets[index] for consumer in consumers}:
            async with asyncio.timeout(5):
                while not _has_all(partition, offset):
                    changed = asyncio.Event()
                    partition.watch(Told(changed))
                    await changed.wait()


def _has_all(partition: Partition, offset: int) -> bool:
    run = partition.read(offset, 1_000_000, at_least_one=True, since=0)
    return run is not None and (run.error is not ErrorCode.NONE or run.next_offset >= partition.end_offset)


async def _play(actions: list[tuple[str, int]]) -> None:
    setup = Setup()
    await setup.produce(*[batch(b"first")] * PARTITIONS)
    short, whole = Consumer(setup), Consumer(setup)
    for action, index in [*actions, ("fetch", 0)]:
        partition = setup.table.get(NAME.partition(index))
        match action:
            case "produce":
                await setup.produce(*[batch(b"ours") if one == index else None for one in range(PARTITIONS)])
            case "foreign":
                setup.logs[NAME.partition(index)].write(batch(b"theirs"))
            case "start moves":
                partition._log_start.move(min(partition.log_start + 1, partition.end_offset))
            case "end":
                setup.table.forget(NAME.partition(index))
                await setup.table.get(NAME.partition(index)).opened()
            case "forgotten":
                setup.services.catalog.forgotten += 1
            case "seek":
                for consumer in (short, whole):
                    consumer.seek(index, 0)
            case "epoch":  # of a leader that never was
                for consumer in (short, whole):
                    consumer.epochs[index] = 1 - consumer.epochs[index]
                    consumer.moved.add(index)
            case "seek end":
                for consumer in (short, whole):
                    consumer.seek(index, partition.end_offset)
            case "fetch":
                await _settled(setup, (short, whole))
                whole.looks_at_all()
                assert await short.fetch() == await whole.fetch()
    await setup.table.close()


@settings(max_examples=150)
@given(ACTIONS)
def test_a_session_answers_as_one_that_looks_at_everything(actions: list[tuple[str, int]]) -> None:
    asyncio.run(_play(actions))


async def at_the_end() -> tuple[Setup, Consumer]:
    """A consumer that has read all there is, and been told all there is to be told."""
    setup = Setup()
    await setup.produce(*[batch(b"first")] * PARTITIONS)
    consumer = Consumer(setup)
    while await consumer.fetch():
        pass
    return setup, consumer


class Looks:
    """The partitions that fetches have looked at."""

    def __init__(self, monkeypatch: Any) -> None:
        self.at: list[Partition] = []
        read = Partition.read

        def counted(partition: Partition, *how: Any, **named: Any) -> Any:
            self.at.append(partition)
            return read(partition, *how, **named)

        monkeypatch.setattr(Partition, "read", counted)


async def test_only_what_has_changed_is_looked_at_and_what_comes_wakes_the_consumer(monkeypatch: Any) -> None:
    setup, consumer = await at_the_end()
    looks = Looks(monkeypatch)
    assert await consumer.fetch(wait=0.01) == {}
    assert looks.at == []
    waiting = asyncio.ensure_future(consumer.fetch(wait=5))
    await asyncio.sleep(0.01)
    await setup.produce(None, batch(b"news"))
    told = await waiting
    assert list(told) == [1]
    assert set(looks.at) == {setup.table.get(NAME.partition(1))}
    await setup.table.close()


async def test_a_consumer_that_was_away_for_long_has_its_partitions_read_again() -> None:
    setup, consumer = await at_the_end()
    for index in range(PARTITIONS):
        setup.table.get(NAME.partition(index))._tail.stop()  # nobody has waited for it
    setup.logs[NAME.partition(1)].write(batch(b"theirs"))
    told = await consumer.fetch(wait=5)
    assert list(told) == [1]
    await setup.table.close()


async def test_a_topic_that_is_gone_is_told_to_a_consumer_that_waits_at_its_end() -> None:
    setup, consumer = await at_the_end()
    setup.services.catalog.gone(NAME)
    told = await consumer.fetch(wait=5)
    assert {error for error, *_ in told.values()} == {ErrorCode.UNKNOWN_TOPIC_ID}
    await setup.table.close()


async def test_the_tail_of_a_quiet_partition_runs_on_beside_a_busy_one() -> None:
    setup, consumer = await at_the_end()
    quiet = setup.table.get(NAME.partition(1))
    for _ in range(3):
        quiet._tail.wanted_at -= 2 * TAIL_IDLE_SECONDS  # so long ago it was asked for last
        await setup.produce(batch(b"busy"))
        assert list(await consumer.fetch()) == [0], "it never waits, so it watches nothing"
        quiet.tick(asyncio.get_running_loop().time())
        assert quiet._tail.running
    await setup.table.close()


async def test_once_in_a_while_all_are_looked_at(monkeypatch: Any) -> None:
    setup, consumer = await at_the_end()
    looks = Looks(monkeypatch)
    consumer.looks_at_all()
    assert await consumer.fetch(wait=0.01) == {}
    assert len(set(looks.at)) == PARTITIONS
    await setup.table.close()
