"""The states of a client's connection."""

from __future__ import annotations

from kafka_sidecar.server.connection_state import TRANSITIONS, ConnectionState
from tests.support.states import check_drawing


def test_the_table_is_the_drawing() -> None:
    check_drawing(ConnectionState, TRANSITIONS)
