"""A classic group's requests as the machine sees them, its answers, members and effects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from kafka_sidecar.groups.vocabulary import UNKNOWN_MEMBER_ID, Reply, ResponseFuture
from kafka_sidecar.wire.error_code import ErrorCode

Protocols = tuple[tuple[str, bytes], ...]


class MemberJoin(NamedTuple):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout: int  # session time-out in milliseconds
    rebalance_timeout: int
    protocol_type: str
    protocols: Protocols
    needs_member_id: bool  # KIP-394: a JoinGroup without a member id is answered with a new id and MEMBER_ID_REQUIRED
    # KIP-814: the JoinGroup response may tell the leader to skip the assignment (version 9 and later).
    may_skip_assignment: bool
    new_member_id: str  # the member id to use if the request has none


class MemberSync(NamedTuple):
    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None
    protocol: str | None
    assignments: dict[str, bytes]


class MemberIdentity(NamedTuple):
    member_id: str
    instance_id: str | None


class JoinResult(NamedTuple):
    error: ErrorCode
    member_id: str = UNKNOWN_MEMBER_ID
    generation: int = -1
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    skip_assignment: bool = False
    members: tuple[tuple[str, str | None, bytes], ...] = ()


class SyncResult(NamedTuple):
    error: ErrorCode
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


def sync_refused(error: ErrorCode) -> SyncResult:
    """SyncGroup's error while the shard loads. Clients take COORDINATOR_LOAD_IN_PROGRESS for fatal here: they are to
    join again.
    """
    return SyncResult(ErrorCode.REBALANCE_IN_PROGRESS if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else error)


class FinishSync(NamedTuple):
    """The next step once an assignment is stored."""

    generation: int
    assignments: dict[str, bytes]


class ReplacedMember(NamedTuple):
    """A static member as it was before another instance took its place."""

    member_id: str
    is_leader: bool
    protocols: Protocols
    session_timeout: int
    rebalance_timeout: int


class AnswerStaticMember(NamedTuple):
    """The next step once a static member's new id is stored."""

    response_future: ResponseFuture
    answer: JoinResult
    replaced: ReplacedMember


class StoreGroup(NamedTuple):
    """The group as it is now is to be stored; `then` comes back to the machine when it is."""

    assignments: dict[str, bytes]
    then: FinishSync | AnswerStaticMember | None


Effect = Reply | StoreGroup


@dataclass(slots=True)
class Member:
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout: int
    rebalance_timeout: int
    protocols: Protocols
    assignment: bytes = b""
    is_new: bool = False
    awaiting_join: ResponseFuture = None
    awaiting_sync: ResponseFuture = None
    expires_at: float = 0.0

    def metadata(self, protocol: str | None) -> bytes:
        return next((data for name, data in self.protocols if name == protocol), b"")

    def vote(self, candidates: set[str]) -> str:
        return next(name for name, _ in self.protocols if name in candidates)

    @property
    def waits_for_answer(self) -> bool:
        """Whether it need not send heartbeats: it waits for us. A new one may wait only so long."""
        return not self.is_new and (self.awaiting_join is not None or self.awaiting_sync is not None)
