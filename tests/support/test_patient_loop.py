"""A machine that is busy with other things makes no timer come before what is ready."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from kafka_sidecar.loop.waiting import in_a_thread
from tests.support.patient_loop import PatientLoop

T = TypeVar("T")


def test_all_that_is_ready_comes_before_a_timer() -> None:
    async def many_slow_turns() -> None:
        for _ in range(20):
            time.sleep(0.005)  # noqa: ASYNC251 - another process has the processor
            await asyncio.sleep(0)

    async def go() -> bool:
        working = asyncio.create_task(many_slow_turns())
        await asyncio.sleep(0.01)
        return working.done()

    assert _run(go())


def test_a_thread_that_is_late_comes_before_a_timer() -> None:
    async def go() -> bool:
        working = asyncio.create_task(in_a_thread(lambda: time.sleep(0.05)))
        await asyncio.sleep(0.01)
        return working.done()

    assert _run(go())


def test_a_thread_that_waits_for_the_loop_does_not_hold_it() -> None:
    may_go = threading.Event()

    async def go() -> None:
        working = asyncio.create_task(in_a_thread(may_go.wait))
        await asyncio.sleep(0.01)
        may_go.set()
        await working

    _run(go())


@pytest.mark.parametrize("seconds", [0.0, 0.02, 3600.0])
def test_a_loop_for_which_nothing_can_come_does_not_wait(seconds: float) -> None:
    async def go() -> tuple[float, float]:
        begun, really = asyncio.get_running_loop().time(), time.monotonic()
        await asyncio.sleep(seconds)
        return asyncio.get_running_loop().time() - begun, time.monotonic() - really

    passed, waited = _run(go())
    assert seconds * 0.99 <= passed < seconds + 0.01
    assert waited < 60


@pytest.mark.parametrize("seconds", [0.0, 0.02])
def test_one_with_an_open_socket_has_the_time_of_others(seconds: float) -> None:
    async def go() -> float:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        async with server:
            begun, really = asyncio.get_running_loop().time(), time.monotonic()
            await asyncio.sleep(seconds)
            assert time.monotonic() - really >= seconds * 0.99
            return asyncio.get_running_loop().time() - begun

    assert seconds * 0.99 <= _run(go()) < seconds + 0.01


def test_one_that_waits_for_a_process_has_the_time_of_others() -> None:
    async def go() -> int:
        process = await asyncio.create_subprocess_exec("sleep", "0.05")
        async with asyncio.timeout(10):
            return await process.wait()

    assert _run(go()) == 0


def test_who_waits_by_asking_for_the_time_comes_to_its_end() -> None:
    async def go() -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + 0.002
        while loop.time() < until:  # noqa: ASYNC110
            await asyncio.sleep(0)

    _run(go())


def _run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=PatientLoop) as runner:
        return runner.run(work)
