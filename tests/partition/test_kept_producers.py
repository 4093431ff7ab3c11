"""Producers' state outlives the sidecar: who keeps it and when, and what is done without it."""

from __future__ import annotations

import asyncio

import pytest

from handler.clock import SYSTEM_CLOCK
from handler.coordination.kept_places import Kept
from handler.partition import kept_producers
from handler.partition.fold.fold import IndexAlarm
from handler.partition.fold.kept_producers import KnownProducers
from handler.partition.packed import pack, unpack
from handler.partition.partition import Partition
from handler.partition.read import replay
from handler.pulsar.entry import Position
from handler.pulsar.errors import NotPermitted, PulsarError, Refused
from handler.tasks import BytesASecond
from handler.telemetry import metrics
from handler.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.fake_broker import until
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, begin_append, open_partition

KEY = b"producer-states:t-partition-0"
PRODUCER = 7


def numbered(sequence: int) -> bytes:
    return batch(b"%d" % sequence, producer_id=PRODUCER, epoch=0, sequence=sequence)


def written_long_ago(log: MemoryLog, since: int = 100) -> None:
    """A batch of the producer, and many of others."""
    log.write(batch(b"first"))
    log.write(numbered(5))
    for _ in range(since):
        log.write(batch(b"other"))


async def settled(partition: Partition) -> None:
    while (keeping := partition._kept_producers.keeping) is not None and not keeping.done():  # noqa: ASYNC110
        await asyncio.sleep(0)


def has_tried(partition: Partition) -> bool:
    """Whether it has begun to keep something, and it is over."""
    beginning = partition._kept_producers._beginning
    return beginning is not None and beginning.done()


async def kept_by_another(log: MemoryLog, states: MemoryStates) -> None:
    """A sidecar has known the producer, and kept it."""
    partition = open_partition(log, "kafka-sidecar-a", states=states)
    assert (await append(partition, numbered(6))).error is ErrorCode.NONE
    partition.close()
    await settled(partition)
    assert states.values[KEY]


async def test_a_retry_is_recognised_however_much_was_written_since() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    place = log.index
    for _ in range(100):
        log.write(batch(b"other"))
    partition = open_partition(log, states=states, replay_entries=10)
    assert (await append(partition, numbered(6))).base_offset == place
    assert (await append(partition, numbered(5))).base_offset == 1
    assert (await append(partition, numbered(7))).error is ErrorCode.NONE
    partition.close()


async def test_only_what_lies_behind_it_is_read() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log, 1_000)
    await kept_by_another(log, states)
    kept_at = log.entries[-1].position
    for _ in range(200):
        log.write(batch(b"other"))
    partition = open_partition(log, states=states)
    await partition.opened()
    log.opened_at.clear()
    assert (await append(partition, numbered(7))).error is ErrorCode.NONE
    assert [start for start in log.opened_at if start is not None and start < kept_at] == []
    partition.close()


async def test_one_that_only_reads_keeps_nothing() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    partition = open_partition(log, states=states)
    await partition.confirmed_end()
    await append(partition, batch(b"without a producer"))
    partition.tick(asyncio.get_running_loop().time() + 1_000)
    partition.close()
    await settled(partition)
    assert not states.kept


async def test_it_is_kept_when_a_sidecar_begins_and_again_when_much_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_producers, "ENTRIES_BEHIND", 10)
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    partition = open_partition(log, states=states)
    now = asyncio.get_running_loop().time()
    assert (await append(partition, numbered(6))).error is ErrorCode.NONE
    await settled(partition)
    assert states.kept == [KEY]
    partition.tick(now + 30)
    await settled(partition)
    assert states.kept == [KEY], "little was written since"
    partition.tick(now + 61)
    await settled(partition)
    assert states.kept == [KEY] * 2, "a minute has passed"
    for sequence in range(7, 20):
        await append(partition, numbered(sequence))
    partition.tick(now + 70)
    await settled(partition)
    assert states.kept == [KEY] * 3
    partition.tick(now + 200)
    partition.close()
    await settled(partition)
    assert states.kept == [KEY] * 3, "nothing is new"


async def test_while_nobody_can_say_whether_something_was_kept_no_verdict_is_told() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    place = log.index
    for _ in range(100):
        log.write(batch(b"other"))
    states.is_away = True
    partition = open_partition(log, states=states, replay_entries=10)
    waiting = begin_append(partition, numbered(6), 20)
    await asyncio.sleep(0.05)
    assert not waiting.done()
    states.is_away = False
    assert (await waiting).base_offset == place
    partition.close()


@pytest.mark.parametrize("value", [b"\xff\xff", b""])
async def test_what_makes_no_sense_is_as_good_as_nothing(value: bytes) -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log, 5)
    states.values[KEY] = value
    partition = open_partition(log, states=states)
    assert (await append(partition, numbered(5))).base_offset == 1
    partition.close()


