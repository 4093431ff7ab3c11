"""Moved log starts: every sidecar hears of them, before it serves anything, and of two moves the greater counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import pytest
import pytest_asyncio

from kafka_sidecar.internal_topics import shared_map
from kafka_sidecar.internal_topics.compacted_topic import DELETES
from kafka_sidecar.internal_topics.log_starts import LogStarts, log_starts, stored_starts
from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.loop.clock import SYSTEM_CLOCK
from kafka_sidecar.loop.ids import new_id
from kafka_sidecar.pulsar import raw_entries
from kafka_sidecar.pulsar.entry import CompactionStats, Position, RawEntry
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, TopicMissing, Unavailable
from kafka_sidecar.pulsar.messages import write_batch
from tests.support.fake_broker import until
from tests.support.internal_topic import InternalTopic, Writer
from tests.support.virtual_time import in_virtual_time

PARTITION = "persistent://public/default/t-partition-0"
EARLY, LATE = MovedStart(Position(5, 1), 10), MovedStart(Position(5, 9), 90)


Open = Callable[[], LogStarts]


@pytest.fixture
def topic() -> InternalTopic:
    return InternalTopic()


@pytest_asyncio.fixture
async def opened(topic: InternalTopic, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Open]:
    monkeypatch.setattr(shared_map, "LOOK_SECONDS", 0.02)
    there: list[LogStarts] = []

    def begin() -> LogStarts:
        there.append(
            log_starts(cast(Any, topic), cast(Any, topic), "public/__kafka", SYSTEM_CLOCK, new_id, lambda *moved: heard.append(moved))
        )
        there[-1].start()
        return there[-1]

    heard: list[tuple[str, MovedStart]] = []
    yield begin
    for one in there:
        await one.close()


async def known(starts: LogStarts, wanted: MovedStart | None) -> None:
    async with asyncio.timeout(2):
        while await starts.of(PARTITION) != wanted:  # noqa: ASYNC110 - the partition is told, and there is none
            await asyncio.sleep(0.005)


async def test_a_move_is_stored_and_others_hear_of_it(topic: InternalTopic, opened: Open) -> None:
    mine, other = opened(), opened()
    assert await mine.of(PARTITION) is None
    await mine.put(PARTITION, EARLY)
    assert topic.stored() == [(PARTITION.encode(), EARLY.encode())]
    await known(other, EARLY)
    await other.put(PARTITION, LATE)
    await known(mine, LATE)
    assert await opened().of(PARTITION) == LATE, "a sidecar that starts later reads it before it answers"


async def test_of_two_moves_the_greater_counts_and_is_written_behind_the_lesser(topic: InternalTopic, opened: Open) -> None:
    mine, other = opened(), opened()
    await asyncio.gather(mine.put(PARTITION, LATE), other.put(PARTITION, EARLY))
    for one in (mine, other):
        await known(one, LATE)
    await until(lambda: topic.stored()[-1] == (PARTITION.encode(), LATE.encode()))  # compaction keeps the last


async def test_what_is_lost_is_opened_again_and_an_unstored_move_is_an_error(topic: InternalTopic, opened: Open) -> None:
    mine = opened()
    await mine.put(PARTITION, EARLY)
    topic.refuse = 1
    topic.lose()
    await mine.put(PARTITION, LATE)
    assert await opened().of(PARTITION) == LATE
    topic.writers[0].send_batch = lambda *_: None  # type: ignore[method-assign]
    under_way = asyncio.create_task(mine.put(PARTITION, MovedStart(Position(6, 0), 100)))
    await asyncio.sleep(0.01)
    topic.lose()
    with pytest.raises(PulsarError):
        await under_way


async def test_with_its_topic_a_start_is_forgotten(topic: InternalTopic, opened: Open) -> None:
    mine, other = opened(), opened()
    await mine.put(PARTITION, EARLY)
    await known(other, EARLY)
    mine.forget({PARTITION: EARLY, "persistent://public/default/t-partition-1": EARLY})
    await known(other, None)
    assert await opened().of(PARTITION) is None


@pytest.mark.parametrize("answer", [TopicMissing("a young broker"), NotPermitted("a token is being replaced"), Unavailable("no broker")])
async def test_a_start_is_forgotten_though_pulsar_can_not_say_where_the_topic_ends_for_a_moment(
    topic: InternalTopic, opened: Open, answer: PulsarError
) -> None:
    mine = opened()
    await mine.put(PARTITION, EARLY)
    await known(mine, EARLY)
    stats, questions = topic.compaction_stats, 0

    async def refused_once(topic: str) -> CompactionStats:
        nonlocal questions
        questions += 1
        if questions == 1:
            raise answer
        return await stats(topic)

    topic.compaction_stats = refused_once  # type: ignore[method-assign]
    mine.forget({PARTITION: EARLY})
    await until(lambda: not topic.stored()[-1][1])
    assert questions > 1


async def test_the_start_of_a_topic_that_was_made_again_outlives_the_deletion_of_the_one_before(topic: InternalTopic, opened: Open) -> None:
    mine, other = opened(), opened()
    await mine.put(PARTITION, EARLY)
    before = dict(mine.values)
    await known(other, EARLY)
    await other.put(PARTITION, LATE)
    await known(mine, LATE)
    mine.forget(before)
    assert await mine.of_now(PARTITION) == LATE
    assert await opened().of(PARTITION) == LATE


async def test_what_nobody_understands_is_passed_over(topic: InternalTopic, opened: Open) -> None:
    mine = opened()
    await mine.put(PARTITION, EARLY)
    topic.entries.append(RawEntry(Position(1, 99), None, None, b"\xff", memoryview(b"nonsense")))
    Writer(topic, topic.writers[0].events).send_batch(99, 1, b"nonsense")
    await mine.put(PARTITION, LATE)
    assert await opened().of(PARTITION) == LATE


async def test_a_lesser_move_that_is_read_while_loading_is_mended_too(topic: InternalTopic, opened: Open) -> None:
    writer = Writer(topic, cast(Any, Silent()))
    for number, moved in enumerate((LATE, EARLY)):
        writer.send_batch(number, 1, write_batch([(PARTITION.encode(), moved.encode())], 1))
    topic.there = True
    assert await opened().of(PARTITION) == LATE
    await until(lambda: topic.stored()[-1] == (PARTITION.encode(), LATE.encode()))


def write(topic: InternalTopic, *values: MovedStart | None, key: str = PARTITION) -> None:
    """A deletion is one of the value before it."""
    writer, before = Writer(topic, cast(Any, Silent())), values[0]
    for value in values:
        deletes = () if value is not None else ((DELETES, cast(MovedStart, before).encode()),)
        writer.send_batch(0, 1, write_batch([(key.encode(), value and value.encode())], 1, *deletes))
        before = value
    topic.there = True


def compact(topic: InternalTopic, *left_out: int) -> None:
    topic.compacted_to, topic.left_out = Position(topic.ledger, len(topic.entries) - 1), set(left_out)


async def test_what_compaction_left_out_for_a_lesser_move_counts_and_is_written_again(topic: InternalTopic, opened: Open) -> None:
    write(topic, LATE, EARLY)
    compact(topic, 0)
    assert await opened().of(PARTITION) == LATE
    await until(lambda: topic.stored()[-1] == (PARTITION.encode(), LATE.encode()))


async def test_a_ledger_that_a_broker_has_just_begun_has_nothing_that_was_left_out(topic: InternalTopic, opened: Open) -> None:
    write(topic, LATE, EARLY)
    topic.compacted_to, topic.left_out = Position(topic.ledger + 1, -1), {0}  # as brokers say when they load the topic again
    async with asyncio.timeout(1):
        assert await opened().of(PARTITION) == LATE


async def test_what_was_deleted_before_the_compaction_stays_deleted(topic: InternalTopic, opened: Open) -> None:
    write(topic, LATE, None)
    compact(topic, 0, 1)
    assert await opened().of_now(PARTITION) is None


@pytest.mark.parametrize("fault", ["slow", "lost"])
async def test_of_a_log_that_can_be_read_in_part_only_what_is_compacted_counts(topic: InternalTopic, opened: Open, fault: str) -> None:
    write(topic, LATE, None)
    write(topic, EARLY, key="another")
    compact(topic, 0, 1)
    if fault == "slow":
        topic.slow_from = 1
    else:
        topic.lost = {1}
    mine = opened()
    assert await mine.of(PARTITION) is None, "its deletion was not read"
    await mine.put(PARTITION, EARLY)
    assert topic.stored()[-1] == (PARTITION.encode(), EARLY.encode())


def test_storage_that_brings_an_entry_a_second_delays_no_sidecar_for_long() -> None:
    topic = InternalTopic()
    times: list[float] = []

    async def play() -> None:
        write(topic, *[MovedStart(Position(5, 1), number) for number in range(100)])
        compact(topic, *range(99))
        loop, entries, topic.slow_from = asyncio.get_running_loop(), len(topic.entries), 0

        def next_one() -> None:
            topic.slow_from = cast(int, topic.slow_from) + 1
            for reader in topic.readers:
                reader.deliver()
            if topic.slow_from < entries:
                loop.call_later(1, next_one)

        loop.call_later(1, next_one)
        starts = log_starts(cast(Any, topic), cast(Any, topic), "public/__kafka", SYSTEM_CLOCK, new_id, lambda *_: None)
        starts.start()
        begun = loop.time()
        await starts.of(PARTITION)
        times.append(loop.time() - begun)
        await starts.close()

    in_virtual_time(play())
    assert times[0] < 2.5


def hold_receipts(topic: InternalTopic) -> Callable[[], None]:
    """The first writer's, until the returned function is called."""
    events, held = topic.writers[0].events, list[tuple[int, int, int]]()
    on_receipt = events.on_receipt
    events.on_receipt = lambda *receipt: held.append(receipt)  # type: ignore[method-assign]

    def give() -> None:
        for receipt in held:
            on_receipt(*receipt)

    return give


