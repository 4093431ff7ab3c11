"""What Pulsar says of one topic, by two questions: neither answer is enough alone."""

from __future__ import annotations

import asyncio
from typing import Final

from kafka_sidecar.pulsar.admin import DescribedTopic, PulsarAdmin
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable, Undescribed
from kafka_sidecar.topics.names import TopicName

# Clients request metadata often, and it changes seldom. Partitions that others add show up after this long.
FRESH_SECONDS: Final = 5.0
# A listing of topics without partitions may be so old: of ten thousand topics with sixteen partitions it has ten
# megabytes.
UNPARTITIONED_SECONDS: Final = 10.0


async def described(admin: PulsarAdmin, name: TopicName) -> tuple[DescribedTopic, str]:
    """A topic, and when it was made. TopicMissing where there is none. Undescribed where there is one, and Pulsar can't
    say when.
    """
    found, created = await asyncio.gather(
        admin.topics.describe(name.pulsar), admin.topics.created_at(name.partition(0)), return_exceptions=True
    )
    # Of a topic that isn't there the first answers 404 and the second 500, in either order.
    if isinstance(found, BaseException):
        raise found
    if not found.partitions:
        try:
            return found, await admin.topics.created_at(name.pulsar)
        except Unavailable as error:
            raise Undescribed(f"topic {name.pulsar} can't be described: {error}") from error
    if isinstance(created, PulsarError):
        # One that was created a moment ago, or that has lost a partition.
        raise Undescribed(
            f"topic {name.pulsar} can't be described, its partition 0 does not answer: {created}"
        ) from created
    if isinstance(created, BaseException):
        raise created
    return found, created
