"""How long the network takes to a client and back, as the kernel has measured it."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Final

# Offset of tcpi_rtt in Linux's struct tcp_info. The value is in microseconds.
_RTT_AT: Final = 68
_RTT: Final = struct.Struct("=I")


def round_trip(transport: asyncio.BaseTransport) -> float:
    """Seconds; 0 where the system does not tell."""
    connection = transport.get_extra_info("socket")
    if connection is None or not hasattr(socket, "TCP_INFO"):
        return 0.0
    try:
        told = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RTT_AT + _RTT.size)
    except OSError:
        return 0.0
    return float(_RTT.unpack_from(told, _RTT_AT)[0]) / 1e6 if len(told) >= _RTT_AT + _RTT.size else 0.0