async def test_a_receipt_that_comes_behind_the_deletion_of_its_value_brings_nothing_back(topic: InternalTopic, opened: Open) -> None:
    mine, other = opened(), opened()
    await mine.put(PARTITION, EARLY)
    await known(other, EARLY)
    give_receipts = hold_receipts(topic)
    putting = asyncio.create_task(mine.put(PARTITION, LATE))
    await known(other, LATE)
    other.forget({PARTITION: LATE})
    await until(lambda: not topic.stored()[-1][1])
    give_receipts()
    await putting
    assert await mine.of_now(PARTITION) is None


async def test_what_compaction_took_before_its_writer_had_the_receipt_counts_and_is_written_again(
    topic: InternalTopic, opened: Open
) -> None:
    mine = opened()
    await mine.put("another", EARLY)
    give_receipts = hold_receipts(topic)
    topic.left_out = {len(topic.entries)}
    putting = asyncio.create_task(mine.put(PARTITION, LATE))
    await until(lambda: topic.stored()[-1] == (PARTITION.encode(), LATE.encode()))
    write(topic, EARLY)
    await known(mine, EARLY)
    give_receipts()
    await putting
    assert await mine.of(PARTITION) == LATE
    await until(lambda: topic.stored()[-1] == (PARTITION.encode(), LATE.encode()))


