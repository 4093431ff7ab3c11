"""A consumer group's requests, answers, members and effects."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, Protocol

from kafka_sidecar.groups.records import Record
from kafka_sidecar.groups.records.consumer import Assignment, CurrentMemberAssignmentValue, MemberMetadataValue
from kafka_sidecar.wire.error_code import ErrorCode

JOIN_GROUP_MEMBER_EPOCH: Final = 0
LEAVE_GROUP_MEMBER_EPOCH: Final = -1
LEAVE_GROUP_STATIC_MEMBER_EPOCH: Final = -2  # sent by a static member that leaves and will come back

NO_PARTITIONS: Final[Assignment] = {}


class MemberState(IntEnum):
    """Where a member is on its way to its target (org.apache.kafka.coordinator.group.modern.MemberState)."""

    STABLE = 0
    UNREVOKED = 1  # the member must revoke partitions, and stays in its epoch until it confirms that
    UNRELEASED = 2  # the member waits for partitions that other members must revoke


NEW_MEMBER: Final = CurrentMemberAssignmentValue(0, 0, MemberState.STABLE, NO_PARTITIONS, NO_PARTITIONS)


@dataclass(frozen=True, slots=True)
class ConsumerMember:
    member_id: str
    metadata: MemberMetadataValue
    current: CurrentMemberAssignmentValue

    @property
    def epoch(self) -> int:
        return self.current.epoch

    @property
    def is_classic(self) -> bool:
        return self.metadata.classic is not None


class Topic(NamedTuple):
    topic_id: uuid.UUID
    partitions: int


class RequiredTopics(NamedTuple):
    """The topics that a group or a request depends on, by name and by regular expression."""

    names: frozenset[str]
    regexes: frozenset[str] = frozenset()


class InvalidRegex(Exception):
    """Not a regular expression, in the words of its parser."""


class Topics(Protocol):
    """The topics image that groups are assigned by. Names are those that clients use."""

    @property
    def version(self) -> int: ...  # changes whenever `get` may return another result
    def knows(self, required_topics: RequiredTopics) -> bool: ...
    def get(self, name: str) -> Topic | None: ...
    def name_of(self, topic_id: uuid.UUID) -> str | None: ...
    def matching(self, regex: str) -> frozenset[str]: ...


class MemberHeartbeat(NamedTuple):
    """A heartbeat. None where nothing has changed since the last."""

    member_id: str
    epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout: int  # in milliseconds; −1: unchanged
    topics: tuple[str, ...] | None
    regex: str | None
    assignor: str | None
    owned: Assignment | None
    client_id: str
    client_host: str

    @property
    def is_full(self) -> bool:
        """Members tell everything when they join, and when an answer did not reach them."""
        subscribed = self.topics is not None or self.regex is not None
        return self.epoch == JOIN_GROUP_MEMBER_EPOCH or (
            self.rebalance_timeout >= 0 and subscribed and self.owned is not None
        )


class HeartbeatResult(NamedTuple):
    error: ErrorCode
    message: str | None = None
    member_id: str = ""
    epoch: int = 0
    interval: int = 0  # milliseconds until the next heartbeat
    assignment: Assignment | None = None


class Refusal(Exception):
    """The request changes nothing, and this is why."""

    def __init__(self, error: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.error = error


class GroupTooLarge(Refusal):
    def __init__(self, group_id: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, f"Group {group_id} is too large to be stored.")


class StoreRecords(NamedTuple):
    """Records to be stored together."""

    records: list[Record]


class Downgrade(NamedTuple):
    """Only members of the classic protocol are left: the group goes on as a classic one."""

    rebalance: bool
