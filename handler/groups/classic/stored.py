"""A classic group as a record, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from handler.groups.classic.members import Member
from handler.groups.records import GroupValue, MemberValue

if TYPE_CHECKING:
    from handler.groups.classic.machine import ClassicGroup


def group_value(group: ClassicGroup, assignments: Mapping[str, bytes]) -> GroupValue:
    """The group as it is, with the parts that its members are about to get."""
    members = tuple(
        MemberValue(
            member.member_id, member.instance_id, member.client_id, member.client_host, member.rebalance_timeout,
            member.session_timeout, member.metadata(group.protocol), assignments.get(member.member_id, b""),
        )
        for member in group.members.values()
    )  # fmt: skip
    return GroupValue(group.protocol_type or "", group.generation, group.protocol, group.leader, group.state_since, members)


def stored_members(value: GroupValue) -> list[Member]:
    return [
        Member(
            item.member_id, item.instance_id, item.client_id, item.client_host, item.session_timeout, item.rebalance_timeout,
            ((value.protocol or "", item.subscription),), item.assignment,
        )
        for item in value.members
    ]  # fmt: skip
