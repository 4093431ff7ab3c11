"""What a group has committed, asked and set through a running sidecar, as any client would."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import CommitFailedError, UnknownMemberIdError

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.wire.error_code import ErrorCode

# A coordinator reads its log within seconds; one under load took 13 s.
LOAD_SECONDS: Final = 60.0
ASK_AGAIN_SECONDS: Final = 0.2
NOT_YET: Final = frozenset(
    (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
)


class GroupHasMembers(SidecarError):
    """Its offsets are theirs to set."""


async def committed_offsets(bootstrap: str, group: str) -> dict[tuple[str, int], int]:
    kafka = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await kafka.start()
    try:
        await _loaded(kafka, group)
        found = await kafka.list_consumer_group_offsets(group)
    finally:
        await kafka.close()
    return {(at.topic, at.partition): one.offset for at, one in found.items() if one.offset >= 0}


async def _loaded(kafka: AIOKafkaAdminClient, group: str) -> None:
    """Wait until the group's coordinator has read its log: before that aiokafka takes its refusal for an empty
    answer.
    """
    async with asyncio.timeout(LOAD_SECONDS):
        while True:
            (answer,) = await kafka.describe_consumer_groups([group])
            ((code, *_),) = answer.groups
            if code not in NOT_YET:
                return
            await asyncio.sleep(ASK_AGAIN_SECONDS)


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
