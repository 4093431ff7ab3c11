"""Writing to a socket once a turn of the loop. A system call costs more than most of the work between two of them."""

from __future__ import annotations

import asyncio

Bytes = bytes | bytearray | memoryview


class TurnWriter:
    """What is written in one turn leaves together, before the loop waits for anything."""

    __slots__ = ("_loop", "_transport", "_unsent")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._unsent: list[Bytes] = []

    def write(self, *parts: Bytes) -> None:
        if not self._unsent:
            self._loop.call_soon(self.flush)
        self._unsent += parts

    def flush(self) -> None:
        """Hand everything to the transport."""
        unsent = self._unsent
        if not unsent:
            return
        self._unsent = []
        if not self._transport.is_closing():
            self._transport.writelines(unsent)
