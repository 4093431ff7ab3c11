"""The fleet of a test: members that the directory names, and that were never asked."""

from __future__ import annotations

from typing import Any, cast

from handler.coordination.directory import Leader
from handler.fleet.fleet import SETTLED_SECONDS, Fleet
from handler.fleet.member import Member


class TestFleet(Fleet):
    """Its members are as the test says. What it sends away it sends at once."""

    __test__ = False

    def __init__(self, own: Member, *others: Member) -> None:
        self.now = 0.0
        self._there: tuple[Member, ...] = ()
        super().__init__(own, "me", self._named, tuple, cast(Any, None), cast(Any, None), lambda: self.now)
        self._serves = True
        self.change(*others)

    def change(self, *others: Member) -> None:
        """Everybody has seen it by now."""
        self._there = others
        self._introduce()  # none of them has a control port
        self.now += SETTLED_SECONDS

    def depart(self) -> None:
        self._leaving = True
        self._update()
        self.send_away()

    def sends_away(self, now: float) -> bool:
        return super().sends_away(self.now)

    def _named(self) -> list[Leader]:
        return [
            Leader(
                f"sidecar-{one.node_id}", one.node_id, f"{one.host}:{one.port}", "", one.rack or "",
                external=":".join(map(str, one.external or ())),
            )
            for one in self._there
        ]  # fmt: skip
