"""What geo-replication has copied: the target hides what the source hides, whoever reads it, from wherever."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafka_sidecar.partition import opening
from kafka_sidecar.partition.fold.fold import BEFORE_ALL
from kafka_sidecar.partition.log.entries import read_entry
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.write.append import Append
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.wire.control_records import EndTransactionMarker, write_marker
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.fake_broker import until
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import Outcome, append, begin_append, fetch, open_partition, read_all
from tests.support.replicator import replicate
from tests.support.transactions import ABORTED, Coordinator, committed_values, end, write

PRODUCER = 7


def numbered(sequence: int, count: int = 1, epoch: int = 0) -> bytes:
    values = [b"b%d" % (sequence + number) for number in range(count)]
    return batch(*values, producer_id=PRODUCER, epoch=epoch, sequence=sequence)


def opened(log: MemoryLog, name: str, states: MemoryStates | None = None, **limits: Any) -> Partition:
    """Where the policies name another cluster."""
    log.counts = True
    return open_partition(log, name, states=states, memory=None, **limits)


async def values_of(log: MemoryLog, *, cache: int = 1_000_000, offset: int = 0) -> list[bytes]:
    reader = open_partition(log, "kafka-sidecar-reader", cache=cache)
    values = [value for _, value in await read_all(reader, offset) if value is not None]
    reader.close()
    return values


async def sent_twice(log: MemoryLog) -> None:
    """A connection broke, and the first try landed late."""
    partition = opened(log, "kafka-sidecar-a")
    await append(partition, numbered(0))
    log.hold_sends = True
    written = begin_append(partition, numbered(1, 3))
    while not log.held:  # noqa: ASYNC110
        await asyncio.sleep(0)
    late, log.held, log.hold_sends = log.held, [], False
    log.disconnect()
    assert (await written).error is ErrorCode.NONE
    for land in late:
        land()
    assert (await append(partition, numbered(4))).error is ErrorCode.NONE
    partition.close()


async def through_two_sidecars(log: MemoryLog) -> None:
    first, second = opened(log, "kafka-sidecar-a"), opened(log, "kafka-sidecar-b")
    await append(first, numbered(0))
    await append(second, batch(b"opens the writer"))
    log.hold_sends = True
    for partition in (first, second):
        begin_append(partition, numbered(1, 3))
    while len(log.held) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0)
    log.hold_sends = False
    log.let_go()
    assert (await append(first, numbered(4))).error is ErrorCode.NONE
    for partition in (first, second):
        partition.close()


async def behind_a_refused_one(log: MemoryLog) -> None:
    partition = opened(log, "kafka-sidecar-a", batches_per_entry=1)
    await append(partition, numbered(0))
    log.refuse_sends = 1
    sent = [begin_append(partition, numbered(1)), begin_append(partition, numbered(2, 2))]
    for one in sent:
        await one
    for again in (numbered(1), numbered(2, 2), numbered(4)):
        assert (await append(partition, again)).error is ErrorCode.NONE
    partition.close()


CASES = pytest.mark.parametrize("write", [sent_twice, through_two_sidecars, behind_a_refused_one])


@CASES
@pytest.mark.parametrize("behind", [0, 70, 200])
@pytest.mark.parametrize("own", [False, True], ids=["a log of its own", "with records of its own"])
async def test_the_target_hides_what_the_source_hides(write: object, behind: int, own: bool) -> None:
    source, target = MemoryLog(), MemoryLog()
    await write(source)  # type: ignore[operator]
    expected = await values_of(source)
    assert [value for value in expected if value.startswith(b"b")] == [b"b%d" % number for number in range(5)]
    if own:
        target.write(batch(b"mine"))
        target.write(batch(b"mine, too", producer_id=9, epoch=0, sequence=0))
    replicate(source.entries, target)
    for _ in range(behind):
        target.write(batch(b"behind"))
    for cache in (1, 1_000_000):
        values = await values_of(target, cache=cache)
        assert [value for value in values if not value.startswith((b"mine", b"behind"))] == expected


@CASES
async def test_it_is_hidden_from_who_reads_along(write: object) -> None:
    source, target = MemoryLog(), MemoryLog()
    await write(source)  # type: ignore[operator]
    for _ in range(100):
        target.write(batch(b"before"))
    partition = open_partition(target, "kafka-sidecar-reader")
    assert await partition.opened() is ErrorCode.NONE
    for entry in source.entries:
        replicate([entry], target)
        await partition.confirmed_end()
    values = [value for _, value in await read_all(partition, 100) if value is not None]
    assert values == await values_of(source)
    partition.close()


@CASES
async def test_what_the_replicator_copies_twice_counts_once(write: object) -> None:
    """It begins again where the other cluster has stored that it has come to."""
    source, target = MemoryLog(), MemoryLog()
    await write(source)  # type: ignore[operator]
    replicate(source.entries, target)
    replicate(source.entries[1:], target)
    for _ in range(100):
        target.write(batch(b"behind"))
    for cache in (1, 1_000_000):
        values = await values_of(target, cache=cache)
        assert [value for value in values if value != b"behind"] == await values_of(source)
    assert [
        value for value in await values_of(target, cache=1, offset=len(values) // 3) if value.startswith(b"b1")
    ] == []


async def test_what_is_hidden_and_copied_twice_before_anything_is_judged_counts_no_more_for_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its second copy comes behind the batch that it lacked."""
    monkeypatch.setattr(opening, "ENTRIES_BEFORE_END", 1)
    source, target = MemoryLog(), MemoryLog()
    await behind_a_refused_one(source)
    replicate(source.entries[:1], target)
    for _ in range(100):
        target.write(batch(b"before"))
    partition = open_partition(target, "kafka-sidecar-reader")
    assert await partition.opened() is ErrorCode.NONE
    replicate(source.entries[1:3], target)
    replicate(source.entries[1:3], target)
    await partition.confirmed_end()
    await partition.know([PRODUCER])
    replicate(source.entries[3:], target)
    await partition.confirmed_end()
    assert [value for _, value in await read_all(partition, target.index - 2)] == [b"b2", b"b3", b"b4"]
    partition.close()


