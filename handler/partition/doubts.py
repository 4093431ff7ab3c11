"""Appends whose sequence does not follow what is folded here.

Another sidecar may have written what is missing since this one last looked. A producer that is told
OUT_OF_ORDER_SEQUENCE_NUMBER begins a new epoch and sends the same batch again, so nobody is told so
before the log has been read to its end. Later appends of the same producer wait behind, in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from kio.schema.errors import ErrorCode

from handler.partition.errors import error_code
from handler.partition.producers import Verdict
from handler.pulsar.errors import PulsarError
from handler.wire.records import BatchHeader


class Doubted(NamedTuple):
    header: BatchHeader
    payload: bytes
    deadline: float
    done: Callable[[Verdict], None]


class Doubts:
    def __init__(self, read_to_end: Callable[[], Awaitable[None]], append: Callable[[Doubted, bool], None]) -> None:
        self._read_to_end = read_to_end
        self._append = append  # with whether the end was learnt after the append came
        self._held: dict[int, list[tuple[int, Doubted]]] = {}  # by producer, each with the round it came in
        self._round = 0
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return sum(map(len, self._held.values()))

    def holds(self, producer_id: int) -> bool:
        return producer_id in self._held

    def hold(self, append: Doubted) -> None:
        self._held.setdefault(append.header.producer_id, []).append((self._round, append))
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._held:
                self._round += 1
                try:
                    await self._read_to_end()
                except PulsarError as error:
                    self.fail(error_code(error))
                    return
                held, self._held = self._held, {}
                for appends in held.values():
                    for came_in, append in appends:
                        self._append(append, came_in < self._round)
        finally:
            self._task = None

    def fail(self, code: ErrorCode) -> None:
        held, self._held = self._held, {}
        for appends in held.values():
            for _, append in appends:
                append.done(Verdict(code, -1))

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
