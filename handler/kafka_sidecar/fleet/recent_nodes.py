"""The nodes that were there a moment ago, and the node ids that clients may still know. Pure: the time is an
argument.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kafka_sidecar.fleet.member import Member

# Metadata lists a node for 75 s after it was last seen. Each member stores twice in that time that it is up.
RECENT_SECONDS: Final = 75.0
MOST_NODES: Final = 1_000


class RecentNodes:
    def __init__(self) -> None:
        self._seen: dict[int, tuple[Member, float]] = {}
        self._named: dict[int, None] = {}  # node ids, in the order in which Metadata named them first

    def see(self, member: Member, at: float) -> None:
        """The last place of a node counts."""
        known = self._seen.get(member.node_id)
        if known is None or known[1] <= at:
            self._seen.pop(member.node_id, None)
            self._seen[member.node_id] = (member, at)
        if len(self._seen) > MOST_NODES:
            del self._seen[next(iter(self._seen))]

    def at(self, now: float) -> list[Member]:
        """Those that were there a moment before `now`."""
        self._seen = {
            node_id: (member, at) for node_id, (member, at) in self._seen.items() if now - at < RECENT_SECONDS
        }
        return [member for member, _ in self._seen.values()]

    def tell(self, node_ids: Iterable[int]) -> None:
        """Metadata names these now, or that of other sidecars did before."""
        for node_id in node_ids:
            self._named[node_id] = None
        while len(self._named) > MOST_NODES:
            del self._named[next(iter(self._named))]

    def were_advertised(self, node_ids: Iterable[int]) -> list[int]:
        """Those of them that clients may know."""
        return [node_id for node_id in node_ids if node_id in self._named]