async def test_what_is_of_another_log_is_thrown_away() -> None:
    """As after a topic was made anew: places and offsets are others."""
    log, states = MemoryLog(), MemoryStates()
    for _ in range(3):
        log.write(batch(b"of", b"another", b"log"))
    await kept_by_another(log, states)
    value = states.values[KEY]
    other = MemoryLog()
    written_long_ago(other)
    states.values[KEY] = value
    before = metrics.PRODUCERS_NOT_RESTORED._value.get()
    partition = open_partition(other, states=states)
    assert (await append(partition, numbered(5))).base_offset == 1
    assert metrics.PRODUCERS_NOT_RESTORED._value.get() == before + 1
    partition.close()


async def test_what_is_too_old_is_not_gone_on_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "TOO_FAR_ENTRIES", 50)
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    for _ in range(100):
        log.write(batch(b"other"))
    partition = open_partition(log, states=states, replay_entries=10)
    await partition.opened()
    log.opened_at.clear()
    assert (await append(partition, batch(b"new", producer_id=99, epoch=0, sequence=0))).error is ErrorCode.NONE
    assert [start for start in log.opened_at if start is not None and start.entry < 100] == []
    partition.close()


async def test_what_retention_took_is_known_no_more() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    log.write(batch(b"gone, and nobody has kept what it said"))
    log.ledger += 1
    log.write(batch(b"later"))
    log.trim(len(log.entries) - 1)
    partition = open_partition(log, states=states)
    assert (await append(partition, numbered(20))).error is ErrorCode.NONE
    partition.close()


@pytest.mark.parametrize("left", [0, 1, 100])
async def test_what_was_kept_of_all_that_retention_took_counts(left: int) -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    place = log.index
    log.ledger += 1
    for _ in range(left):
        log.write(batch(b"later"))
    log.trim(len(log.entries) - left)
    partition = open_partition(log, states=states)
    assert (await append(partition, numbered(6))).base_offset == place
    assert (await append(partition, numbered(8))).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (await append(partition, numbered(7))).error is ErrorCode.NONE
    partition.close()


async def test_a_log_that_contradicts_itself_leaves_nothing_behind() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    partition = open_partition(log, states=states)
    await append(partition, numbered(7))
    partition.alarm(IndexAlarm("the broker counts otherwise"))
    await settled(partition)
    assert states.values[KEY] == b""


async def test_a_place_that_the_log_has_not_reached_is_none() -> None:
    """Anybody may write such a value."""
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    known = KnownProducers.decode(unpack(states.values[KEY]))
    states.values[KEY] = pack(known._replace(last=Position(known.last.ledger, 10_000)).encode())
    partition = open_partition(log, states=states)
    assert (await append(partition, numbered(7))).error is ErrorCode.NONE
    partition.close()


async def test_it_is_kept_with_the_first_append_to_a_new_partition() -> None:
    log, states = MemoryLog(), MemoryStates()
    partition = open_partition(log, "kafka-sidecar-a", states=states)
    assert (await append(partition, numbered(0))).base_offset == 0
    await settled(partition)
    assert states.kept == [KEY]
    states.is_away = True  # it is killed
    partition.close()
    states.is_away = False
    for _ in range(100):
        log.write(batch(b"other"))
    again = open_partition(log, "kafka-sidecar-b", states=states, replay_entries=10)
    assert (await append(again, numbered(0))).base_offset == 0
    again.close()


def marks(states: MemoryStates) -> list[bytes]:
    return [key for key in states.values if key.startswith(b"appends:t-partition-0\0")]


async def test_a_mark_is_there_from_before_the_first_batch_until_all_is_kept() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    first, second = (open_partition(log, f"kafka-sidecar-{name}", states=states) for name in ("a", "b"))
    log.hold_sends = True
    begun = begin_append(first, numbered(6))
    await until(lambda: log.held)
    assert len(marks(states)) == 1
    log.hold_sends = False
    log.let_go()
    await begun
    await append(second, numbered(7))
    assert len(marks(states)) == 2
    await asyncio.gather(*first.close())
    assert len(marks(states)) == 2, "the other may keep less than this one has kept"
    await asyncio.gather(*second.close())
    assert len(marks(states)) == 2, "that of the first is there"
    third = open_partition(log, "kafka-sidecar-c", states=states)
    for mark in marks(states):
        del states.values[mark]
    await append(third, numbered(8))
    await asyncio.gather(*third.close())
    assert marks(states) == []


