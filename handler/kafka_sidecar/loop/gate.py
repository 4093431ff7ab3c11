"""A gate that many wait at. When it opens they go on a few at a time: thousands in one turn would hold the loop."""

from __future__ import annotations

import asyncio
from itertools import islice
from typing import Final

from kafka_sidecar.loop.waiting import SLICE

# The number of waiting requests that are released in one turn of the event loop: some 5 ms of work.
IN_ONE_TURN: Final = SLICE


class Gate:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_open = True
        self._waiting: dict[asyncio.Future[None], None] = {}

    def close(self) -> None:
        self._is_open = False

    def open(self) -> None:
        self._is_open = True
        self._let_some_pass()

    def _let_some_pass(self) -> None:
        if not self._is_open:
            return
        for one in list(islice(self._waiting, IN_ONE_TURN)):
            del self._waiting[one]
            if not one.done():
                one.set_result(None)
        if self._waiting:
            self._loop.call_soon(self._let_some_pass)

    async def passed(self, until: float | None) -> None:
        """Wait at a closed gate, at most until then by the loop's clock. In the order in which they came all go on."""
        if self._is_open:
            return
        one: asyncio.Future[None] = self._loop.create_future()
        self._waiting[one] = None
        try:
            async with asyncio.timeout_at(until):
                await one
        except TimeoutError:
            pass
        finally:
            self._waiting.pop(one, None)
