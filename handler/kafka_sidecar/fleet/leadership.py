"""Who leads which partition, for as long as the members are the same.

Each member works this out by itself. So it is a function of the topic, the number of its partitions and the members'
node ids, and of nothing that one of them alone knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from kafka_sidecar.coordination.rendezvous import shared_out
from kafka_sidecar.fleet.member import Member

# Topics whose partition leaders are cached: 2,000 topics with 16 partitions each take 0.5 MB. To compute the leaders of
# another topic takes 50 µs.
REMEMBERED_TOPICS: Final = 2_000
# Partitions whose leaders are computed together. For 256 partitions and ten members that takes 3 ms, and the time grows
# faster than the number of partitions.
BLOCK: Final = 256


class Leadership:
    def __init__(self, members: Sequence[Member]) -> None:
        self.members = tuple(sorted(members))
        self._of_nodes = {str(member.node_id): member for member in self.members}
        racks = {member.rack for member in self.members if member.rack}
        self._of_racks = {
            rack: {str(member.node_id): member for member in self.members if member.rack == rack}
            for rack in sorted(racks)
        }
        self._leaders = lru_cache(REMEMBERED_TOPICS)(self._share_out)
        self._readers = lru_cache(REMEMBERED_TOPICS)(self._share_out_in_rack)
        self.replicas = lru_cache(REMEMBERED_TOPICS)(self._replicas)

    @property
    def has_racks(self) -> bool:
        return bool(self._of_racks)

    def leader(self, topic: str, partitions: int, index: int) -> Member:
        block, place = divmod(index, BLOCK)
        return self._leaders(topic, block, _size(block, partitions))[place]

    def replica_in(self, rack: str, topic: str, partitions: int, index: int) -> Member:
        """Where clients in a rack read: the leader, if there is nobody in theirs or the leader is."""
        leader = self.leader(topic, partitions, index)
        if rack == leader.rack or rack not in self._of_racks:
            return leader
        block, place = divmod(index, BLOCK)
        return self._readers(topic, block, _size(block, partitions), rack)[place]

    def _replicas(self, topic: str, partitions: int) -> tuple[tuple[int, ...], ...]:
        """Of each partition the nodes: its leader's first; then of each other rack the one that serves reads there
        (KIP-392).
        """
        found: list[tuple[int, ...]] = []
        for block in range(-(-partitions // BLOCK)):
            size = _size(block, partitions)
            others = {rack: self._readers(topic, block, size, rack) for rack in self._of_racks}
            found += (
                (leader.node_id, *(readers[place].node_id for rack, readers in others.items() if rack != leader.rack))
                for place, leader in enumerate(self._leaders(topic, block, size))
            )
        return tuple(found)

    def _share_out(self, topic: str, block: int, size: int) -> tuple[Member, ...]:
        return tuple(self._of_nodes[node] for node in shared_out(f"{topic} {block}", size, self._of_nodes))

    def _share_out_in_rack(self, topic: str, block: int, size: int, rack: str) -> tuple[Member, ...]:
        members = self._of_racks[rack]
        return tuple(members[node] for node in shared_out(f"{topic} {block}", size, members))


def _size(block: int, partitions: int) -> int:
    return min(BLOCK, partitions - block * BLOCK)
