"""Tasks that are kept alive, and calls that are shared."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.loop.tasks import Backoff, BytesASecond, InTurn, KeptAlive, Pending, Shared, every
from kafka_sidecar.pulsar.errors import TopicMissing, Unavailable
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog


@pytest.fixture(autouse=True)
def unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_sidecar.loop.tasks.log", RateLimitedLog(logging.getLogger("kafka_sidecar.loop.tasks"), burst=1_000))


class Work:
    """Ends as it is told, one ending for each time it is begun; then it is done."""

    def __init__(self, *endings: Exception) -> None:
        self.endings = list(endings)
        self.begun = 0

    async def __call__(self) -> None:
        self.begun += 1
        await asyncio.sleep(0)
        if self.endings:
            raise self.endings.pop(0)


def kept(work: Work, **how: object) -> KeptAlive:
    return KeptAlive("test", "t", work, backoff=Backoff(0.001, 0.002), **how)  # type: ignore[arg-type]


async def until(happened: Callable[[], bool]) -> None:
    for _ in range(2_000):
        if happened():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it has not happened")


async def ended(task: KeptAlive) -> None:
    await until(lambda: not task.running)


async def test_whatever_happens_it_is_begun_again_until_it_is_done(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    failures = metrics.INTERNAL_ERRORS.labels("test")
    before = failures._value.get()
    work = Work(Unavailable("away"), KeyError("odd"), ZeroDivisionError(), TopicMissing("gone"))
    task = kept(work)
    task.start()
    task.start()  # it is under way
    await ended(task)
    assert work.begun == 5
    assert failures._value.get() - before == 2, "an error of Pulsar's is none of ours"
    assert "KeyError" in caplog.text


async def test_what_trying_again_can_not_mend_ends_it_and_is_told() -> None:
    told: list[SidecarError] = []
    work = Work(Unavailable("away"), TopicMissing("gone"))
    task = kept(work, on_final=told.append)
    task.start()
    await ended(task)
    assert work.begun == 2
    assert [type(error) for error in told] == [TopicMissing]
    task.start()
    await ended(task)
    assert work.begun == 3, "it can be begun anew"


async def test_pauses_grow_until_something_works(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr("kafka_sidecar.loop.tasks.asyncio.sleep", noted)
    backoff = Backoff(1, 4)
    for _ in range(4):
        await backoff.pause()
    backoff.reset()
    await backoff.pause()
    assert pauses == [1, 2, 4, 4, 1]


async def test_one_that_was_stopped_and_begun_again_runs_once() -> None:
    running = 0
    most = 0

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            await asyncio.sleep(60)
        finally:
            running -= 1

    task = KeptAlive("test", "t", work)
    for _ in range(3):
        task.start()
        await asyncio.sleep(0.01)
        task.stop()
        task.start()
        await asyncio.sleep(0.01)
    assert (running, most) == (1, 1)
    await task.stopped()
    assert running == 0


async def test_each_second_goes_on_after_a_failure() -> None:
    times = 0

    def work() -> None:
        nonlocal times
        times += 1
        raise KeyError(times)

    task = every(0.005, "test", work)
    task.start()
    await until(lambda: times >= 3)
    await task.stopped()


async def test_a_shared_call_is_made_once_and_goes_on_when_those_who_wait_give_up() -> None:
    shared: Shared[str, int] = Shared()
    calls = 0
    go = asyncio.Event()

    async def work() -> int:
        nonlocal calls
        calls += 1
        await go.wait()
        return calls

    first = asyncio.create_task(shared.call("k", work))
    second = asyncio.create_task(shared.call("k", work))
    await asyncio.sleep(0.01)
    first.cancel()
    second.cancel()
    await asyncio.sleep(0.01)
    third = asyncio.create_task(shared.call("k", work))
    await asyncio.sleep(0.01)
    go.set()
    assert await third == 1
    await asyncio.sleep(0)
    assert not len(shared)
    assert await shared.call("k", work) == 2


async def test_nobody_complains_of_a_shared_failure_that_nobody_waits_for(caplog: pytest.LogCaptureFixture) -> None:
    shared: Shared[str, None] = Shared()

    async def fail() -> None:
        await asyncio.sleep(0.01)
        raise Unavailable("away")

    waiting = asyncio.create_task(shared.call("k", fail))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0.02)
    assert "never retrieved" not in caplog.text


async def test_a_call_that_nobody_has_wanted_for_a_while_is_ended() -> None:
    shared: Shared[str, None] = Shared(linger=0.05)
    ended = asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    first = asyncio.create_task(shared.call("k", work))
    await asyncio.sleep(0.01)
    first.cancel()
    await asyncio.sleep(0.01)
    second = asyncio.create_task(shared.call("k", work))  # asked again
    await asyncio.sleep(0.1)
    assert not ended.is_set()
    second.cancel()
    await asyncio.wait_for(ended.wait(), 1)


async def test_who_asks_while_an_unwanted_call_ends_begins_anew() -> None:
    shared: Shared[str, int] = Shared(linger=0.01)
    calls = 0

    async def work() -> int:
        nonlocal calls
        calls += 1
        await asyncio.sleep(60 if calls == 1 else 0)
        return calls

    first = asyncio.create_task(shared.call("k", work))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.sleep(0)
    (call,) = shared._calls.values()
    shared._end_if_unwanted("k", call)
    assert await shared.call("k", work) == 2


async def test_a_cancellation_of_something_that_was_waited_for_does_not_end_a_task() -> None:
    begun = 0

    async def work() -> None:
        nonlocal begun
        begun += 1
        if begun == 1:
            other = asyncio.get_running_loop().create_future()
            other.cancel()
            await other

    task = KeptAlive("test", "t", work, backoff=Backoff(0.001, 0.002))
    task.start()
    await ended(task)
    assert begun == 2


async def test_what_came_first_is_done_first_however_long_it_takes() -> None:
    in_turn: InTurn[str] = InTurn()
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
    in_turn: InTurn[str] = InTurn()
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


async def test_a_value_comes_once_and_not_to_who_was_cancelled() -> None:
    pending = Pending[int]()

    async def wait() -> int:
        return await pending

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0)
    pending.complete(1)
    given = Pending[int]()
    given.complete(1)
    given.complete(2)
    assert await given == 1


async def test_who_asks_again_at_the_moment_at_which_a_call_ends_begins_another() -> None:
    shared: Shared[None, int] = Shared()
    begun = 0

    async def work() -> int:
        nonlocal begun
        begun += 1
        mine = begun
        await asyncio.sleep(0)
        return mine

    async def later_than(number: int) -> int:
        async with asyncio.timeout(2):
            while (found := await shared.call(None, work)) <= number:
                pass
        return found

    first = asyncio.create_task(shared.call(None, work))
    await asyncio.sleep(0)
    task = next(iter(shared._calls.values())).task
    task.add_done_callback(lambda _: None)
    others = [asyncio.create_task(later_than(1)) for _ in range(5)]
    assert await first == 1
    assert {await other for other in others} == {2}


async def test_those_who_take_from_a_rate_wait_in_turn_and_may_use_what_was_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def note(seconds: float) -> None:
        pauses.append(round(seconds, 3))

    monkeypatch.setattr("kafka_sidecar.loop.tasks.pause", note)
    monkeypatch.setattr(asyncio.get_running_loop(), "time", lambda: 1_000.0)
    rate = BytesASecond(rate=100, at_once=400)
    for _ in range(6):
        await rate.take(100)
    assert pauses == [-3.0, -2.0, -1.0, 0.0, 1.0, 2.0]
