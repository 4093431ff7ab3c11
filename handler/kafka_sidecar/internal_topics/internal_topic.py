"""The sidecars' own topics, made on first use."""

from __future__ import annotations

import contextlib
import logging

from kafka_sidecar.pulsar.admin import AlreadyExists
from kafka_sidecar.pulsar.errors import TopicMissing, Unavailable
from kafka_sidecar.pulsar.ports import Admin

log = logging.getLogger(__name__)


async def partitions_of(admin: Admin, topic: str, partitions: int) -> int:
    """The partitions of an internal topic, which is made if it isn't there; what is there keeps its count. May raise
    PulsarError.
    """
    try:
        return await count_of(admin, topic)
    except TopicMissing:
        log.info("%s is to be made with %d partitions", topic, partitions)
    namespace = topic.partition("://")[2].rpartition("/")[0]
    with contextlib.suppress(AlreadyExists):
        await admin.cluster.create_namespace(namespace)
        # The sidecar has just created this namespace, so it changes nobody else's settings. Its topics have no
        # subscription, so Pulsar would delete their entries without retention.
        await admin.cluster.keep_for_ever(namespace)
    is_new = True
    try:
        await admin.topics.create_topic(topic, partitions)
    except AlreadyExists:
        is_new = False
    try:
        return await count_of(admin, topic)
    except TopicMissing as error:
        if is_new:
            raise
        raise Unavailable(
            f"{topic} is not there yet, though the broker says it is: somebody may be making it, or it was not wholly "
            "deleted"
        ) from error


async def count_of(admin: Admin, topic: str) -> int:
    """The partitions of an internal topic that is there. May raise PulsarError."""
    count = await admin.topics.partitions(topic)
    if count == 0:
        raise Unavailable(
            f"{topic} was made without partitions by somebody else: delete it, and it is made as it must be"
        )
    return count
