"""The owner of each partition, assigned or still to be revoked. No member is given a partition of another."""

from __future__ import annotations

import uuid

from kafka_sidecar.groups.consumer.members import ConsumerMember
from kafka_sidecar.groups.records.consumer import Assignment


class Owners:
    def __init__(self) -> None:
        self._owners: dict[uuid.UUID, dict[int, str]] = {}

    def of(self, topic_id: uuid.UUID, index: int) -> str | None:
        partitions = self._owners.get(topic_id)
        return None if partitions is None else partitions.get(index)

    def free_of_others(self, member_id: str, assignment: Assignment) -> Assignment:
        """The part of it that no other member has."""
        free = {
            topic_id: frozenset(index for index in indexes if self.of(topic_id, index) in (None, member_id))
            for topic_id, indexes in assignment.items()
        }
        return {topic_id: indexes for topic_id, indexes in free.items() if indexes}

    def add(self, member: ConsumerMember) -> None:
        for assignment in (member.current.assigned, member.current.revoking):
            for topic_id, indexes in assignment.items():
                partitions = self._owners.setdefault(topic_id, {})
                for index in indexes:
                    owner = partitions.setdefault(index, member.member_id)
                    assert owner == member.member_id, (
                        f"partition {index} of {topic_id} has two owners: {owner} and {member.member_id}"
                    )

    def remove(self, member: ConsumerMember) -> None:
        for assignment in (member.current.assigned, member.current.revoking):
            for topic_id, indexes in assignment.items():
                partitions = self._owners[topic_id]
                for index in indexes:
                    partitions.pop(index, None)
                if not partitions:
                    del self._owners[topic_id]
