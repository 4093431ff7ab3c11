"""What Pulsar says of one topic, by two questions: neither answer is enough alone."""

from __future__ import annotations

import asyncio
from typing import Final

from kafka_sidecar.pulsar.admin import DescribedTopic, PulsarAdmin
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable, Undescribed
from kafka_sidecar.topics.names import TopicName

# A topic's description is reused for 5 s, since clients request Metadata often and it changes seldom. Partitions that
# other tools add show up after this time.
FRESH_SECONDS: Final = 5.0
# The listing of topics without partitions is reused for 10 s. For 10,000 topics with 16 partitions its response has 10
# MB.
UNPARTITIONED_SECONDS: Final = 10.0


async def described(admin: PulsarAdmin, name: TopicName) -> tuple[DescribedTopic, str]:
    """A topic, and when it was made. TopicMissing where there is none. Undescribed where there is one, and Pulsar can't
    say when.
    """
    found, created = await asyncio.gather(
        admin.topics.describe(name.pulsar), admin.topics.created_at(name.partition(0)), return_exceptions=True
    )
    # For a missing topic `describe` fails with 404 and `created_at` with 500, in either order.
    if isinstance(found, BaseException):
        raise found
    if not found.partitions:
        try:
            return found, await admin.topics.created_at(name.pulsar)
        except Unavailable as error:
            raise Undescribed(f"topic {name.pulsar} can't be described: {error}") from error
    if isinstance(created, PulsarError):
        # The topic was created a moment ago, or has lost partition 0.
        raise Undescribed(
            f"topic {name.pulsar} can't be described, its partition 0 does not answer: {created}"
        ) from created
    if isinstance(created, BaseException):
        raise created
    return found, created
