"""What every sidecar forgets when a client has deleted topics, and who tells it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Mapping
from itertools import islice
from typing import Final

from kafka_sidecar.apis.api import Services
from kafka_sidecar.fleet.peers import PeerUnavailable
from kafka_sidecar.loop.pace import Pace
from kafka_sidecar.loop.waiting import gathered, within
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.topics.names import InvalidTopicName

log = logging.getLogger(__name__)

# A sidecar that died a moment ago is listed for up to a minute. Clients wait half a minute for the whole request.
TELL_SECONDS: Final = 5.0
MOST_TELL_SECONDS: Final = 10.0
# One that does not answer takes one of so many places.
TOLD_TOGETHER: Final = 100
# In a line of the log.
NAMED: Final = 10


async def forget_everywhere(services: Services, topics: Mapping[str, uuid.UUID | None]) -> None:
    """No sidecar serves the topics any more, and the offsets that groups have committed of them go, wherever the groups
    are coordinated.

    A sidecar that can't be reached sees for itself that the topic is gone, a moment later. The topic's id in the
    commits shows that they are of another.
    """
    services.groups.coordinator.forget_topics(topics)
    await asyncio.gather(services.groups.coordinator.forget_offsets(topics), _tell_others(services, topics))


async def _tell_others(services: Services, topics: Mapping[str, uuid.UUID | None]) -> None:
    names = ", ".join([*islice(topics, NAMED), *([f"{len(topics) - NAMED} more"] if len(topics) > NAMED else [])])
    try:
        others = [other for other in await services.groups.leaders.known_others() if other.control]
    except PulsarError as error:
        log.warning(
            "no other sidecar was told of deleted topics (%s): offsets that groups have committed of them stay: %s",
            names,
            error,
        )
        return
    in_full = {services.names.parse(topic).pulsar: topic_id for topic, topic_id in topics.items()}
    until = services.clock() + MOST_TELL_SECONDS

    unreached: list[str] = []
    waiting = iter(others)

    async def tell_one_after_the_other() -> None:
        for other in waiting:
            try:
                left = min(TELL_SECONDS, until - services.clock())
                await within(left, services.peers.topics_deleted(other.control, other.name, in_full))
            except (PeerUnavailable, TimeoutError) as error:
                unreached.append(f"{other.control}: {str(error) or 'no answer in time'}")

    await gathered(tell_one_after_the_other() for _ in range(TOLD_TOGETHER))
    if unreached:
        listed = "; ".join(unreached[:NAMED])
        log.warning(
            "%d of %d sidecars may not know yet of deleted topics (%s): %s", len(unreached), len(others), names, listed
        )


async def forget_here(services: Services, topics: Mapping[str, uuid.UUID | None]) -> None:
    """Another sidecar has deleted them; they are named in full. Consumers of this one are not given their records any
    more.
    """
    pace, deleted = Pace(), set[str]()
    for topic in topics:
        with contextlib.suppress(InvalidTopicName):
            name = services.catalog.names.parse(topic)
            services.catalog.gone(name)
            deleted.add(name.pulsar)
        await pace.maybe_yield()
    await services.partitions.forget_topics(deleted)
    services.groups.coordinator.forget_topics(topics)
    await services.groups.coordinator.forget_offsets(topics)
