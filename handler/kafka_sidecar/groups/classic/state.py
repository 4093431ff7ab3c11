"""The states of a classic group, as DescribeGroups names them (ClassicGroupState).

    empty ──▶ preparing, dead
    preparing ──▶ empty, completing, dead
    completing ──▶ preparing, stable, dead
    stable ──▶ preparing, dead
    dead ──▶ dead

Preparing it waits for its members to join, completing for the leader's assignment.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from kafka_sidecar.loop.states import Transitions


class State(StrEnum):
    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


TRANSITIONS: Final[Transitions[State]] = {
    State.EMPTY: {State.PREPARING, State.DEAD},
    State.PREPARING: {State.EMPTY, State.COMPLETING, State.DEAD},
    State.COMPLETING: {State.PREPARING, State.STABLE, State.DEAD},
    State.STABLE: {State.PREPARING, State.DEAD},
    State.DEAD: {State.DEAD},
}
