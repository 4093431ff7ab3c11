"""Tables of states and their drawings."""

from __future__ import annotations

import sys
from enum import Enum
from typing import Any

from kafka_sidecar.loop.states import Transitions, drawn


def check_drawing(states: type[Enum], transitions: Transitions[Any]) -> None:
    """The table has all states, and the docstring of their module draws it."""
    assert list(transitions) == list(states)
    lines = (sys.modules[states.__module__].__doc__ or "").splitlines()
    assert [line for line in lines if "──▶" in line] == drawn(transitions).splitlines()
