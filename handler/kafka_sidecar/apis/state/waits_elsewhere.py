"""Requests that wait for the members of a group at another sidecar.

A rebalance may take minutes. A sidecar that leaves does not stay for it: its clients ask the coordinator themselves, as
they do when the coordinator leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.wire.error_code import ErrorCode

T = TypeVar("T")


class WaitsElsewhere:
    def __init__(self) -> None:
        self._waiting: set[asyncio.Task[Any]] = set()
        self._has_left = False

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`. When this sidecar leaves, NOT_COORDINATOR."""
        if self._has_left:
            work.close()
            raise CoordinatorError(ErrorCode.NOT_COORDINATOR)
        task = asyncio.create_task(work)
        self._waiting.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if task in self._waiting:
                raise
            raise CoordinatorError(ErrorCode.NOT_COORDINATOR) from None
        finally:
            self._waiting.discard(task)

    def leave(self) -> None:
        self._has_left = True
        waiting, self._waiting = self._waiting, set()
        for task in waiting:
            task.cancel()
