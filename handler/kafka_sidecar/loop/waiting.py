"""Waiting for several things, or for a limited time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Sequence
from typing import Any, Final, Generic, TypeVar

A = TypeVar("A")
T = TypeVar("T")
SLICE: Final = 100


async def within(seconds: float, work: Awaitable[T]) -> T:
    """The result of `work`; TimeoutError, and its end, after so many seconds."""
    async with asyncio.timeout(seconds):
        return await work


@contextlib.asynccontextmanager
async def while_it_goes_on(seconds: float, reached: Callable[[], object]) -> AsyncIterator[None]:
    """TimeoutError when what is `reached` has been the same for so long, give or take a quarter."""
    loop = asyncio.get_running_loop()
    before = reached()
    timer: asyncio.TimerHandle
    async with asyncio.timeout(seconds) as limit:

        def look() -> None:
            nonlocal before, timer
            now = reached()
            if now != before and not limit.expired():
                before = now
                limit.reschedule(loop.time() + seconds)
            timer = loop.call_later(seconds / 4, look)

        timer = loop.call_later(seconds / 4, look)
        try:
            yield
        finally:
            timer.cancel()


async def pause(seconds: float) -> None:
    if seconds > 0:
        await asyncio.sleep(seconds)


async def gathered(works: Iterable[Awaitable[T]]) -> list[T]:
    """Their results, in their order; they go on side by side."""
    return await asyncio.gather(*works)


async def in_slices(work: Callable[[A], Awaitable[T]], of: Sequence[A]) -> list[T]:
    """The results of `work` for each of many, a hundred side by side. Others run between two slices: thousands of tasks
    at once would hold the loop for a second.
    """
    results: list[T] = []
    for begin in range(0, len(of), SLICE):
        results += await gathered([work(one) for one in of[begin : begin + SLICE]])
        await asyncio.sleep(0)
    return results


async def all_done(*works: Awaitable[object]) -> None:
    """When this returns or raises, none of them goes on. Raises what the first of them raised."""
    for failure in await asyncio.gather(*works, return_exceptions=True):
        if isinstance(failure, BaseException):
            raise failure


async def in_a_thread(work: Callable[[], T]) -> T:
    """For what would hold the loop for long, and does not have the interpreter's lock meanwhile."""
    return await asyncio.to_thread(work)


class Pending(Generic[T]):
    """A value that comes later. If its waiter was cancelled, completing it does nothing."""

    __slots__ = ("_future",)

    def __init__(self) -> None:
        self._future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def complete(self, value: T) -> None:
        if not self._future.done():
            self._future.set_result(value)

    def __await__(self) -> Generator[Any, None, T]:
        return self._future.__await__()
