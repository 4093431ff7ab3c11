"""A lesser value that compaction has kept makes nobody believe it, while the log still has the one that counts."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from kafka_sidecar.internal_topics import left_out
from kafka_sidecar.internal_topics.log_starts import log_starts
from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.loop.clock import SYSTEM_CLOCK
from kafka_sidecar.loop.ids import new_id
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import Unavailable
from tests.support.fake_broker import until
from tests.support.internal_topic import InternalTopic
from tests.support.moved_starts import EARLY, LATE, PARTITION, Open, compact, write
from tests.support.virtual_time import in_virtual_time


async def test_what_compaction_left_out_for_a_lesser_move_counts_and_is_written_again(
    topic: InternalTopic, opened: Open
) -> None:
    write(topic, LATE, EARLY)
    compact(topic, 0)
    assert await opened().of(PARTITION) == LATE
    await until(lambda: topic.stored()[-1] == (PARTITION.encode(), LATE.encode()))


async def test_a_ledger_that_a_broker_has_just_begun_has_nothing_that_was_left_out(
    topic: InternalTopic, opened: Open
) -> None:
    write(topic, LATE, EARLY)
    topic.compacted_to, topic.left_out = (
        Position(topic.ledger + 1, -1),
        {0},
    )  # as brokers say when they load the topic again
    async with asyncio.timeout(1):
        assert await opened().of(PARTITION) == LATE


async def test_what_was_deleted_before_the_compaction_stays_deleted(topic: InternalTopic, opened: Open) -> None:
    write(topic, LATE, None)
    compact(topic, 0, 1)
    assert await opened().of_now(PARTITION) is None


@pytest.mark.parametrize("fault", ["slow", "lost"])
async def test_of_a_log_that_can_be_read_in_part_only_what_is_compacted_counts(
    topic: InternalTopic, opened: Open, fault: str
) -> None:
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


async def test_the_deletion_of_a_lesser_value_makes_nobody_forget_what_counts_more(
    topic: InternalTopic, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(left_out, "ENTRIES", 3)
    mine, middle = opened(), MovedStart(Position(5, 5), 50)
    await mine.put(PARTITION, LATE)
    readers, topic.readers = topic.readers, []  # it is away
    write(topic, EARLY, None, middle)
    compact(topic, 0, 1, 2)
    for reader in readers:
        reader.events.on_end(Unavailable("connection lost"))
    await until(lambda: topic.stored()[-1] == (PARTITION.encode(), LATE.encode()))
    assert await mine.of_now(PARTITION) == LATE