async def test_the_deletion_of_a_lesser_value_makes_nobody_forget_what_counts_more(
    topic: InternalTopic, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_map, "LEFT_OUT_ENTRIES", 3)
    mine, middle = opened(), MovedStart(Position(5, 5), 50)
    await mine.put(PARTITION, LATE)
    readers, topic.readers = topic.readers, []  # it is away
    write(topic, EARLY, None, middle)
    compact(topic, 0, 1, 2)
    for reader in readers:
        reader.events.on_end(Unavailable("connection lost"))
    await until(lambda: topic.stored()[-1] == (PARTITION.encode(), LATE.encode()))
    assert await mine.of_now(PARTITION) == LATE


class Silent:
    def on_receipt(self, sequence: int, ledger: int, entry: int) -> None: ...


async def test_what_was_put_before_a_question_is_in_its_answer(topic: InternalTopic, opened: Open) -> None:
    mine, other = opened(), opened()
    assert await other.of_now(PARTITION) is None, "there is no topic yet"
    await mine.put(PARTITION, EARLY)
    assert await other.of_now(PARTITION) == EARLY
    held = [reader.permits for reader in topic.readers]
    for reader in topic.readers:
        reader.permits = 0  # the broker is slow
    await mine.put(PARTITION, LATE)
    asked = asyncio.create_task(other.of_now(PARTITION))
    await asyncio.sleep(0.02)
    assert not asked.done()
    for reader, permits in zip(topic.readers, held, strict=True):
        reader.grant(permits)
    assert await asked == LATE


async def test_a_topic_that_was_there_is_not_missing_because_a_broker_says_so_once(topic: InternalTopic, opened: Open) -> None:
    """A broker that has just started may not know it. What is stored there counts nevertheless."""
    mine = opened()
    await mine.put(PARTITION, EARLY)
    topic.refuse = 1_000
    topic.lose()
    await asyncio.sleep(0.01)
    topic.there = False
    asked = asyncio.create_task(mine.of_now(PARTITION))
    await asyncio.sleep(0.05)
    assert not asked.done()
    topic.there, topic.refuse = True, 0
    assert await asked == EARLY


async def test_what_is_not_read_in_time_can_not_be_told(topic: InternalTopic, opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_map, "CURRENT_SECONDS", 0.02)
    mine = opened()
    await mine.put(PARTITION, EARLY)
    for reader in topic.readers:
        reader.permits = 0  # the broker is slow
    await mine.put(PARTITION, LATE)
    with pytest.raises(Unavailable, match="was not read to its end within"):
        await mine.of_now(PARTITION)


async def stored(topic: InternalTopic) -> dict[str, MovedStart]:
    return await stored_starts(cast(Any, topic), cast(Any, topic), "public/__kafka")


async def test_who_looks_once_finds_what_is_stored_or_is_told_that_it_was_not_read(
    topic: InternalTopic, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_entries, "ENTRY_SECONDS", 0.02)
    await opened().put(PARTITION, EARLY)
    assert await stored(topic) == {PARTITION: EARLY}
    topic.gives_nothing = True  # a broker under load
    with pytest.raises(Unavailable, match="was not read to its end"):
        await stored(topic)


