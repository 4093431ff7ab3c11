"""Tables of states, and the drawings of them."""

from __future__ import annotations

from enum import Enum, auto

import pytest

from kafka_sidecar.loop.states import Transitions, drawn, next_state


class Light(Enum):
    RED = auto()
    GREEN = auto()
    BROKEN = auto()


WAYS: Transitions[Light] = {Light.RED: {Light.BROKEN, Light.GREEN}, Light.GREEN: {Light.RED}, Light.BROKEN: set()}


def test_a_state_follows_where_the_table_has_a_way() -> None:
    assert next_state(WAYS, Light.RED, Light.GREEN) is Light.GREEN
    with pytest.raises(AssertionError, match="no way from GREEN to BROKEN"):
        next_state(WAYS, Light.GREEN, Light.BROKEN)


def test_a_table_is_drawn_a_line_for_each_state() -> None:
    assert drawn(WAYS).splitlines() == ["    red ──▶ green, broken", "    green ──▶ red", "    broken ──▶ the end"]
