"""Tasks that go on for as long as they are wanted, whatever happens in them.

A task that ends with an exception nobody thought of is a partition that nobody reads any more. So each
is a `KeptAlive`: a loop with a cause, a back-off and a counter.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Hashable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar, Final, Generic, TypeVar

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

# A topic that moves is back within some tens of milliseconds.
FIRST_DELAY: Final = 0.05
# Kafka clients' own retry.backoff.max.ms is 1 s: what they ask again for is tried as often.
LONGEST_DELAY: Final = 2.0
# Less than 5 ms, with the one piece of work that goes on when it is over.
AT_A_TIME_SECONDS: Final = 0.003


class Backoff:
    """Pauses that grow until something has worked."""

    __slots__ = ("_first", "_longest", "_next")

    def __init__(self, first: float = FIRST_DELAY, longest: float = LONGEST_DELAY) -> None:
        self._first = first
        self._longest = longest
        self._next = first

    def reset(self) -> None:
        self._next = self._first

    async def pause(self) -> None:
        delay = self._next
        self._next = min(2 * delay, self._longest)
        await asyncio.sleep(delay)


class Pace:
    """Lets others run in the middle of long work, so that nothing holds the loop for longer than 5 ms."""

    __slots__ = ("_rested_at",)

    # How fast this machine works decides when others run: a simulation decides it itself.
    clock: ClassVar[Callable[[], float]] = time.perf_counter

    def __init__(self) -> None:
        self._rested_at = Pace.clock()

    async def rest(self) -> None:
        """To be called between pieces of work that are short."""
        if Pace.clock() - self._rested_at > AT_A_TIME_SECONDS:
            await asyncio.sleep(0)
            self._rested_at = Pace.clock()


class KeptAlive:
    """`work` returns when there is nothing left to do; after an exception it is called again, after a pause.

    An error that trying again can't mend ends the task where `on_final` is given, and is told to it.
    """

    def __init__(
        self, kind: str, subject: str, work: Callable[[], Awaitable[None]], *,
        on_final: Callable[[SidecarError], None] | None = None, backoff: Backoff | None = None,
    ) -> None:  # fmt: skip
        self._kind = kind.replace("_", " ")
        self._where = kind  # a label of the counter: one of a few
        self._subject = subject
        self._work = work
        self._on_final = on_final
        self.backoff = backoff or Backoff()
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        return self._task is not None

    def start(self) -> None:
        """Begin, if it is not under way."""
        if self._task is None:
            self.backoff.reset()
            self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def stopped(self) -> None:
        """Stop, and wait until it has."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        try:
            while True:
                try:
                    await self._work()
                    return
                except SidecarError as error:
                    if not error.retriable and self._on_final is not None:
                        self._forget()
                        self._on_final(error)
                        return
                    log.info(f"the {self._kind} of %s is tried again: %s", self._subject, error)
                except (Exception, asyncio.CancelledError) as error:
                    if isinstance(error, asyncio.CancelledError) and self._is_stopped():
                        raise
                    metrics.INTERNAL_ERRORS.labels(self._where).inc()
                    log.exception(f"the {self._kind} of %s failed and is begun again", self._subject)
                await self.backoff.pause()
        finally:
            self._forget()

    def _is_stopped(self) -> bool:
        """Whether this task was cancelled itself, and not only something that it waited for."""
        task = asyncio.current_task()
        return self._task is not task or task is None or task.cancelling() > 0

    def _forget(self) -> None:
        """The task is no more: `start` begins another."""
        if self._task is asyncio.current_task():
            self._task = None


K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


