"""Groups and offsets are deleted, with what is on its way to the log beside them.

Many groups go in pieces: each piece is written with one look at what is pending, then all waits until the log has it.
"""

from __future__ import annotations

import logging
import uuid
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.groups.effects import Group
from kafka_sidecar.groups.records import (
    OffsetCommitKey,
    OffsetCommitValue,
    OffsetKey,
    PendingOffsetKey,
    PendingOffsetValue,
    Record,
)
from kafka_sidecar.groups.shard import Offsets, Shard, TopicPartition
from kafka_sidecar.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

# Groups and offsets that are deleted without a pause of the event loop: 1,000 take some milliseconds.
DELETED_TOGETHER: Final = 1_000


class DeletedGroup(NamedTuple):
    error: ErrorCode
    committed: Sequence[TopicPartition] = ()  # partitions whose committed offsets were deleted with the group


async def delete_groups(shard: Shard, group_ids: Sequence[str]) -> dict[str, DeletedGroup]:
    """What has become of each. May take several pieces: others are served in between."""
    deleted: dict[str, DeletedGroup] = {}
    left = deque(group_ids)
    try:
        await shard.term.all_stored()  # a commit that is being stored may make a group
        while left:
            piece = _delete_all(shard, _taken(left, shard.offsets))
            await shard.term.all_stored()
            deleted |= {group_id: _when_stored(shard, group_id, one) for group_id, one in piece.items()}
    except CoordinatorError as refused:
        return dict.fromkeys(group_ids, DeletedGroup(refused.error)) | deleted
    return deleted


def _taken(left: deque[str], offsets: Mapping[str, Offsets]) -> list[str]:
    """So many groups that others need not wait long while they are deleted."""
    taken: list[str] = []
    room = DELETED_TOGETHER
    while left and room > 0:
        taken.append(left.popleft())
        room -= 1 + len(offsets.get(taken[-1], ()))
    return taken


def _delete_all(shard: Shard, group_ids: Sequence[str]) -> dict[str, DeletedGroup]:
    """Write the deletions of these groups."""
    keys = shard.offset_keys(group_ids)
    deleted: dict[str, DeletedGroup] = {}
    for group_id, of_group in keys.items():
        group = shard.group(group_id)
        # Another request may be deleting the group, and may fail: the answer waits until all is stored.
        if group is None:
            deleted[group_id] = DeletedGroup(ErrorCode.GROUP_ID_NOT_FOUND)
        elif not group.is_empty:
            deleted[group_id] = DeletedGroup(ErrorCode.NON_EMPTY_GROUP)
        else:
            shard.term.store(removed(shard, group, of_group))
            committed = [(key.topic, key.partition) for key in of_group if isinstance(key, OffsetCommitKey)]
            deleted[group_id] = DeletedGroup(ErrorCode.NONE, committed)
    return deleted


def removed(shard: Shard, group: Group, offsets: Iterable[OffsetKey]) -> list[Record]:
    """The records that delete a group, and its offsets with it."""
    shard.remove(group)
    return [*(Record(key, None) for key in offsets), *group.deletion()]


def _when_stored(shard: Shard, group_id: str, deleted: DeletedGroup) -> DeletedGroup:
    """What has become of a group, now that the log has its deletion and what was on its way before that."""
    if deleted.error is not ErrorCode.NONE:
        return deleted
    if (
        again := shard.groups.get(group_id)
    ) is not None:  # a commit in flight has created the group again, and its offset is deleted as well
        shard.carry_out_effects(again)
    since = shard.offsets.get(group_id, {})  # offsets that were committed after the deletion
    return deleted._replace(committed=[partition for partition in deleted.committed if partition not in since])


def is_being_committed(shard: Shard, group_id: str) -> bool:
    return bool(shard.pending.of_group(group_id)) or any(
        record.key.group == group_id for record in shard.term.under_way
    )


def forget_offsets(shard: Shard, group: str, deleted: Mapping[str, uuid.UUID | None]) -> None:
    gone = [
        OffsetCommitKey(group, *partition)
        for partition, value in shard.offsets.get(group, {}).items()
        if partition[0] in deleted and ((topic_id := deleted[partition[0]]) is None or value.counts_for(topic_id))
    ]
    if gone:
        of_the_new = _committed_of_others([*shard.pending.of_partitions(gone), *shard.term.under_way], deleted)
        records = [Record(key, None) for key in gone if key not in of_the_new]
        if records:
            log.info("group %s: %d offsets of deleted topics go", group, len(records))
            shard.term.store(records)


def _committed_of_others(records: Iterable[Record], deleted: Mapping[str, uuid.UUID | None]) -> set[OffsetCommitKey]:
    """The partitions whose offsets these records commit, or put into a transaction, for a topic that has come since the
    deleted one of its name. The older offset counts for nobody there, and a tombstone would overtake the transaction.
    """
    found = set()
    for key, value in records:
        committed = key.committed if isinstance(key, PendingOffsetKey) else key
        offset = value.value if isinstance(value, PendingOffsetValue) else value
        if isinstance(committed, OffsetCommitKey) and isinstance(offset, OffsetCommitValue):
            topic_id = deleted.get(committed.topic)
            if topic_id is not None and not offset.counts_for(topic_id):
                found.add(committed)
    return found
