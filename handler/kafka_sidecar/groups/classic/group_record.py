"""A classic group as a record, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kafka_sidecar.groups.classic.members import Member
from kafka_sidecar.groups.records import GroupMetadataValue, MemberValue


class Storable(Protocol):
    """The record of a classic group."""

    @property
    def protocol_type(self) -> str | None: ...
    @property
    def generation(self) -> int: ...
    @property
    def protocol(self) -> str | None: ...
    @property
    def leader(self) -> str | None: ...
    @property
    def state_since(self) -> int: ...
    @property
    def members(self) -> Mapping[str, Member]: ...


def group_value(group: Storable, assignments: Mapping[str, bytes]) -> GroupMetadataValue:
    """The group as it is, with the assignments that its members are about to get."""
    members = tuple(
        MemberValue(
            member.member_id,
            member.instance_id,
            member.client_id,
            member.client_host,
            member.rebalance_timeout,
            member.session_timeout,
            member.metadata(group.protocol),
            assignments.get(member.member_id, b""),
        )
        for member in group.members.values()
    )
    return GroupMetadataValue(
        group.protocol_type or "", group.generation, group.protocol, group.leader, group.state_since, members
    )


def stored_members(value: GroupMetadataValue) -> list[Member]:
    return [
        Member(
            item.member_id,
            item.instance_id,
            item.client_id,
            item.client_host,
            item.session_timeout,
            item.rebalance_timeout,
            ((value.protocol or "", item.subscription),),
            item.assignment,
        )
        for item in value.members
    ]
