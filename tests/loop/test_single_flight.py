"""Calls that callers share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from kafka_sidecar.loop.single_flight import SingleFlight
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.telemetry.limits import RateLimitedLog


@pytest.fixture(autouse=True)
def unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "kafka_sidecar.loop.single_flight.log",
        RateLimitedLog(logging.getLogger("kafka_sidecar.loop.single_flight"), burst=1_000),
    )


async def until(happened: Callable[[], bool]) -> None:
    for _ in range(2_000):
        if happened():
            return
        await asyncio.sleep(0.001)
    raise AssertionError("it has not happened")


async def test_a_shared_call_is_made_once_and_goes_on_when_those_who_wait_give_up() -> None:
    shared: SingleFlight[str, int] = SingleFlight()
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
    shared: SingleFlight[str, None] = SingleFlight()

    async def fail() -> None:
        await asyncio.sleep(0.01)
        raise Unavailable("away")

    waiting = asyncio.create_task(shared.call("k", fail))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.sleep(0.02)
    assert "never retrieved" not in caplog.text


async def test_a_call_that_nobody_has_wanted_for_a_while_is_ended() -> None:
    shared: SingleFlight[str, None] = SingleFlight(linger=0.05)
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
    shared: SingleFlight[str, int] = SingleFlight(linger=0.01)
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


async def test_who_asks_again_at_the_moment_at_which_a_call_ends_begins_another() -> None:
    shared: SingleFlight[None, int] = SingleFlight()
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


async def test_a_call_after_is_not_the_one_that_was_begun_before() -> None:
    shared: SingleFlight[str, int] = SingleFlight()
    begun, go = 0, asyncio.Event()

    async def work() -> int:
        nonlocal begun
        begun += 1
        number = begun
        await go.wait()
        return number

    first = asyncio.create_task(shared.call("k", work))
    await asyncio.sleep(0)
    later = [asyncio.create_task(shared.call_after("k", work)) for _ in range(3)]
    await asyncio.sleep(0)
    go.set()
    assert await first == 1
    assert await asyncio.gather(*later) == [2, 2, 2]
    assert await shared.call_after("k", work) == 3