@pytest.mark.parametrize("fault", ["a batch is under way", "it can't be kept"])
async def test_a_mark_stays_where_something_may_be_missing_in_what_is_kept(fault: str) -> None:
    log, states = MemoryLog(), MemoryStates()
    partition = open_partition(log, states=states)
    await append(partition, numbered(0))
    if fault == "a batch is under way":
        log.hold_sends = True
        begin_append(partition, numbered(1))
        await until(lambda: log.held)
    else:
        states.is_away = True
    await asyncio.gather(*partition.close())
    assert len(marks(states)) == 1


def very_much_later(log: MemoryLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "TOO_FAR_ENTRIES", 200)
    for _ in range(300):
        log.write(batch(b"other"))


async def test_what_others_alone_have_written_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    first = open_partition(log, "kafka-sidecar-a", states=states)
    place = (await append(first, numbered(6))).base_offset
    await asyncio.gather(*first.close())
    very_much_later(log, monkeypatch)
    second = open_partition(log, "kafka-sidecar-b", states=states, replay_entries=10)
    await second.opened()
    before = log.bytes_read
    assert (await append(second, numbered(6))).base_offset == place
    assert log.bytes_read - before < 100 * len(batch(b"other"))
    assert (await append(second, numbered(7))).error is ErrorCode.NONE
    assert (await append(second, numbered(5))).base_offset == 1
    second.close()


async def test_all_is_read_where_a_sidecar_was_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    first = open_partition(log, "kafka-sidecar-a", states=states)
    await append(first, numbered(6))
    place = (await append(first, numbered(7))).base_offset
    states.is_away = True  # it is killed
    first.close()
    states.is_away = False
    very_much_later(log, monkeypatch)
    second = open_partition(log, "kafka-sidecar-b", states=states, replay_entries=10)
    assert (await append(second, numbered(7))).base_offset == place
    second.close()


async def test_a_mark_from_before_its_producers_expired_counts_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    states.values[b"appends:t-partition-0\0killed"] = b"1"
    states.written_at = SYSTEM_CLOCK.wall() - 3 * 24 * 3_600_000
    very_much_later(log, monkeypatch)
    partition = open_partition(log, "kafka-sidecar-b", states=states, replay_entries=10)
    await partition.opened()
    before = log.bytes_read
    assert (await append(partition, numbered(7))).error is ErrorCode.NONE
    assert log.bytes_read - before < 100 * len(batch(b"other"))
    partition.close()


async def test_no_batch_of_a_producer_is_sent_before_something_is_kept() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    states.values[KEY] = b""
    partition = open_partition(log, states=states)
    assert (await append(partition, batch(b"plain"))).error is ErrorCode.NONE
    entries = len(log.entries)
    look_up = states.look_up

    async def then_it_is_away(key: bytes) -> Kept | None:
        states.is_away, found = False, await look_up(key)
        states.is_away = True
        return found

    states.look_up = then_it_is_away  # type: ignore[method-assign]
    begun = begin_append(partition, numbered(6), 60)
    await until(lambda: has_tried(partition))
    assert len(log.entries) == entries
    states.look_up = look_up  # type: ignore[method-assign]
    states.is_away = False
    partition.tick(asyncio.get_running_loop().time())
    assert (await begun).base_offset == entries
    assert KnownProducers.decode(unpack(states.values[KEY])).last == log.entries[entries - 1].position
    partition.close()


async def test_a_producer_that_is_known_waits_likewise_when_what_was_kept_is_thrown_away() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    partition = open_partition(log, states=states)
    assert (await append(partition, numbered(7))).error is ErrorCode.NONE
    states.is_away = True
    partition._kept_producers.throw_away("it is a test")
    entries = len(log.entries)
    begun = begin_append(partition, numbered(8), 60)
    await until(lambda: has_tried(partition))
    assert len(log.entries) == entries
    states.is_away = False
    partition.tick(asyncio.get_running_loop().time())
    assert (await begun).base_offset == entries
    partition.close()


async def test_a_first_append_does_not_wait_for_its_turn_in_the_rate() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    partition = open_partition(log, states=states)
    assert (await append(partition, numbered(7))).error is ErrorCode.NONE
    partition._kept_producers.throw_away("it is a test")
    await settled(partition)
    states.rate = BytesASecond(1, 1)
    states.rate.spend(10**6)
    partition.tick(asyncio.get_running_loop().time() + 100)
    await until(lambda: partition._kept_producers._is_waiting)
    assert (await append(partition, numbered(8))).error is ErrorCode.NONE
    partition.close()


async def of_an_older_topic(states: MemoryStates) -> MemoryLog:
    """A topic that was made anew, and what was kept of the one before."""
    old = MemoryLog()
    for _ in range(20):
        old.write(batch(b"old"))
    await kept_by_another(old, states)
    log = MemoryLog(ledger=9)
    for _ in range(100):
        log.write(batch(b"new"))
    return log