@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize("refused", [1, 2])
@pytest.mark.parametrize("is_whole", [True, False])
async def test_the_first_batch_of_a_producer_counts_also_where_what_came_behind_it_was_shown(
    epoch: int, refused: int, is_whole: bool
) -> None:
    """The broker has refused it alone. The source hides what came behind it, by what its writer knew; in the target
    nobody knows.
    """
    source, target = MemoryLog(), MemoryLog()
    if not is_whole:
        target.write(batch(b"gone"))
        target.roll()
        target.trim(1)
    partition = opened(source, "kafka-sidecar-a", batches_per_entry=1)
    await append(partition, batch(b"opens the writer") if epoch == 0 else numbered(0))
    source.refuse_sends = refused
    for one in [begin_append(partition, numbered(sequence, epoch=epoch)) for sequence in range(4)]:
        await one
    for sequence in range(5):
        assert (await append(partition, numbered(sequence, epoch=epoch))).error is ErrorCode.NONE
    partition.close()
    replicate(source.entries, target)
    for cache in (1, 1_000_000):
        values = await values_of(target, cache=cache, offset=0 if is_whole else 1)
        assert sorted(values[1:]) == [b"b%d" % number for number in range(5)]


async def test_the_first_batches_of_an_epoch_count_also_where_only_the_target_knows_the_one_before() -> None:
    """Retention has taken the old epoch in the source. Its broker refuses the first two batches of the new one
    alone.
    """
    source, target = MemoryLog(), MemoryLog()
    partition = opened(source, "kafka-sidecar-a", batches_per_entry=1)
    await append(partition, numbered(0))
    partition.close()
    replicate(source.entries, target)
    source.roll()
    source.trim(1)
    partition = opened(source, "kafka-sidecar-b", batches_per_entry=1)
    assert await partition.opened() is ErrorCode.NONE
    source.refuse_sends = 2
    for one in [begin_append(partition, numbered(sequence, epoch=1)) for sequence in range(4)]:
        await one
    for sequence in range(5):
        assert (await append(partition, numbered(sequence, epoch=1))).error is ErrorCode.NONE
    partition.close()
    replicate(source.entries[1:], target)
    for cache in (1, 1_000_000):
        values = await values_of(target, cache=cache)
        assert sorted(values[1:]) == [b"b%d" % number for number in range(5)]


