"""Values as they are kept in Pulsar: compressed. Anybody may have written them, so they are unpacked up to a size."""

from __future__ import annotations

import zlib
from typing import Final

from kafka_sidecar.pulsar.errors import Refused

# A million aborted transactions take 8 MiB.
MAX_UNPACKED: Final = 64 * 1024 * 1024


def pack(data: bytes) -> bytes:
    """Raises Refused where nobody would unpack it."""
    if len(data) > MAX_UNPACKED:
        raise Refused(f"{len(data)} bytes are more than are kept of a partition")
    return zlib.compress(data, 1)


def unpack(value: bytes) -> bytes:
    """ValueError where it makes no sense."""
    reader = zlib.decompressobj()
    try:
        data = reader.decompress(value, MAX_UNPACKED)
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if not reader.eof:
        raise ValueError("it is cut off, or too large")
    return data
