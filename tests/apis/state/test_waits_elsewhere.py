"""A sidecar that leaves waits for no rebalance that another coordinates."""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.apis.state.waits_elsewhere import WaitsElsewhere
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.wire.error_code import ErrorCode


async def answer(future: asyncio.Future[str]) -> str:
    return await future


async def test_who_waits_gets_the_answer() -> None:
    waits, future = WaitsElsewhere(), asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(waits.wait(answer(future)))
    await asyncio.sleep(0)
    future.set_result("joined")
    assert await waiting == "joined"
    assert not waits._waiting


async def test_leaving_ends_the_wait_of_all_and_of_those_that_come_later() -> None:
    waits, future = WaitsElsewhere(), asyncio.get_running_loop().create_future()
    waiting = [asyncio.create_task(waits.wait(answer(future))) for _ in range(2)]
    await asyncio.sleep(0)
    waits.leave()
    for one in (*waiting, asyncio.create_task(waits.wait(answer(asyncio.get_running_loop().create_future())))):
        with pytest.raises(CoordinatorError) as raised:
            async with asyncio.timeout(5):
                await one
        assert raised.value.error is ErrorCode.NOT_COORDINATOR


async def test_a_client_that_goes_ends_its_wait() -> None:
    waits, future = WaitsElsewhere(), asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(waits.wait(answer(future)))
    for _ in range(2):
        await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert future.cancelled()
    assert not waits._waiting
