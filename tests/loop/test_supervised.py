"""Tasks that go on until they are stopped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.loop.backoff import Backoff
from kafka_sidecar.loop.supervised import SupervisedTask, every
from kafka_sidecar.pulsar.errors import TopicMissing, Unavailable
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog


@pytest.fixture(autouse=True)
def unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "kafka_sidecar.loop.supervised.log",
        RateLimitedLog(logging.getLogger("kafka_sidecar.loop.supervised"), burst=1_000),
    )


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


def kept(work: Work, **how: object) -> SupervisedTask:
    return SupervisedTask("test", "t", work, backoff=Backoff(0.001, 0.002), **how)  # type: ignore[arg-type]


async def until(happened: Callable[[], bool]) -> None:
    for _ in range(2_000):
        if happened():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it has not happened")


async def ended(task: SupervisedTask) -> None:
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

    task = SupervisedTask("test", "t", work)
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


async def test_a_cancellation_of_something_that_was_waited_for_does_not_end_a_task() -> None:
    begun = 0

    async def work() -> None:
        nonlocal begun
        begun += 1
        if begun == 1:
            other = asyncio.get_running_loop().create_future()
            other.cancel()
            await other

    task = SupervisedTask("test", "t", work, backoff=Backoff(0.001, 0.002))
    task.start()
    await ended(task)
    assert begun == 2
