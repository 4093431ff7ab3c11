"""The states of a classic group."""

from __future__ import annotations

from kafka_sidecar.groups.classic.state import TRANSITIONS, State
from tests.support.states import check_drawing


def test_the_table_is_the_drawing() -> None:
    check_drawing(State, TRANSITIONS)
