"""Tests of rules that count minutes: they run in the simulation's virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from tests.simulation.loop import SimulatedLoop


def in_virtual_time(work: Coroutine[Any, Any, None]) -> None:
    loop = SimulatedLoop(lambda: 0.0)
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(work)
        assert not loop.failures
    finally:
        loop.bury()
        asyncio.set_event_loop(None)
        loop.close()
