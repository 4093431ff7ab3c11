"""All of a consumer group that is stored, and what an event has changed of it.

A crash may cut the records of one event at the end of an entry, so that they are written in an order of
which every beginning is a group that works: members before the epoch that counts them, the epoch before
its target, the target before the steps towards it. Deletions come last. A group that is new is
there once its epoch is, so there the epoch comes after all else. The epoch's record says by which members
and topics it was made: who loads others than these makes a new one.
"""

from __future__ import annotations

import hashlib
from typing import Final

from kafka_sidecar.groups.consumer.members import NEW_MEMBER, ConsumerMember
from kafka_sidecar.groups.consumer.owners import Owners
from kafka_sidecar.groups.records import Key, Record, Value
from kafka_sidecar.groups.records.consumer import (
    Assignment,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerKey,
    ConsumerValue,
    CurrentMemberAssignmentKey,
    CurrentMemberAssignmentValue,
    MemberMetadataKey,
    MemberMetadataValue,
    RegularExpressionKey,
    RegularExpressionValue,
    TargetAssignmentMemberKey,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataKey,
    TargetAssignmentMetadataValue,
)

_ORDER: Final[dict[type, int]] = {
    MemberMetadataKey: 0,
    RegularExpressionKey: 1,
    ConsumerGroupMetadataKey: 2,
    TargetAssignmentMemberKey: 3,
    TargetAssignmentMetadataKey: 4,
    CurrentMemberAssignmentKey: 5,
}
_LAST: Final = 6
# With 128 bits, the sums of the hashes of two different sets of members are not equal by chance.
HASH_BYTES: Final = 16


