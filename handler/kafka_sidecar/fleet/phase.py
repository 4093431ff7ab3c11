"""What this sidecar is in its fleet.

    starting ──▶ serving, leaving
    serving ──▶ leaving
    leaving ──▶ the end

Starting it looks for the others, and leads nothing if others lead. Leaving it leads nothing any more, and sends its
clients to those who do.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final

from kafka_sidecar.loop.states import Transitions


class FleetPhase(Enum):
    STARTING = auto()
    SERVING = auto()
    LEAVING = auto()


TRANSITIONS: Final[Transitions[FleetPhase]] = {
    FleetPhase.STARTING: {FleetPhase.SERVING, FleetPhase.LEAVING},
    FleetPhase.SERVING: {FleetPhase.LEAVING},
    FleetPhase.LEAVING: set(),
}
