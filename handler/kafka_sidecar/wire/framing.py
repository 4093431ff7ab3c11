"""Length-prefixed frames: Kafka and Pulsar both put a big-endian u32 before every frame."""

from __future__ import annotations

import struct
from typing import Final

from kafka_sidecar.errors import FrameTooLarge

_SIZE: Final = struct.Struct(">i")
# Chunks of an unfinished frame are joined 1,000 at a time, since a bytes object per two bytes takes twenty times as
# much memory.
JOINED_PARTS: Final = 1_000


# First bytes that clients of other protocols send.
_OTHERS: Final = {
    b"PRI ": "gRPC",
    b"GET ": "HTTP",
    b"POST": "HTTP",
    b"HEAD": "HTTP",
    b"\x16\x03\x01": "TLS",
    b"\x16\x03\x03": "TLS",
}


def _why_not(begins: bytes, size: int, limit: int) -> str:
    for beginning, protocol in _OTHERS.items():
        if begins.startswith(beginning):
            return f"the peer speaks {protocol}, which this port does not"
    return f"a frame of {size} bytes is over the limit of {limit}"


class FrameBuffer:
    """Collects stream chunks into whole frames.

    A frame larger than the limit is refused from its four length bytes alone, so no peer can make
    the process take memory it did not agree to. Chunks of an unfinished frame are kept as they
    came and joined twice, so that bytes that come one by one cost little more than those that come together.
    """

    __slots__ = ("_blocks", "_held", "_needed", "_parts", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._blocks: list[bytes] = []  # joined chunks, which precede those in _parts
        self._parts: list[bytes] = []
        self._held = 0
        self._needed = 4

    @property
    def announced(self) -> int:
        """The size of the frame that has begun and not ended, once its length is known; else 0."""
        return self._needed if self._needed > 4 else 0

    def feed(self, data: bytes) -> list[memoryview]:
        """The frames that `data` completes, without their length prefix."""
        if self._held:
            self._parts.append(data)
            self._held += len(data)
            if self._held < self._needed:
                if len(self._parts) >= JOINED_PARTS:
                    self._blocks.append(b"".join(self._parts))
                    self._parts = []
                return []
            data = b"".join([*self._blocks, *self._parts])
            self._blocks, self._parts = [], []
        view = memoryview(data)
        end = len(data)
        at = 0
        frames: list[memoryview] = []
        self._needed = 4
        while end - at >= 4:
            (size,) = _SIZE.unpack_from(data, at)
            if size < 0 or size > self.limit:
                raise FrameTooLarge(_why_not(data[at : at + 4], size, self.limit))
            if end - at - 4 < size:
                self._needed = 4 + size
                break
            frames.append(view[at + 4 : at + 4 + size])
            at += 4 + size
        self._held = end - at
        if at < end:
            # A copy, so that the beginning of the next frame does not keep the whole chunk in memory.
            self._parts = [bytes(view[at:])] if at else [data]
        return frames