async def test_what_the_source_counted_is_never_hidden_where_replication_began_later() -> None:
    source, target = MemoryLog(), MemoryLog()
    partition = opened(source, "kafka-sidecar-a")
    for sequence in range(10):
        await append(partition, numbered(sequence))
    partition.close()
    replicate(source.entries[4:], target)
    assert await values_of(target) == [b"b%d" % number for number in range(4, 10)]


async def test_what_was_not_replicated_hides_no_more_than_what_was_on_its_way() -> None:
    """An operator has cleared the replicator's backlog."""
    source, target = MemoryLog(), MemoryLog()
    partition = opened(source, "kafka-sidecar-a")
    for sequence in range(10):
        await append(partition, numbered(sequence))
    partition.close()
    replicate([*source.entries[:4], *source.entries[6:]], target)
    expected = [b"b%d" % number for number in (0, 1, 2, 3, 6, 7, 8, 9)]
    assert await values_of(target) == await values_of(target, cache=1) == expected


@pytest.mark.parametrize("offset", [0, 1, 180, 181, 185])
async def test_records_without_a_producer_that_were_copied_twice_count_once_wherever_one_reads(offset: int) -> None:
    source, target = MemoryLog(), MemoryLog()
    partition = opened(source, "kafka-sidecar-a")
    for number in range(100):
        await append(partition, batch(b"v%d" % number))
    partition.close()
    replicate(source.entries, target)
    along = open_partition(target, "kafka-sidecar-along")
    await along.confirmed_end()
    for _ in range(80):
        target.write(batch(b"mine"))
    replicate(source.entries[90:], target)
    await along.confirmed_end()
    expected = [b"v%d" % number for number in range(offset, 100)] + [b"mine"] * min(80, 180 - offset)
    for one in (along, open_partition(target, "kafka-sidecar-cold", cache=1)):
        assert [value for _, value in await read_all(one, offset) if value] == (expected if offset < 180 else [])
        one.close()


async def test_a_reader_of_large_batches_goes_back_behind_what_the_source_has_hidden() -> None:
    """A window of bytes alone would begin in the middle of it."""
    source, target = MemoryLog(), MemoryLog()
    partition = opened(source, "kafka-sidecar-a", batches_per_entry=1)
    await append(partition, numbered(0))
    source.refuse_sends = 1
    for one in [begin_append(partition, numbered(sequence)) for sequence in range(1, 6)]:
        await one
    for sequence in range(1, 7):
        assert (await append(partition, numbered(sequence))).error is ErrorCode.NONE
    partition.close()
    replicate(source.entries, target)
    expected = [found for found in await read_all(open_partition(source, "kafka-sidecar-r")) if found[1] is not None]
    for offset in range(11):
        reader = open_partition(target, "kafka-sidecar-west", cache=1, replay_bytes=100)
        found = [found for found in await read_all(reader, offset) if found[1] is not None]
        reader.close()
        assert found == [one for one in expected if one[0] >= offset], offset


async def test_a_reader_that_has_lost_its_connection_goes_on() -> None:
    """Where what it has to know reaches no further back than where it begins anyway."""
    source, target = MemoryLog(), MemoryLog()
    partition = opened(source, "kafka-sidecar-a")
    for sequence in range(200):
        await append(partition, numbered(sequence))
    partition.close()
    for _ in range(200):
        target.write(batch(b"mine"))
    replicate(source.entries, target)
    target.read_delay, target.at_once = 0.001, 20
    reader = open_partition(target, "kafka-sidecar-west", cache=1, replay_bytes=100)
    reading = asyncio.create_task(read_all(reader, 200))
    await asyncio.sleep(0.02)
    target.disconnect()
    assert [value for _, value in await reading if value] == [b"b%d" % number for number in range(200)]
    reader.close()


