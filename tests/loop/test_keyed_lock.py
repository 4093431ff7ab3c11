"""Whoever came first has the lock first, for each key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kafka_sidecar.loop.keyed_lock import KeyedLock


async def until(happened: Callable[[], bool]) -> None:
    for _ in range(2_000):
        if happened():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it has not happened")


async def test_what_came_first_is_done_first_however_long_it_takes() -> None:
    in_turn: KeyedLock[str] = KeyedLock()
    done: list[int] = []

    async def work(number: int) -> None:
        async with in_turn.turn("g"):
            await asyncio.sleep(0.02 / (number + 1))
            done.append(number)

    waiting = [asyncio.create_task(work(number)) for number in range(5)]
    await asyncio.sleep(0)
    assert in_turn.waiting("g") == 5
    assert not in_turn.waiting("other")
    await asyncio.gather(*waiting)
    assert done == [0, 1, 2, 3, 4]
    assert not in_turn.waiting("g")


async def test_one_that_fails_or_is_cancelled_lets_the_next_go_on_and_not_before_its_turn() -> None:
    in_turn: KeyedLock[str] = KeyedLock()
    done: list[str] = []
    go = asyncio.Event()

    async def first() -> None:
        async with in_turn.turn("g"):
            await go.wait()
            done.append("first")

    async def fails() -> None:
        async with in_turn.turn("g"):
            raise ValueError

    async def last() -> None:
        async with in_turn.turn("g"):
            done.append("last")

    tasks = [asyncio.create_task(work()) for work in (first, last, fails, last)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.sleep(0.01)
    assert not done, "one that gives up does not let the next go before the first"
    go.set()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert done == ["first", "last"]
    assert isinstance(tasks[2].exception(), ValueError)
    assert not in_turn._turns