class GroupState:
    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self.epoch = ConsumerGroupMetadataValue(0, 0)
        self.target_epoch = 0
        self.members: dict[str, ConsumerMember] = {}
        self.targets: dict[str, Assignment] = {}
        self.regexes: dict[str, RegularExpressionValue] = {}
        self.static: dict[str, str] = {}
        self.owners = Owners()
        # Sum of a hash per member, of its id and its subscription; independent of the order of members.
        self.members_hash = 0
        self._unwritten: dict[ConsumerKey, ConsumerValue | None] = {}
        self._is_stored = False

    def take_records(self) -> list[Record]:
        """The changes since the last call."""
        changed, self._unwritten = self._unwritten, {}
        last = ConsumerGroupMetadataKey if not self._is_stored else None
        kept = [Record(key, value) for key, value in changed.items() if value is not None]
        gone = [Record(key, None) for key, value in changed.items() if value is None]
        kept.sort(key=lambda record: _LAST if type(record.key) is last else _ORDER[type(record.key)])
        self._is_stored = self._is_stored or any(type(record.key) is ConsumerGroupMetadataKey for record in kept)
        return kept + gone

    # --- changes

    def set_epoch(self, epoch: int, metadata_hash: int) -> None:
        self.epoch = self._unwritten[ConsumerGroupMetadataKey(self._group_id)] = ConsumerGroupMetadataValue(
            epoch, metadata_hash
        )

    def set_target(self, member_id: str, assignment: Assignment) -> None:
        if self.targets.get(member_id) != assignment:
            self.targets[member_id] = assignment
            self._unwritten[TargetAssignmentMemberKey(self._group_id, member_id)] = TargetAssignmentMemberValue(
                assignment
            )

    def set_target_epoch(self, epoch: int) -> None:
        self.target_epoch = epoch
        self._unwritten[TargetAssignmentMetadataKey(self._group_id)] = TargetAssignmentMetadataValue(epoch)

    def set_regex(self, regex: str, resolved: RegularExpressionValue, *, store: bool) -> None:
        self.regexes[regex] = resolved
        if store:
            self._unwritten[RegularExpressionKey(self._group_id, regex)] = resolved

    def remove_regex(self, regex: str) -> None:
        if self.regexes.pop(regex, None) is not None:
            self._unwritten[RegularExpressionKey(self._group_id, regex)] = None

    def put(self, member: ConsumerMember) -> None:
        """A member that is new, or as it is now."""
        before = self.members.get(member.member_id)
        if before == member:
            return
        if before is None or before.metadata != member.metadata:
            self._unwritten[MemberMetadataKey(self._group_id, member.member_id)] = member.metadata
        if (NEW_MEMBER if before is None else before.current) != member.current:
            self._unwritten[CurrentMemberAssignmentKey(self._group_id, member.member_id)] = member.current
        self._hold(member, before)

    def _hold(self, member: ConsumerMember, before: ConsumerMember | None) -> None:
        if before is None or before.metadata != member.metadata:
            self._add_to_members_hash(member, 1)
            if before is not None:
                self._add_to_members_hash(before, -1)
        if before is not None:
            self.owners.remove(before)
            self._drop_instance(before)
        self.owners.add(member)
        self.members[member.member_id] = member
        if member.metadata.instance_id is not None:
            self.static[member.metadata.instance_id] = member.member_id

    def _add_to_members_hash(self, member: ConsumerMember, sign: int) -> None:
        """The sum of the members' hashes: one that joins costs its own, however many there are."""
        metadata = member.metadata
        subscribed = repr((metadata.instance_id or member.member_id, metadata.topics, metadata.regex)).encode()
        one = int.from_bytes(hashlib.blake2b(subscribed, digest_size=HASH_BYTES).digest())
        self.members_hash = (self.members_hash + sign * one) % (1 << 8 * HASH_BYTES)

    def _drop_instance(self, member: ConsumerMember) -> None:
        if member.metadata.instance_id is not None and self.static.get(member.metadata.instance_id) == member.member_id:
            del self.static[member.metadata.instance_id]

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id)
        self._add_to_members_hash(member, -1)
        self.owners.remove(member)
        self.targets.pop(member_id, None)
        self._drop_instance(member)
        for key in (
            MemberMetadataKey,
            CurrentMemberAssignmentKey,
            TargetAssignmentMemberKey,
            # The metadata is deleted first: if a crash cuts the deletion short, the remaining records are not loaded as
            # a member.
        ):
            self._unwritten[key(self._group_id, member_id)] = None

    # --- from the log

    def load(self, stored: dict[Key, Value]) -> None:
        """Become what a term before has stored, in the order in which it was written."""
        self._is_stored = True
        metadata: dict[str, MemberMetadataValue] = {}
        current: dict[str, CurrentMemberAssignmentValue] = {}
        for key, value in stored.items():
            match key, value:
                case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue():
                    self.epoch = value
                case TargetAssignmentMetadataKey(), TargetAssignmentMetadataValue():
                    self.target_epoch = value.epoch
                case MemberMetadataKey(), MemberMetadataValue():
                    metadata[key.member] = value
                case CurrentMemberAssignmentKey(), CurrentMemberAssignmentValue():
                    current[key.member] = value
                case TargetAssignmentMemberKey(), TargetAssignmentMemberValue():
                    self.targets[key.member] = value.partitions
                case RegularExpressionKey(), RegularExpressionValue():
                    self.regexes[key.regex] = value
        latest = {
            value.instance_id: member_id for member_id, value in metadata.items() if value.instance_id is not None
        }
        for member_id, value in metadata.items():
            # If two members have the same group.instance.id, the later one has replaced the other (KIP-345).
            if value.instance_id is None or latest[value.instance_id] == member_id:
                self._load_member(member_id, value, current.pop(member_id, NEW_MEMBER))
        self._drop_leftovers({*metadata, *current, *self.targets} - self.members.keys())

    def _load_member(
        self, member_id: str, metadata: MemberMetadataValue, current: CurrentMemberAssignmentValue
    ) -> None:
        assigned = self.owners.free_of_others(member_id, current.assigned)
        revoking = self.owners.free_of_others(member_id, current.revoking)
        if (assigned, revoking) != (
            current.assigned,
            current.revoking,
        ):  # no coordinator writes a partition with two owners; if the log has one, the second loses it
            current = current._replace(assigned=assigned, revoking=revoking)
            self._unwritten[CurrentMemberAssignmentKey(self._group_id, member_id)] = current
        self._hold(ConsumerMember(member_id, metadata, current), None)

    def _drop_leftovers(self, member_ids: set[str]) -> None:
        """Records of members that are none: their deletion was cut short. The member that took their place may have got
        nothing yet.
        """
        if member_ids:
            self.epoch = self.epoch._replace(metadata_hash=0)
        for member_id in sorted(member_ids):
            self.targets.pop(member_id, None)
            for key in (MemberMetadataKey, CurrentMemberAssignmentKey, TargetAssignmentMemberKey):
                self._unwritten[key(self._group_id, member_id)] = None

    def deletion(self) -> list[Record]:
        """Of the whole group. Without its epoch the group is not there, so that goes first."""
        group = self._group_id
        keys: list[Key] = [ConsumerGroupMetadataKey(group), TargetAssignmentMetadataKey(group)]
        for member_id in self.members:
            keys += [
                CurrentMemberAssignmentKey(group, member_id),
                TargetAssignmentMemberKey(group, member_id),
                MemberMetadataKey(group, member_id),
            ]
        keys += [RegularExpressionKey(group, regex) for regex in self.regexes]
        return [Record(key, None) for key in keys]