async def aborted_and_copied_again(source: MemoryLog, target: MemoryLog, between: int) -> None:
    """The marker that ended the first transaction comes once more, in the middle of the second."""
    partition = opened(source, "kafka-sidecar-a")
    coordinator = Coordinator(100)
    await write(partition, coordinator, b"t1", sequence=0)
    await end(partition, ABORTED, number=100)
    coordinator.number = 101
    for sequence, value in ((1, b"t2-first"), (2, b"t2-second")):
        await write(partition, coordinator, value, sequence=sequence)
    await end(partition, ABORTED, number=101)
    await append(partition, batch(b"after"))
    partition.close()
    replicate(source.entries[:3], target)
    for _ in range(between):
        target.write(batch(b"mine"))
    replicate(source.entries[1:], target)


@pytest.mark.parametrize("offset", [0, 2, 80, 150])
async def test_a_marker_that_was_copied_twice_ends_nothing(offset: int) -> None:
    source, target = MemoryLog(), MemoryLog()
    await aborted_and_copied_again(source, target, 200)
    target.transactions_behind = BEFORE_ALL
    reader = open_partition(target, "kafka-sidecar-west", cache=1)
    values = [value for value in await committed_values(reader, offset) if value and value != b"mine"]
    reader.close()
    assert values == [b"after"]


async def test_a_marker_in_an_entry_without_a_count_ends_its_transaction() -> None:
    source, target = MemoryLog(), MemoryLog()
    partition = open_partition(source, "kafka-sidecar-a")
    await write(partition, Coordinator(100), b"t1", sequence=0)
    source.hold_sends = True
    sent = [
        begin_append(partition, batch(b"x")) for _ in range(12)
    ]  # more than may be in flight: what comes next shares an entry
    ended = Outcome()
    marker = write_marker(PRODUCER, 0, EndTransactionMarker(committed=True, coordinator_epoch=0), 1_000)
    partition.append(Append.of_marker(marker, 100, asyncio.get_running_loop().time() + 5, ended, 0))
    while len(source.held) < 10:  # noqa: ASYNC110
        await asyncio.sleep(0)
    source.hold_sends = False
    source.let_go()
    for one in (*sent, ended.result):
        await one
    partition.close()
    assert any(len(read_entry(entry).batches) > 1 for entry in source.entries)
    replicate(source.entries, target)
    target.transactions_behind = BEFORE_ALL
    reader = open_partition(target, "kafka-sidecar-west")
    assert await reader.opened() is ErrorCode.NONE
    assert reader.last_stable_offset == reader.end_offset
    reader.close()


@pytest.mark.parametrize("on_their_way", [False, True])
async def test_batches_that_take_one_offset_each_are_unreadable_and_what_follows_is_not_hidden(
    on_their_way: bool,
) -> None:
    """They were written before replication was switched on."""
    source, target = MemoryLog(), MemoryLog()
    partition = open_partition(source, "kafka-sidecar-a", batches_per_entry=1)
    await append(partition, numbered(0))
    sent = []
    for sequence, count in ((1, 3), (4, 3), (7, 1)):
        sent.append(begin_append(partition, numbered(sequence, count)))
        if not on_their_way:
            await sent[-1]
    for one in sent:
        assert (await one).error is ErrorCode.NONE
    partition.close()
    replicate(source.entries, target)
    reader = open_partition(target, "kafka-sidecar-reader")
    assert await reader.opened() is ErrorCode.NONE
    errors = [(await fetch(reader, offset)).error for offset in (1, 2)]
    assert errors == [ErrorCode.CORRUPT_MESSAGE, ErrorCode.CORRUPT_MESSAGE]
    assert await read_all(reader, 3) == [(3, b"b7")]
    reader.close()


