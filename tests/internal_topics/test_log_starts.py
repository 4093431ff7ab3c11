"""Moved log starts: every sidecar hears of them, before it serves anything, and of two moves the greater counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from kafka_sidecar.internal_topics import shared_map
from kafka_sidecar.internal_topics.log_starts import LogStarts
from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.pulsar.entry import CompactionStats, Position, RawEntry
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, TopicMissing, Unavailable
from kafka_sidecar.pulsar.messages import write_batch
from tests.support.fake_broker import until
from tests.support.internal_topic import InternalTopic, Writer
from tests.support.moved_starts import EARLY, LATE, PARTITION, Open, Silent, stored, write


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


async def test_of_two_moves_the_greater_counts_and_is_written_behind_the_lesser(
    topic: InternalTopic, opened: Open
) -> None:
    mine, other = opened(), opened()
    await asyncio.gather(mine.put(PARTITION, LATE), other.put(PARTITION, EARLY))
    for one in (mine, other):
        await known(one, LATE)
    await until(lambda: topic.stored()[-1] == (PARTITION.encode(), LATE.encode()))  # compaction keeps the last


async def test_what_is_lost_is_opened_again_and_an_unstored_move_is_an_error(
    topic: InternalTopic, opened: Open
) -> None:
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


@pytest.mark.parametrize(
    "answer", [TopicMissing("a young broker"), NotPermitted("a token is being replaced"), Unavailable("no broker")]
)
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


async def test_the_start_of_a_topic_that_was_made_again_outlives_the_deletion_of_the_one_before(
    topic: InternalTopic, opened: Open
) -> None:
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


def hold_receipts(topic: InternalTopic) -> Callable[[], None]:
    """The first writer's, until the returned function is called."""
    events, held = topic.writers[0].events, list[tuple[int, int, int]]()
    on_receipt = events.on_receipt
    events.on_receipt = lambda *receipt: held.append(receipt)  # type: ignore[method-assign]

    def give() -> None:
        for receipt in held:
            on_receipt(*receipt)

    return give


async def test_a_receipt_that_comes_behind_the_deletion_of_its_value_brings_nothing_back(
    topic: InternalTopic, opened: Open
) -> None:
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


async def test_a_topic_that_was_there_is_not_missing_because_a_broker_says_so_once(
    topic: InternalTopic, opened: Open
) -> None:
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


async def test_what_is_not_read_in_time_can_not_be_told(
    topic: InternalTopic, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_map, "CURRENT_SECONDS", 0.02)
    mine = opened()
    await mine.put(PARTITION, EARLY)
    for reader in topic.readers:
        reader.permits = 0  # the broker is slow
    await mine.put(PARTITION, LATE)
    with pytest.raises(Unavailable, match="was not read to its end within"):
        await mine.of_now(PARTITION)


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


async def test_a_late_deletion_leaves_what_was_stated_of_the_next_topic_with_that_name(
    topic: InternalTopic, opened: Open
) -> None:
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


async def test_deletions_that_were_read_are_remembered_only_while_it_is_loaded(
    topic: InternalTopic, opened: Open
) -> None:
    mine = opened()
    for number in range(10):
        await mine.put(PARTITION, MovedStart(Position(6, number), 100 + number))
        Writer(topic, cast(Any, Silent())).send_batch(0, 1, write_batch([(PARTITION.encode(), None)], 1))
        await known(mine, None)
    assert not mine._read_deleted
