"""Writing to a socket once a turn of the loop. A system call costs more than most of the work between two of them."""

from __future__ import annotations

import asyncio
from typing import Final

Bytes = bytes | bytearray | memoryview

# From this size on bytes go to the transport within the turn. So the transport can still call pause_writing in that
# turn when its peer reads too slowly (its high-water mark is 64 KiB).
AT_ONCE_BYTES: Final = 128 * 1024


class TurnWriter:
    """All that is written in one turn leaves together, before the loop waits for anything."""

    __slots__ = ("_loop", "_size", "_transport", "_unsent")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._unsent: list[Bytes] = []
        self._size = 0

    def write(self, *parts: Bytes) -> None:
        if not self._unsent:
            self._loop.call_soon(self.flush)
        self._unsent += parts
        for part in parts:
            self._size += len(part)
        if self._size >= AT_ONCE_BYTES:
            self.flush()

    def flush(self) -> None:
        """Hand everything to the transport."""
        unsent = self._unsent
        if not unsent:
            return
        self._unsent = []
        self._size = 0
        if not self._transport.is_closing():
            self._transport.writelines(unsent)