@pytest.mark.parametrize("kept", [False, True])
async def test_clusters_that_copy_to_each_other_write_on(kept: bool) -> None:
    east, west = MemoryLog(), MemoryLog()
    states = MemoryStates() if kept else None
    sidecars = opened(east, "kafka-sidecar-e", states), opened(west, "kafka-sidecar-w")
    copied = [0, 0]
    for turn in range(10):
        for side, (partition, log, other) in enumerate(zip(sidecars, (east, west), (west, east), strict=True)):
            for number in range(3):
                value = b"%d/%d" % (side, 3 * turn + number)
                data = batch(value, value, producer_id=100 + side, epoch=0, sequence=2 * (3 * turn + number))
                assert (await append(partition, data)).error is ErrorCode.NONE
            mine = [entry for entry in log.entries if not entry.message_metadata.replicated_from]
            replicate(mine[copied[side] :], other, f"cluster-{side}")
            copied[side] = len(mine)
    for partition in sidecars:
        partition.close()
    for log in (east, west):
        values = await values_of(log)
        assert sorted(values) == sorted(
            b"%d/%d" % (side, number) for side in (0, 1) for number in range(30) for _ in (0, 1)
        )
    again = opened(east, "kafka-sidecar-e2", states)
    assert (await append(again, batch(b"0/29", b"0/29", producer_id=100, epoch=0, sequence=58))).error is ErrorCode.NONE
    assert (await append(again, batch(b"x", producer_id=100, epoch=0, sequence=60))).error is ErrorCode.NONE
    assert (await values_of(east)).count(b"0/29") == 2
    again.close()
    with pytest.raises(Unavailable):
        await sidecars[0].confirmed_end()


async def test_entries_say_how_many_records_they_hold_only_where_they_are_replicated() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, numbered(0, 3))
    partition.set_counting(counts_records=True)
    await append(partition, numbered(3, 3))
    await append(partition, numbered(6))
    partition.set_counting(counts_records=False)
    await append(partition, numbered(7, 2))
    partition.close()
    said = [
        entry.message_metadata.num_messages_in_batch
        for entry in log.entries
        if entry.message_metadata.HasField("num_messages_in_batch")
    ]
    assert said == [3]
    assert await values_of(log) == [b"b%d" % number for number in range(9)]


@pytest.mark.parametrize("before", [0, 100])
async def test_a_copy_that_is_known_by_its_number_counts_for_nothing_before_the_past_is_known(before: int) -> None:
    """A plain batch with a greater number stands before the copy of a batch that its writer has numbered anew. A
    partition is opened behind the copy, and appends, before the batch itself comes.
    """
    log, states = MemoryLog(), MemoryStates()
    source = opened(log, "kafka-sidecar-a")
    for _ in range(before):
        log.write(batch(b"other"))
    await append(source, numbered(0))
    log.hold_sends = True
    written = begin_append(source, numbered(1), 60)
    await until(lambda: len(log.held) == 1)
    first_try, log.held = log.held, []
    log.disconnect()
    await until(lambda: len(log.held) == 1)
    plain = begin_append(source, batch(b"plain"), 60)
    await until(lambda: len(log.held) == 2)
    second_tries, log.held, log.refuse_sends = log.held, [], 1
    for land in second_tries:
        land()
    await until(lambda: len(log.held) == 1)
    third_try, log.held, log.hold_sends = log.held, [], False
    first_try[0]()
    copied_so_far = len(log.entries)
    third_try[0]()
    assert (await written).error is (await plain).error is ErrorCode.NONE
    await append(source, numbered(2))
    target = MemoryLog()
    replicate(log.entries[:copied_so_far], target)
    reads = opened(target, "kafka-sidecar-t", states)
    await reads.opened()
    assert (
        await append(reads, batch(b"own", producer_id=PRODUCER + 1, epoch=0, sequence=0), 30)
    ).error is ErrorCode.NONE
    replicate(log.entries[copied_so_far:], target)
    shown = [value for _, value in await read_all(reads, max_bytes=100) if value in (b"b0", b"b1", b"b2", b"plain")]
    assert shown == [b"b0", b"plain", b"b1", b"b2"]
    source.close()
    reads.close()
