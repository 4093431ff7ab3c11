"""What takes long to look into is looked into in a thread: a few hundred bytes may unfold to megabytes, or to many
thousand records.

Three lines form: what readers are given as it comes, what somebody asks for, and what producers write. A process looks
into one piece of each line at a time. A question does not wait for what readers are given, and a producer waits for
other producers' batches alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

from kafka_sidecar.loop.waiting import in_a_thread

# Larger batches are decoded in a thread, since each takes some milliseconds. The bytes are limited too, because a small
# batch may have as many headers as it has bytes.
LARGE_BYTES: Final = 64 * 1024
LARGE_RECORDS: Final = 1_000
# Limits in bytes and records for all batches that are decoded in one turn of the event loop.
TURN_BYTES: Final = 256 * 1024
TURN_RECORDS: Final = 3_000
# While a piece waits for its thread, the caller is notified every 2 s that this process is busy, and not a broker slow.
DELAY_SECONDS: Final = 2.0

T = TypeVar("T")


class Line:
    """One piece at a time, in the order in which they come."""

    def __init__(self, hold: Callable[[int], None]) -> None:
        self._hold = hold
        self._turn = asyncio.Lock()

    async def look_into(
        self,
        size: int,
        work: Callable[[], T],
        is_wanted: Callable[[], bool] = lambda: True,
        on_delayed: Callable[[], None] = lambda: None,
    ) -> T | None:
        """Run `work` in a thread when its turn comes. None if nobody wants it any more. `size`: bytes that it may take
        meanwhile.

        A thread can't be stopped. If the caller is cancelled, the next piece waits for the thread all the same.
        """
        is_given_up = False
        piece = asyncio.create_task(self._in_turn(size, work, lambda: not is_given_up and is_wanted()))
        try:
            while not piece.done():
                done, _ = await asyncio.wait({piece}, timeout=DELAY_SECONDS)
                if not done:
                    on_delayed()
        except asyncio.CancelledError:
            is_given_up = True
            piece.add_done_callback(_forget)
            raise
        return piece.result()

    async def _in_turn(self, size: int, work: Callable[[], T], is_wanted: Callable[[], bool]) -> T | None:
        async with self._turn:
            if not is_wanted():
                return None
            self._hold(size)
            try:
                return await in_a_thread(work)
            finally:
                self._hold(-size)


def _forget(piece: asyncio.Task[object]) -> None:
    if not piece.cancelled():
        piece.exception()  # The caller was cancelled. Reading the exception prevents asyncio's warning that nobody did.


class Unfolding:
    def __init__(self) -> None:
        self.hold: Callable[[int], None] = lambda _: (
            None
        )  # Adds bytes to the memory account of the process; a negative number releases them
        self.entries = Line(self._hold)
        self.questions = Line(self._hold)
        self.batches = Line(self._hold)
        self._turn_bytes = self._turn_records = 0

    def _hold(self, more: int) -> None:
        self.hold(more)

    @property
    def is_spent(self) -> bool:
        """Whether much was looked into in this turn of the loop."""
        return self._turn_bytes >= TURN_BYTES or self._turn_records >= TURN_RECORDS

    def has_time_for(self, size: int, records: int) -> bool:
        """Whether something is small, and may be looked into in this turn of the loop. It counts, for it takes time to
        find out.
        """
        if not self._turn_bytes and not self._turn_records:
            asyncio.get_running_loop().call_soon(self._begin_turn)
        is_small = size <= LARGE_BYTES and records <= LARGE_RECORDS
        fits = self._turn_bytes + size <= TURN_BYTES and self._turn_records + records <= TURN_RECORDS
        self._turn_bytes += min(size, LARGE_BYTES)
        self._turn_records += records if is_small else 0
        return is_small and fits

    def _begin_turn(self) -> None:
        self._turn_bytes = self._turn_records = 0


_of_processes: WeakKeyDictionary[object, Unfolding] = WeakKeyDictionary()


def this_process() -> object:
    """It has one loop."""
    return asyncio.get_running_loop()


def unfolding() -> Unfolding:
    """That of this process."""
    process = this_process()
    found = _of_processes.get(process)
    if found is None:
        found = _of_processes[process] = Unfolding()
    return found
