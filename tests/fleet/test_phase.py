"""What a sidecar is in its fleet."""

from __future__ import annotations

from kafka_sidecar.fleet.phase import TRANSITIONS, FleetPhase
from tests.support.states import check_drawing


def test_the_table_is_the_drawing() -> None:
    check_drawing(FleetPhase, TRANSITIONS)
