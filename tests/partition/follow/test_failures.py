"""Errors of the sidecar itself, at an entry, in a reader, a writer or an answer: they end what they must and nothing
else.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafka_sidecar.partition.fold.fold import Fold, Folded
from kafka_sidecar.partition.log.entries import Content
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.wire.error_code import ErrorCode
from tests.model.connections import Writer
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import Told, append, fetch, open_partition, open_table, read_all


@pytest.fixture
def broken_fold(monkeypatch: pytest.MonkeyPatch) -> list[Position]:
    """Positions at which the fold fails, in a way that nobody thought of."""
    broken: list[Position] = []
    apply = Fold._apply

    def applied(self: Fold, position: Position, index: int, content: Content) -> Folded:
        folded = apply(self, position, index, content)
        if position in broken:
            raise ZeroDivisionError(position)
        return folded

    fold_own = Fold.append_own

    def folded(self: Fold, writer: bytes, number: int, ledger: int, entry: int, *rest: Any) -> int:
        if Position(ledger, entry) in broken:
            raise ZeroDivisionError(ledger, entry)
        return fold_own(self, writer, number, ledger, entry, *rest)

    monkeypatch.setattr(Fold, "_apply", applied)
    monkeypatch.setattr(Fold, "append_own", folded)
    return broken


async def test_an_entry_at_which_the_sidecar_fails_ends_the_partition_twice_and_is_then_unreadable(
    broken_fold: list[Position],
) -> None:
    log = MemoryLog()
    for number in range(4):
        log.write(batch(b"%d" % number))
    table = open_table(lambda _, name: log.named(name), "kafka-sidecar-process", replay_entries=4)
    broken_fold.append(log.entries[3].position)
    opened = set()
    for _ in range(3):
        partition = table.get("t")
        opened.add(partition)
        code = await partition.opened()
    assert len(opened) == 3
    assert code is ErrorCode.NONE
    found = [await fetch(partition, offset) for offset in (0, 1, 2, 3)]
    assert [run.error for run in found] == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE]
    assert (await append(partition, batch(b"4"))).base_offset == 4
    await table.close()


async def test_old_data_at_which_the_sidecar_fails_is_unreadable_too(broken_fold: list[Position]) -> None:
    log = MemoryLog()
    for number in range(200):
        log.write(batch(b"%d" % number))
    table = open_table(lambda _, name: log.named(name), "kafka-sidecar-process", replay_entries=4)
    broken_fold.append(log.entries[100].position)
    errors = []
    for _ in range(3):
        partition = table.get("t")
        assert await partition.opened() is ErrorCode.NONE
        run = None
        while run is None and partition.ended is None:
            run = partition.read(100, 1, at_least_one=True, since=0)
            await asyncio.sleep(0.005)
        errors.append(partition.ended or (run.error if run is not None else None))
    assert errors == [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.CORRUPT_MESSAGE]
    assert [(await fetch(partition, offset)).error for offset in (99, 101)] == [ErrorCode.NONE] * 2
    await table.close()


async def test_the_log_start_is_not_guessed_from_an_entry_that_was_given_up() -> None:
    log = MemoryLog()
    first = log.write(batch(*[b"v"] * 5))
    partition = open_partition(log)
    for _ in range(2):
        partition._failures.note("t-partition-0", first)
    assert await partition.opened() is ErrorCode.NONE
    assert partition.log_start == 0
    partition.close()


async def test_an_append_at_which_the_sidecar_fails_is_refused_and_can_be_sent_again(
    broken_fold: list[Position],
) -> None:
    log = MemoryLog()
    table = open_table(lambda _, name: log.named(name), "kafka-sidecar-process")
    await append(table.get("t"), batch(b"0"))
    broken_fold.append(Position(1, 1))
    for _ in range(2):
        assert (await append(table.get("t"), batch(b"1"))).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    broken_fold.clear()
    assert (await append(table.get("t"), batch(b"2"))).error is ErrorCode.NONE
    await table.close()


@pytest.mark.parametrize("failing", ["reader", "writer", "find_index"])
async def test_readers_and_writers_go_on_after_errors_that_nobody_thought_of(
    failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MemoryLog()
    for number in range(100):
        log.write(batch(b"%d" % number))
    partition = open_partition(log, replay_entries=4)
    assert await partition.opened() is ErrorCode.NONE
    log.disconnect()
    failures = 2
    works = getattr(MemoryLog, "writer_as" if failing == "writer" else failing)

    def fails(*arguments: Any) -> Any:
        nonlocal failures
        if failures:
            failures -= 1
            raise KeyError("an odd answer")
        return works(*arguments)

    monkeypatch.setattr(MemoryLog, works.__name__, fails)
    assert (await append(partition, batch(b"new"))).base_offset == 100
    assert len(await read_all(partition)) == 101
    assert failures == 0
    partition.close()


async def test_a_consumer_that_fails_to_be_told_takes_nobody_with_it() -> None:
    partition = open_partition(MemoryLog())
    told = asyncio.Event()

    class Fails:
        def on_partition_changed(self, partition: Partition) -> None:
            raise ZeroDivisionError

    assert await partition.opened() is ErrorCode.NONE
    partition.watch(Fails())
    partition.watch(Told(told))
    assert (await append(partition, batch(b"a"))).base_offset == 0
    await asyncio.wait_for(told.wait(), 1)
    assert partition.ended is None
    partition.close()


async def test_appends_that_wait_for_the_end_of_the_log_have_a_deadline() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"0", producer_id=7, epoch=0, sequence=0))
    log.read_delay = 60
    log.write(batch(b"1", producer_id=7, epoch=0, sequence=1))
    held = asyncio.create_task(append(partition, batch(b"2", producer_id=7, epoch=0, sequence=2), 0.1))
    behind = asyncio.create_task(append(partition, batch(b"3", producer_id=7, epoch=0, sequence=3), 60))
    await asyncio.sleep(0.15)
    partition.tick(asyncio.get_running_loop().time())
    assert [verdict.error for verdict in await asyncio.gather(held, behind)] == [ErrorCode.REQUEST_TIMED_OUT] * 2
    partition.close()


async def test_a_send_that_fails_in_the_sidecar_is_sent_again_and_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"0", producer_id=7, epoch=0, sequence=0))
    works = Writer.send
    failures = 1

    def send(self: Writer, *arguments: Any) -> None:
        nonlocal failures
        if failures:
            failures -= 1
            raise ZeroDivisionError
        works(self, *arguments)

    monkeypatch.setattr(Writer, "send", send)
    failed, other = await asyncio.gather(
        append(partition, batch(b"1", producer_id=7, epoch=0, sequence=1)), append(partition, batch(b"x"))
    )
    assert (failed.error, other.error) == (ErrorCode.NONE, ErrorCode.NONE)
    assert [value for _, value in await read_all(partition)] == [b"0", b"1", b"x"]
    partition.close()


async def test_an_append_at_whose_check_the_sidecar_fails_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    partition = open_partition(MemoryLog())
    await append(partition, batch(b"0"))

    def fails(*_: Any) -> Any:
        raise ZeroDivisionError

    with monkeypatch.context() as broken:
        broken.setattr("kafka_sidecar.partition.write.appender.precheck", fails)
        refused = await append(partition, batch(b"1", producer_id=7, epoch=0, sequence=0))
    assert refused.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (await append(partition, batch(b"1", producer_id=7, epoch=0, sequence=0))).base_offset == 1
    partition.close()
