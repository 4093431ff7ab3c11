"""The fleet of a test: members that the directory names, and that were never asked."""

from __future__ import annotations

from typing import Any, cast

from kafka_sidecar.fleet.fleet import SETTLED_SECONDS, Fleet
from kafka_sidecar.fleet.member import Member
from kafka_sidecar.fleet.phase import FleetPhase
from kafka_sidecar.model.sidecar import SidecarInfo


class _Candidates:
    def __init__(self) -> None:
        self.there: tuple[Member, ...] = ()

    def fleet(self) -> list[SidecarInfo]:
        return [
            SidecarInfo(
                f"sidecar-{one.node_id}",
                one.node_id,
                f"{one.host}:{one.port}",
                "",
                one.rack or "",
                external=":".join(map(str, one.external or ())),
            )
            for one in self.there
        ]

    def shared_nodes(self) -> list[int]:
        return []

    def missing(self) -> list[str]:
        return []

    async def look_again(self) -> bool:
        return True


class TestFleet(Fleet):
    """Its members are as the test says. What it sends away it sends at once."""

    __test__ = False

    def __init__(self, own: Member, *others: Member) -> None:
        self.now = 0.0
        self.returned: list[int] = []
        self._named = _Candidates()
        super().__init__(own, "me", self._named, cast(Any, None), lambda: self.now, self.returned.append)
        self._become(FleetPhase.SERVING)
        self.change(*others)

    def change(self, *others: Member) -> None:
        """Everybody has seen it by now."""
        self._named.there = others
        self._introduce()  # none of them has a control port
        self.now += SETTLED_SECONDS

    def depart(self) -> None:
        self._become(FleetPhase.LEAVING)
        self._update()
        self.send_away()

    def sends_away(self, now: float) -> bool:
        return super().sends_away(self.now)
