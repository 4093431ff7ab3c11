"""Values that come later."""

from __future__ import annotations

import asyncio

from kafka_sidecar.loop.waiting import Pending


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
