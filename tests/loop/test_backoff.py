"""Pauses between attempts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kafka_sidecar.loop.backoff import Backoff
from kafka_sidecar.loop.supervised import SupervisedTask


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


async def test_pauses_grow_until_something_works(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    monkeypatch.setattr("kafka_sidecar.loop.supervised.asyncio.sleep", noted)
    backoff = Backoff(1, 4)
    for _ in range(4):
        await backoff.pause()
    backoff.reset()
    await backoff.pause()
    assert pauses == [1, 2, 4, 4, 1]
