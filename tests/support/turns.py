"""How long the loop runs one thing."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable


async def longest_turn(work: Awaitable[object]) -> tuple[float, float]:
    """Of the turns of the loop until `work` is done the longest, and all together: in seconds of this thread's
    processor.
    """
    longest = last = 0.0
    gc.collect()
    gc.freeze()  # what the tests have loaded is not to be looked through
    stop = asyncio.Event()

    async def watch() -> None:
        nonlocal longest, last
        while not stop.is_set():
            await asyncio.sleep(0)
            longest, last = max(longest, time.thread_time() - last), time.thread_time()

    watching = asyncio.create_task(watch())
    await asyncio.sleep(0)
    longest, last = 0.0, time.thread_time()
    began = last
    await work
    stop.set()
    await watching
    gc.unfreeze()
    return longest, last - began
