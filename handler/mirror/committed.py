"""What a group has committed, asked and set through a running sidecar, as any client would."""

from __future__ import annotations

from collections.abc import Mapping

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import CommitFailedError, UnknownMemberIdError

from handler.errors import SidecarError


class GroupHasMembers(SidecarError):
    """Its offsets are theirs to set."""


async def committed_offsets(bootstrap: str, group: str) -> dict[tuple[str, int], int]:
    kafka = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await kafka.start()
    try:
        found = await kafka.list_consumer_group_offsets(group)
    finally:
        await kafka.close()
    return {(at.topic, at.partition): one.offset for at, one in found.items() if one.offset >= 0}


async def commit(bootstrap: str, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
    if not offsets:
        return
    kafka = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group, enable_auto_commit=False)
    await kafka.start()
    try:
        wanted = {TopicPartition(topic, index): offset for (topic, index), offset in offsets.items()}
        kafka.assign(list(wanted))
        await kafka.commit(wanted)
    except (CommitFailedError, UnknownMemberIdError) as error:
        raise GroupHasMembers(f"the group {group} has members: stop them first") from error
    finally:
        await kafka.stop()
