"""All of a consumer group that is stored, and what an event has changed of it.

A crash may cut the records of one event at the end of an entry, so that they are written in an order of
which every beginning is a group that works: members before the epoch that counts them, the epoch before
its target, the target before the steps towards it. What is deleted comes last. A group that is new is
there once its epoch is, so there the epoch comes after all else. The epoch's record says by which members
and topics it was made: who loads others than these makes a new one.
"""

from __future__ import annotations

import hashlib
from typing import Final

from handler.groups.consumer.members import BLANK, ConsumerMember
from handler.groups.consumer.owners import Owners
from handler.groups.records import Key, Record, Value
from handler.groups.records.consumer import (
    Assignment,
    ConsumerKey,
    ConsumerValue,
    CurrentKey,
    CurrentValue,
    EpochKey,
    EpochValue,
    MemberKey,
    RegexKey,
    RegexValue,
    SubscriptionValue,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetValue,
)  # fmt: skip

_ORDER: Final[dict[type, int]] = {MemberKey: 0, RegexKey: 1, EpochKey: 2, TargetKey: 3, TargetEpochKey: 4, CurrentKey: 5}
_LAST: Final = 6
HASH_BYTES: Final = 16


class GroupState:
    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self.epoch = EpochValue(0, 0)
        self.target_epoch = 0
        self.members: dict[str, ConsumerMember] = {}
        self.targets: dict[str, Assignment] = {}
        self.regexes: dict[str, RegexValue] = {}
        self.static: dict[str, str] = {}
        self.owners = Owners()
        self.members_hash = 0  # of who they are and what they subscribe to; it does not depend on their order
        self._changed: dict[ConsumerKey, ConsumerValue | None] = {}
        self._is_stored = False

    def take_records(self) -> list[Record]:
        """What has changed since this was asked the last time."""
        changed, self._changed = self._changed, {}
        last = EpochKey if not self._is_stored else None
        kept = [Record(key, value) for key, value in changed.items() if value is not None]
        gone = [Record(key, None) for key, value in changed.items() if value is None]
        kept.sort(key=lambda record: _LAST if type(record.key) is last else _ORDER[type(record.key)])
        self._is_stored = self._is_stored or any(type(record.key) is EpochKey for record in kept)
        return kept + gone

    # --- changes

    def set_epoch(self, epoch: int, basis: int) -> None:
        self.epoch = self._changed[EpochKey(self._group_id)] = EpochValue(epoch, basis)

    def set_target(self, member_id: str, assignment: Assignment) -> None:
        if self.targets.get(member_id) != assignment:
            self.targets[member_id] = assignment
            self._changed[TargetKey(self._group_id, member_id)] = TargetValue(assignment)

    def set_target_epoch(self, epoch: int) -> None:
        self.target_epoch = epoch
        self._changed[TargetEpochKey(self._group_id)] = TargetEpochValue(epoch)

    def set_regex(self, regex: str, resolved: RegexValue, *, store: bool) -> None:
        self.regexes[regex] = resolved
        if store:
            self._changed[RegexKey(self._group_id, regex)] = resolved

    def remove_regex(self, regex: str) -> None:
        if self.regexes.pop(regex, None) is not None:
            self._changed[RegexKey(self._group_id, regex)] = None

    def put(self, member: ConsumerMember) -> None:
        """A member that is new, or as it is now."""
        before = self.members.get(member.member_id)
        if before == member:
            return
        if before is None or before.told != member.told:
            self._changed[MemberKey(self._group_id, member.member_id)] = member.told
        if (BLANK if before is None else before.current) != member.current:
            self._changed[CurrentKey(self._group_id, member.member_id)] = member.current
        self._hold(member, before)

    def _hold(self, member: ConsumerMember, before: ConsumerMember | None) -> None:
        if before is None or before.told != member.told:
            self._count(member, 1)
            if before is not None:
                self._count(before, -1)
        if before is not None:
            self.owners.remove(before)
            self._drop_instance(before)
        self.owners.add(member)
        self.members[member.member_id] = member
        if member.told.instance_id is not None:
            self.static[member.told.instance_id] = member.member_id

    def _count(self, member: ConsumerMember, sign: int) -> None:
        """The sum of the members' hashes: one that joins costs its own, however many there are."""
        told = member.told
        subscribed = repr((told.instance_id or member.member_id, told.topics, told.regex)).encode()
        one = int.from_bytes(hashlib.blake2b(subscribed, digest_size=HASH_BYTES).digest())
        self.members_hash = (self.members_hash + sign * one) % (1 << 8 * HASH_BYTES)

    def _drop_instance(self, member: ConsumerMember) -> None:
        if member.told.instance_id is not None and self.static.get(member.told.instance_id) == member.member_id:
            del self.static[member.told.instance_id]

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id)
        self._count(member, -1)
        self.owners.remove(member)
        self.targets.pop(member_id, None)
        self._drop_instance(member)
        for key in (MemberKey, CurrentKey, TargetKey):  # a member of which only the rest was deleted would be one that has nothing
            self._changed[key(self._group_id, member_id)] = None

    # --- from the log

    def load(self, stored: dict[Key, Value]) -> None:
        """Become what a term before has stored, in the order in which it was written."""
        self._is_stored = True
        told: dict[str, SubscriptionValue] = {}
        current: dict[str, CurrentValue] = {}
        for key, value in stored.items():
            match key, value:
                case EpochKey(), EpochValue():
                    self.epoch = value
                case TargetEpochKey(), TargetEpochValue():
                    self.target_epoch = value.epoch
                case MemberKey(), SubscriptionValue():
                    told[key.member] = value
                case CurrentKey(), CurrentValue():
                    current[key.member] = value
                case TargetKey(), TargetValue():
                    self.targets[key.member] = value.partitions
                case RegexKey(), RegexValue():
                    self.regexes[key.regex] = value
        latest = {value.instance_id: member_id for member_id, value in told.items() if value.instance_id is not None}
        for member_id, value in told.items():
            # Of two members of one instance the later has taken the place of the other (KIP-345).
            if value.instance_id is None or latest[value.instance_id] == member_id:
                self._load_member(member_id, value, current.pop(member_id, BLANK))
        self._drop_leftovers({*told, *current, *self.targets} - self.members.keys())

    def _load_member(self, member_id: str, told: SubscriptionValue, current: CurrentValue) -> None:
        assigned = self.owners.free_of_others(member_id, current.assigned)
        revoking = self.owners.free_of_others(member_id, current.revoking)
        if (assigned, revoking) != (current.assigned, current.revoking):  # nobody writes this; if it is there, nobody is to have both
            current = current._replace(assigned=assigned, revoking=revoking)
            self._changed[CurrentKey(self._group_id, member_id)] = current
        self._hold(ConsumerMember(member_id, told, current), None)

    def _drop_leftovers(self, member_ids: set[str]) -> None:
        """Records of members that are none: their deletion was cut short. Who took their place may have got nothing yet."""
        if member_ids:
            self.epoch = self.epoch._replace(basis=0)
        for member_id in sorted(member_ids):
            self.targets.pop(member_id, None)
            for key in (MemberKey, CurrentKey, TargetKey):
                self._changed[key(self._group_id, member_id)] = None

    def deletion(self) -> list[Record]:
        """Of the whole group. Without its epoch the group is not there, so that goes first."""
        group = self._group_id
        keys: list[Key] = [EpochKey(group), TargetEpochKey(group)]
        for member_id in self.members:
            keys += [CurrentKey(group, member_id), TargetKey(group, member_id), MemberKey(group, member_id)]
        keys += [RegexKey(group, regex) for regex in self.regexes]
        return [Record(key, None) for key in keys]
