"""What is looked into at once, and what in a thread."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

from kafka_sidecar.partition.log.unfolding import LARGE_BYTES, LARGE_RECORDS, TURN_BYTES, TURN_RECORDS, Unfolding
from kafka_sidecar.partition.log.unfolding import unfolding as unfolding_of_this_process
from tests.support.fake_broker import until


async def test_what_is_small_is_looked_into_at_once_up_to_a_bound_in_each_turn() -> None:
    unfolding = Unfolding()
    for _ in range(2):
        for _ in range(TURN_RECORDS // LARGE_RECORDS):
            assert not unfolding.is_spent
            assert unfolding.has_time_for(100, LARGE_RECORDS)
        assert unfolding.is_spent
        assert not unfolding.has_time_for(100, 1)
        await asyncio.sleep(0)
        for _ in range(TURN_BYTES // LARGE_BYTES):
            assert unfolding.has_time_for(LARGE_BYTES, 1)
        assert unfolding.is_spent
        await asyncio.sleep(0)


async def test_what_is_large_never_is_and_finding_that_out_takes_its_time() -> None:
    unfolding = Unfolding()
    assert not unfolding.has_time_for(1, LARGE_RECORDS + 1)
    assert unfolding.has_time_for(1, 1)
    for _ in range(TURN_BYTES // LARGE_BYTES):
        assert not unfolding.has_time_for(LARGE_BYTES + 1, 1)
    assert unfolding.is_spent


async def test_one_is_in_work_at_a_time_and_counts() -> None:
    held: list[int] = []
    unfolding = Unfolding()
    unfolding.hold = held.append
    at_work: list[int] = []

    def work(number: int) -> int:
        at_work.append(number)
        return number

    assert await asyncio.gather(
        *(unfolding.entries.look_into(number, partial(work, number)) for number in (1, 2, 3))
    ) == [1, 2, 3]
    assert at_work == [1, 2, 3]
    assert held == [1, -1, 2, -2, 3, -3]


async def test_what_nobody_wants_any_more_is_not_done() -> None:
    unfolding = Unfolding()
    assert await unfolding.entries.look_into(1, lambda: 1, lambda: False) is None
    assert unfolding_of_this_process() is unfolding_of_this_process()


async def test_the_next_piece_waits_for_one_that_was_given_up() -> None:
    """A thread can't be stopped."""
    entries = Unfolding().entries
    may_end = threading.Event()
    begun: list[int] = []

    def work(number: int) -> None:
        begun.append(number)
        may_end.wait(10)

    first = asyncio.create_task(entries.look_into(1, partial(work, 1)))
    await until(lambda: begun)
    first.cancel()
    waits, goes_on = (asyncio.create_task(entries.look_into(1, partial(work, number))) for number in (2, 3))
    await asyncio.sleep(0)
    waits.cancel()
    await asyncio.wait({first, waits})
    assert begun == [1]
    may_end.set()
    await goes_on
    assert begun == [1, 3]


async def test_nobody_waits_for_what_others_have_written() -> None:
    unfolding = Unfolding()
    may_end = threading.Event()
    reading = asyncio.create_task(unfolding.entries.look_into(1, partial(may_end.wait, 10)))
    assert await unfolding.batches.look_into(1, lambda: 2) == 2
    assert await unfolding.questions.look_into(1, lambda: 3) == 3
    may_end.set()
    assert await reading
