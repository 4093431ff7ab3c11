"""The parts of a sidecar start in their order, and stop in the reverse."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from kafka_sidecar.loop.supervised import SupervisedTask
from kafka_sidecar.process.parts import Part, Parts, part_of


async def test_they_start_forwards_and_stop_backwards() -> None:
    happened: list[str] = []

    async def stop(name: str) -> None:
        await asyncio.sleep(0)
        happened.append(f"{name} stops")

    parts = Parts(
        [
            Part(partial(stop, "client"), lambda: happened.append("client starts")),
            Part(lambda: happened.append("states stop")),  # nothing to start, and nothing to wait for
            Part(partial(stop, "partitions"), lambda: happened.append("partitions start")),
        ]
    )
    parts.start()
    await parts.stop()
    assert happened == ["client starts", "partitions start", "partitions stops", "states stop", "client stops"]


async def test_one_that_fails_to_stop_keeps_no_other_running(caplog: pytest.LogCaptureFixture) -> None:
    stopped: list[str] = []

    async def fail() -> None:
        raise OSError("no route")

    await Parts([Part(lambda: stopped.append("client")), Part(fail), Part(lambda: stopped.append("fleet"))]).stop()
    assert stopped == ["fleet", "client"]
    assert "no route" in caplog.text


async def test_a_task_is_a_part() -> None:
    begun = asyncio.Event()

    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    task = SupervisedTask("test", "t", work)
    parts = Parts([part_of(task)])
    parts.start()
    await begun.wait()
    await parts.stop()
    assert not task.running
