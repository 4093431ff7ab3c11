"""Retention has taken the beginning of what was replicated: what is left of it is shown, whoever begins there."""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.partition.log.entries import read_entry
from kafka_sidecar.wire.error_code import ErrorCode
from tests.partition.faults.test_replicated_logs import numbered, opened, values_of
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, begin_append
from tests.support.replicator import replicate


async def sent_again(before: int) -> MemoryLog:
    """Five batches are on their way when the connection breaks, and none has landed. All are sent again, and four more
    behind them.
    """
    log = MemoryLog()
    partition = opened(log, "kafka-sidecar-a", batches_per_entry=1)
    await append(partition, batch(b"opens"))
    for sequence in range(before):
        await append(partition, numbered(sequence))
    log.hold_sends = True
    sent = [begin_append(partition, numbered(sequence)) for sequence in range(before, before + 5)]
    while len(log.held) < len(sent):  # noqa: ASYNC110
        await asyncio.sleep(0)
    log.held.clear()
    log.hold_sends = False
    log.disconnect()
    assert {(await one).error for one in sent} == {ErrorCode.NONE}
    for sequence in range(before + 5, before + 9):
        assert (await append(partition, numbered(sequence))).error is ErrorCode.NONE
    partition.close()
    return log


@pytest.mark.parametrize("cache", [1, 1_000_000])
@pytest.mark.parametrize("before", [0, 20], ids=["a new producer", "an old one"])
@pytest.mark.parametrize("taken", range(1, 5))
async def test_batches_that_were_sent_again_together_are_shown_where_retention_took_the_first_of_them(
    taken: int, before: int, cache: int
) -> None:
    source, target = await sent_again(before), MemoryLog()
    first = 1 + before + taken
    replicate(source.entries[:first], target)
    target.roll()
    replicate(source.entries[first:], target)
    target.trim(first)
    assert await values_of(target, cache=cache, offset=first) == [
        b"b%d" % number for number in range(before + taken, before + 9)
    ]


async def by_two_sidecars(records: int) -> MemoryLog:
    """The second one has sent seven entries at once. Of those, five are of the producer in question."""
    source = MemoryLog()
    first = opened(source, "kafka-sidecar-a", batches_per_entry=1)
    for number in range(5):
        await append(first, numbered(number * records, records))
    first.close()
    second = opened(source, "kafka-sidecar-b", batches_per_entry=1)
    await append(second, batch(b"x0", producer_id=8, epoch=0, sequence=0))
    source.hold_sends = True
    sent = [begin_append(second, numbered(number * records, records)) for number in range(5, 8)]
    sent += [
        begin_append(second, batch(b"x%d" % sequence, producer_id=8, epoch=0, sequence=sequence)) for sequence in (1, 2)
    ]
    sent += [begin_append(second, numbered(number * records, records)) for number in (8, 9)]
    while len(source.held) < len(sent):  # noqa: ASYNC110
        await asyncio.sleep(0)
    source.hold_sends = False
    source.let_go()
    assert {(await one).error for one in sent} == {ErrorCode.NONE}
    second.close()
    return source


async def copied_twice(source: MemoryLog) -> tuple[MemoryLog, int]:
    """The replicator goes back behind the place where the target will begin. That place, as an offset, is told as
    well.
    """
    target = MemoryLog()
    replicate(source.entries[:10], target)
    target.roll()
    begin = len(target.entries), target.index + 1
    replicate([*source.entries[10:11], *source.entries[3:11], *source.entries[11:]], target)
    target.trim(begin[0])
    return target, begin[1]


async def test_what_follows_entries_that_were_copied_twice_is_shown_where_retention_took_their_first_copies() -> None:
    target, begin = await copied_twice(await by_two_sidecars(1))
    shown = [value for value in await values_of(target, offset=begin) if value.startswith(b"b")]
    assert shown == [b"b3", b"b4", b"b8", b"b9"], "what another sidecar wrote can't be told from first copies"


async def test_what_follows_copies_that_nobody_can_read_is_shown() -> None:
    """Those before b24 were written before the topic was replicated: they do not say how many records they hold."""
    source = await by_two_sidecars(3)
    for entry in source.entries[:-2]:
        entry.message_metadata.ClearField("num_messages_in_batch")
    target, _ = await copied_twice(source)
    assert await values_of(target, offset=target.index - 5) == [b"b%d" % number for number in range(24, 30)]


async def test_what_was_sent_again_in_an_older_epoch_and_is_copied_twice_takes_nothing_from_the_newer_one() -> None:
    source = await sent_again(2)
    partition = opened(source, "kafka-sidecar-b", batches_per_entry=1)
    for sequence in range(3):
        assert (await append(partition, numbered(sequence, epoch=1))).error is ErrorCode.NONE
    source.hold_sends = True
    sent = [begin_append(partition, numbered(sequence, epoch=1)) for sequence in range(3, 8)]
    while len(source.held) < len(sent):  # noqa: ASYNC110
        await asyncio.sleep(0)
    source.hold_sends = False
    source.let_go()
    assert {(await one).error for one in sent} == {ErrorCode.NONE}
    partition.close()
    target, behind = MemoryLog(), len(source.entries)
    replicate(source.entries[: behind - 5], target)
    target.roll()
    begin = len(target.entries)
    again = next(number for number, entry in enumerate(source.entries) if read_entry(entry).sent_again)
    replicate(
        [*source.entries[behind - 5 : behind - 3], *source.entries[again : behind - 3], *source.entries[behind - 3 :]],
        target,
    )
    target.trim(begin)
    shown = await values_of(target, offset=begin)
    assert shown[:2] == [b"b3", b"b4"]
    assert shown[-3:] == [b"b5", b"b6", b"b7"]