@pytest.mark.parametrize("is_compacted_so_far", [True, False])
async def test_silence_is_the_end_only_where_compaction_has_come_so_far(
    topic: InternalTopic, opened: Open, monkeypatch: pytest.MonkeyPatch, is_compacted_so_far: bool
) -> None:
    """It leaves out a deletion, also where that is the last entry."""
    monkeypatch.setattr(raw_entries, "ENTRY_SECONDS", 0.02)
    await opened().put(PARTITION, EARLY)
    last = len(topic.entries) - 1
    topic.left_out = {last}
    topic.compacted_to = Position(1, last if is_compacted_so_far else last - 1)
    if is_compacted_so_far:
        assert await stored(topic) == {}
    else:
        with pytest.raises(Unavailable):
            await stored(topic)


async def test_what_was_deleted_while_nobody_read_is_forgotten_though_compaction_took_the_deletion(
    topic: InternalTopic, opened: Open
) -> None:
    mine = opened()
    await mine.put(PARTITION, EARLY)
    await mine.put("other", LATE)
    topic.entries.pop()
    topic.lose()
    async with asyncio.timeout(5.0):
        while await mine.of("other") is not None:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert await mine.of(PARTITION) == EARLY


async def test_what_is_compacted_while_it_is_read_is_read_again(topic: InternalTopic, opened: Open) -> None:
    """A value that was read may have been deleted since, and the deletion be compacted away."""
    await opened().put(PARTITION, EARLY)
    readings = len(topic.readers)
    topic.compacts_while_read = 1
    assert await opened().of(PARTITION) == EARLY
    assert topic.readers_opened - readings >= 2


async def test_what_is_stored_is_known_also_where_nobody_can_write(topic: InternalTopic, opened: Open) -> None:
    """A quota, bookies that are read-only: partitions open nevertheless."""
    mine = opened()
    await mine.put(PARTITION, EARLY)
    topic.refuse = 1_000_000
    topic.lose()
    other = opened()
    assert await other.of(PARTITION) == EARLY
    assert await other.of_now(PARTITION) == EARLY


async def test_a_late_deletion_leaves_what_was_stated_of_the_next_topic_with_that_name(topic: InternalTopic, opened: Open) -> None:
    mine = opened()
    await mine.put(PARTITION, EARLY)
    await mine.put(PARTITION, LATE)
    deletion = write_batch([(PARTITION.encode(), None)], 1, ("deletes", EARLY.encode()))
    Writer(topic, cast(Any, Silent())).send_batch(0, 1, deletion)
    assert await mine.of_now(PARTITION) == LATE
    async with asyncio.timeout(2.0):
        while topic.stored()[-1] != (PARTITION.encode(), LATE.encode()):  # noqa: ASYNC110 - behind the deletion
            await asyncio.sleep(0.005)
    assert await opened().of(PARTITION) == LATE
    assert await stored(topic) == {PARTITION: LATE}


async def test_a_deletion_of_0_2_does_not_say_what_it_deletes(topic: InternalTopic, opened: Open) -> None:
    mine = opened()
    await mine.put(PARTITION, EARLY)
    Writer(topic, cast(Any, Silent())).send_batch(0, 1, write_batch([(PARTITION.encode(), None)], 1))
    await known(mine, None)
    assert await stored(topic) == {}


async def test_what_is_deleted_while_nobody_can_write_is_deleted_later(topic: InternalTopic, opened: Open) -> None:
    mine = opened()
    await mine.put(PARTITION, EARLY)
    topic.refuse = 2
    topic.lose()
    mine.forget({PARTITION: EARLY})
    async with asyncio.timeout(5.0):
        while await stored(topic):  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_what_was_deleted_while_nobody_read_does_not_count_against_what_was_stated_behind_that(
    topic: InternalTopic, opened: Open
) -> None:
    mine = opened()
    await mine.put(PARTITION, LATE)
    topic.refuse = 1_000_000
    readers, topic.readers = topic.readers, []
    writer = Writer(topic, cast(Any, Silent()))
    for number, value in enumerate((None, EARLY.encode())):
        writer.send_batch(number, 1, write_batch([(PARTITION.encode(), value)], 1))
    topic.readers = readers
    topic.lose()
    await known(mine, EARLY)


async def test_deletions_that_were_read_are_remembered_only_while_it_is_loaded(topic: InternalTopic, opened: Open) -> None:
    mine = opened()
    for number in range(10):
        await mine.put(PARTITION, MovedStart(Position(6, number), 100 + number))
        Writer(topic, cast(Any, Silent())).send_batch(0, 1, write_batch([(PARTITION.encode(), None)], 1))
        await known(mine, None)
    assert not mine._read_deleted