A = TypeVar("A")
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
    """The results of `work` for each of many, a hundred side by side. Others run between two slices: thousands of tasks at once would hold
    the loop for a second.
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


class BytesASecond:
    """A rate that all who take from it share, in the order in which they ask. What was not taken lately may be taken at once."""

    def __init__(self, rate: float, at_once: float) -> None:
        self._rate = rate
        self._saved = at_once / rate  # seconds
        self._taken_until = -math.inf  # when all that was taken is paid for

    async def take(self, count: int) -> None:
        self.spend(count)
        await pause(self._taken_until - asyncio.get_running_loop().time())

    def spend(self, count: int) -> None:
        """Take it at once, whatever was taken before: others wait longer."""
        now = asyncio.get_running_loop().time()
        self._taken_until = max(self._taken_until, now - self._saved) + count / self._rate


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


class _Turns:
    __slots__ = ("lock", "waiting")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0


class InTurn(Generic[K]):
    """Turns about one subject come in the order in which they were asked for; subjects do not wait for each other."""

    def __init__(self) -> None:
        self._turns: dict[K, _Turns] = {}

    def __len__(self) -> int:
        """Subjects about which somebody waits or has a turn."""
        return len(self._turns)

    def waiting(self, subject: K) -> int:
        turns = self._turns.get(subject)
        return 0 if turns is None else turns.waiting

    @contextlib.asynccontextmanager
    async def turn(self, subject: K) -> AsyncIterator[None]:
        """Wait until all that came before is done, or has given up."""
        turns = self._turns.setdefault(subject, _Turns())
        turns.waiting += 1
        try:
            async with turns.lock:
                yield
        finally:
            turns.waiting -= 1
            if not turns.waiting:
                del self._turns[subject]


class _Call(Generic[T]):
    __slots__ = ("task", "waiting")

    def __init__(self, task: asyncio.Task[T]) -> None:
        self.task = task
        self.waiting = 0


class Shared(Generic[K, T]):
    """Calls under way, one for each key: callers of the same key wait for the same call.

    A call goes on when its callers give up, so that the next caller finds it further on; with `linger` for
    so many seconds.
    """

    def __init__(self, linger: float | None = None) -> None:
        self._linger = linger
        self._calls: dict[K, _Call[T]] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def __contains__(self, key: K) -> bool:
        """Whether a call with this key is under way."""
        call = self._calls.get(key)
        return call is not None and not call.task.done()

    def begin(self, key: K, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        """Begin a call, if it is not under way, and let nobody wait for it."""
        self._begun(key, work)

    async def call(self, key: K, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        call = self._begun(key, work)
        call.waiting += 1
        try:
            return await asyncio.shield(call.task)
        finally:
            call.waiting -= 1
            if not call.waiting and self._linger is not None and not call.task.done():
                asyncio.get_running_loop().call_later(self._linger, self._end_if_unwanted, key, call)

    def _begun(self, key: K, work: Callable[[], Coroutine[Any, Any, T]]) -> _Call[T]:
        call = self._calls.get(key)
        if call is None or call.task.done():  # one that has just ended is forgotten a moment later
            call = self._calls[key] = _Call(asyncio.create_task(work()))
            call.task.add_done_callback(partial(self._done, key))
        return call

    def _done(self, key: K, task: asyncio.Task[T]) -> None:
        if (call := self._calls.get(key)) is not None and call.task is task:
            del self._calls[key]
        if task.cancelled():
            return
        failure = task.exception()  # everybody may have given up
        if failure is not None and not isinstance(failure, SidecarError):
            metrics.INTERNAL_ERRORS.labels("shared_call").inc()
            log.warning("a shared call failed: %r", failure)

    def _end_if_unwanted(self, key: K, call: _Call[T]) -> None:
        if not call.waiting and self._calls.get(key) is call:
            del self._calls[key]  # the next call begins anew
            call.task.cancel()

    async def finished(self, seconds: float) -> None:
        """Wait for what is under way, for a while."""
        tasks = [call.task for call in self._calls.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    def stop(self) -> None:
        for call in self._calls.values():
            call.task.cancel()

    async def close(self) -> None:
        tasks = [call.task for call in self._calls.values()]
        self.stop()
        await asyncio.gather(*tasks, return_exceptions=True)


def every(seconds: float, kind: str, work: Callable[[], object]) -> KeptAlive:
    """`work`, a function or a coroutine function, each so many seconds; one that fails does not stop the next."""

    async def go_on() -> None:
        while True:
            await asyncio.sleep(seconds)
            result = work()
            if inspect.isawaitable(result):
                await result

    return KeptAlive(kind, "this sidecar", go_on, backoff=Backoff(seconds, seconds))
