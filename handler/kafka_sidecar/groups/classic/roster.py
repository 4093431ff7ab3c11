"""The members of a classic group: by member id, by instance, and the protocols that all of them support."""

from __future__ import annotations

from kafka_sidecar.groups.classic.members import Member, Protocols
from kafka_sidecar.wire.error_code import ErrorCode


class Roster:
    def __init__(self) -> None:
        # In the order in which they joined, which is the order that the leader's assignor gets.
        self.members: dict[str, Member] = {}
        # Ids given with MEMBER_ID_REQUIRED (KIP-394), and until when the member may join with its id.
        self.pending: dict[str, float] = {}
        self._static: dict[str, str] = {}
        self._supported: dict[str, int] = {}

    def add(self, member: Member) -> None:
        self.members[member.member_id] = member
        self.pending.pop(member.member_id, None)
        if member.instance_id is not None:
            self._static[member.instance_id] = member.member_id
        self._count(member.protocols, 1)

    def remove(self, member_id: str) -> Member | None:
        self.pending.pop(member_id, None)
        member = self.members.pop(member_id, None)
        if member is not None:
            self._count(member.protocols, -1)
            if member.instance_id is not None:
                self._static.pop(member.instance_id, None)
        return member

    def rename(self, member: Member, new_id: str) -> None:
        """The same instance under another member id, at its place."""
        assert member.instance_id is not None
        self.members = {(new_id if key == member.member_id else key): value for key, value in self.members.items()}
        member.member_id = self._static[member.instance_id] = new_id

    def set_protocols(self, member: Member, protocols: Protocols) -> None:
        self._count(member.protocols, -1)
        self._count(protocols, 1)
        member.protocols = protocols

    def _count(self, protocols: Protocols, change: int) -> None:
        for name in {name for name, _ in protocols}:
            self._supported[name] = self._supported.get(name, 0) + change
            if not self._supported[name]:
                del self._supported[name]

    # --- questions

    def static(self, instance_id: str) -> Member | None:
        member_id = self._static.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def check(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """Whether this is a member; of an instance only the latest is (KIP-345)."""
        if instance_id is not None:
            known = self._static.get(instance_id)
            if known is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if known != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def supports_any(self, protocols: Protocols) -> bool:
        return any(self._supported.get(name, 0) == len(self.members) for name, _ in protocols)

    def select_protocol(self) -> str:
        """The one that all support and most prefer."""
        candidates = {name for name, count in self._supported.items() if count == len(self.members)}
        votes: dict[str, int] = {}
        for member in self.members.values():
            name = member.vote(candidates)
            votes[name] = votes.get(name, 0) + 1
        return max(votes, key=lambda name: votes[name])

    @property
    def waiting_to_join(self) -> int:
        return sum(member.awaiting_join is not None for member in self.members.values())

    @property
    def all_joined(self) -> bool:
        return not self.pending and all(member.awaiting_join is not None for member in self.members.values())

    @property
    def rebalance_seconds(self) -> float:
        return max((member.rebalance_timeout for member in self.members.values()), default=0) / 1000
