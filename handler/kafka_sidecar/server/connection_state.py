"""What a client's connection does with requests.

    serving ──▶ draining
    draining ──▶ leaving
    leaving ──▶ the end

Draining it begins no request, and answers those that it has begun. Leaving it has sent its end, and drops what still
comes until the client has ended too. A connection may be cut in each of them.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from kafka_sidecar.loop.states import Transitions


class ConnectionState(Enum):
    SERVING = auto()
    DRAINING = auto()
    LEAVING = auto()


TRANSITIONS: Final[Transitions[ConnectionState]] = {
    ConnectionState.SERVING: {ConnectionState.DRAINING},
    ConnectionState.DRAINING: {ConnectionState.LEAVING},
    ConnectionState.LEAVING: set(),
}
