"""Who leads which partition, for as long as the members are the same.

Each member works this out by itself. So it is a function of the topic, the number of its partitions and the members' node ids, and
of nothing that one of them alone knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from handler.coordination.rendezvous import shared_out
from handler.fleet.member import Member

# Topics whose leaders are remembered: with 16 partitions each that is half a megabyte. Others are worked out again, in 50 µs.
REMEMBERED_TOPICS: Final = 2_000


class Leadership:
    def __init__(self, members: Sequence[Member]) -> None:
        self.members = tuple(sorted(members))
        self._of_nodes = {str(member.node_id): member for member in self.members}
        racks = {member.rack for member in self.members if member.rack}
        self._of_racks = {rack: {str(member.node_id): member for member in self.members if member.rack == rack} for rack in sorted(racks)}
        self._leaders = lru_cache(REMEMBERED_TOPICS)(self._share_out)
        self._readers = lru_cache(REMEMBERED_TOPICS)(self._share_out_in_rack)
        self.replicas = lru_cache(REMEMBERED_TOPICS)(self._replicas)

    @property
    def has_racks(self) -> bool:
        return bool(self._of_racks)

    def leader(self, topic: str, partitions: int, index: int) -> Member:
        return self._leaders(topic, partitions)[index]

    def replica_in(self, rack: str, topic: str, partitions: int, index: int) -> Member:
        """Where clients in a rack read: the leader, if there is nobody in theirs or the leader is."""
        leader = self.leader(topic, partitions, index)
        if rack == leader.rack or rack not in self._of_racks:
            return leader
        return self._readers(topic, partitions, rack)[index]

    def _replicas(self, topic: str, partitions: int) -> tuple[tuple[int, ...], ...]:
        """Of each partition the nodes: its leader's first; then of each other rack the one that serves reads there (KIP-392)."""
        others = {rack: self._readers(topic, partitions, rack) for rack in self._of_racks}
        return tuple(
            (leader.node_id, *(readers[index].node_id for rack, readers in others.items() if rack != leader.rack))
            for index, leader in enumerate(self._leaders(topic, partitions))
        )

    def _share_out(self, topic: str, partitions: int) -> tuple[Member, ...]:
        return tuple(self._of_nodes[node] for node in shared_out(topic, partitions, self._of_nodes))

    def _share_out_in_rack(self, topic: str, partitions: int, rack: str) -> tuple[Member, ...]:
        members = self._of_racks[rack]
        return tuple(members[node] for node in shared_out(topic, partitions, members))
