"""States with a table of the ways between them. A module that has one draws it in its docstring, and a test holds the
two together.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from enum import Enum
from typing import TypeVar

S = TypeVar("S", bound=Enum)

Transitions = Mapping[S, Set[S]]


def next_state(transitions: Transitions[S], state: S, wanted: S) -> S:
    """`wanted`, if there is a way to it."""
    assert wanted in transitions[state], f"there is no way from {state.name} to {wanted.name}"
    return wanted


def drawn(transitions: Transitions[S]) -> str:
    """A line for each state, in the order of the enum."""
    lines = []
    for state, following in transitions.items():
        names = [one.name.lower() for one in type(state) if one in following]
        lines.append(f"    {state.name.lower()} ──▶ {', '.join(names) or 'the end'}")
    return "\n".join(lines)