async def test_what_is_of_no_use_and_can_not_be_deleted_is_looked_at_once() -> None:
    states = MemoryStates()
    log = await of_an_older_topic(states)

    async def store(key: bytes, value: bytes) -> None:
        if key == KEY:
            raise NotPermitted("write the kept states")

    states.store = store  # type: ignore[method-assign]
    partition = open_partition(log, states=states, replay_entries=10)
    assert (await append(partition, numbered(0))).error is ErrorCode.NONE
    assert len(log.opened_at) < 20
    partition.close()


async def test_who_finds_it_of_no_use_later_leaves_what_was_kept_since() -> None:
    states = MemoryStates()
    log = await of_an_older_topic(states)
    slow, fast = MemoryStates(), open_partition(log, "kafka-sidecar-b", states=states)
    slow.values, may_go_on = states.values, asyncio.Event()
    look_up = slow.look_up

    async def later(key: bytes) -> Kept | None:
        found = await look_up(key)
        await may_go_on.wait()
        return found

    slow.look_up = later  # type: ignore[method-assign]
    reads = open_partition(log, "kafka-sidecar-a", states=slow)
    await reads.opened()
    knowing = asyncio.create_task(reads.known_producers())
    assert (await append(fast, numbered(0))).error is ErrorCode.NONE
    kept = states.values[KEY]
    may_go_on.set()
    await knowing
    await settled(reads)
    assert states.values[KEY] == kept
    for one in (reads, fast):
        one.close()


@pytest.mark.parametrize("refusal", [NotPermitted, Refused])
async def test_without_a_right_to_keep_it_producers_do_not_wait(refusal: type[PulsarError]) -> None:
    log, states = MemoryLog(), MemoryStates()

    async def store(key: bytes, value: bytes) -> None:
        raise refusal("write the kept states")

    states.store = store  # type: ignore[method-assign]
    partition = open_partition(log, states=states)
    assert (await append(partition, numbered(0))).base_offset == 0
    partition.close()


async def test_who_knows_less_does_not_replace_what_another_has_kept() -> None:
    """It began when nothing was kept, for what was had been thrown away, and has read a window."""
    log, states = MemoryLog(), MemoryStates()
    first = open_partition(log, "kafka-sidecar-a", states=states)
    assert (await append(first, numbered(0))).base_offset == 0
    for _ in range(100):
        log.write(batch(b"other"))
    second = open_partition(log, "kafka-sidecar-b", states=states, replay_entries=10)
    other = [batch(b"of 8", producer_id=8, epoch=0, sequence=sequence) for sequence in range(3)]
    states.values[KEY] = b""
    await second.opened()
    begun = begin_append(second, other[0])
    await begun
    await settled(second)  # else it keeps what it knows after this
    states.values.clear()
    first.tick(asyncio.get_running_loop().time() + 10)
    await settled(first)
    assert KnownProducers.decode(unpack(states.values[KEY])).began is None
    second._kept_producers._kept_to = None
    second.tick(asyncio.get_running_loop().time() + 100)
    await settled(second)
    assert KnownProducers.decode(unpack(states.values[KEY])).began is None
    assert (await append(second, numbered(0))).base_offset == 0, "it has learnt of the other"
    for partition in (first, second):
        partition.close()


async def test_those_who_wait_behind_one_that_has_given_up_go_on() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    states.is_away = True
    partition = open_partition(log, states=states)
    assert (await append(partition, batch(b"plain"))).error is ErrorCode.NONE
    idempotent, plain = begin_append(partition, numbered(6), 1), begin_append(partition, batch(b"plain"), 60)
    partition.tick(asyncio.get_running_loop().time() + 2)
    assert (await idempotent).error is ErrorCode.REQUEST_TIMED_OUT
    assert (await plain).error is ErrorCode.NONE
    partition.close()


@pytest.mark.parametrize("refusal", [NotPermitted, Refused])
async def test_without_a_right_to_what_is_kept_the_window_is_read(refusal: type[PulsarError]) -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log, 5)

    async def look_up(key: bytes) -> Kept | None:
        raise refusal("read the kept states")

    states.look_up = look_up  # type: ignore[method-assign]
    partition = open_partition(log, states=states)
    assert (await append(partition, numbered(5))).base_offset == 1
    assert partition.ended is None
    partition.close()


async def test_a_log_that_is_emptied_while_one_goes_on_from_what_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.pulsar.raw_entries.ENTRY_SECONDS", 0.05)
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    for _ in range(100):
        log.write(batch(b"other"))
    partition = open_partition(log, states=states)
    await partition.opened()
    look_up = states.look_up

    async def then_it_is_emptied(key: bytes) -> Kept | None:
        found = await look_up(key)
        log.trim(len(log.entries))
        return found

    states.look_up = then_it_is_emptied  # type: ignore[method-assign]
    assert (await append(partition, numbered(7))).error is ErrorCode.NONE
    partition.close()
