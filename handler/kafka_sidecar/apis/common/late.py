"""Questions that take too long. A connection's answers keep the order of its requests, so whatever stands behind a slow
one waits.

Only questions have this limit. Produce, Fetch, JoinGroup, SyncGroup and all that changes something have time-outs
of their own. A question that is late is answered with an error after which every client asks again, looked up in
the Java client 4.2 and librdkafka 2.15. The work that it had begun goes on, and a client that asks again joins it.

Metadata, OffsetForLeaderEpoch, ListOffsets   LEADER_NOT_AVAILABLE: librdkafka takes NOT_LEADER_OR_FOLLOWER for final in
                                              ListOffsets, and the Java admin REQUEST_TIMED_OUT in Metadata. A topic
                                              that was known before is shown as it was: Java forgets the partitions of
                                              one with an error
FindCoordinator                               COORDINATOR_NOT_AVAILABLE: the one that every Java client looks up again
                                              for
OffsetFetch, DescribeGroups, ListGroups,      COORDINATOR_LOAD_IN_PROGRESS: the others end consumers of before Kafka
                                              3.9, or
ConsumerGroupDescribe                         reach librdkafka's application
DescribeTopicPartitions                       no error is asked again for; the page ends before the topic that is late
DescribeCluster                               no error is asked again for; REQUEST_TIMED_OUT says what it is
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, TypeVar

from kafka_sidecar.apis.api import Call
from kafka_sidecar.wire.error_code import ErrorCode

T = TypeVar("T")
L = TypeVar("L")

# Shorter than the shortest session of a group member (6 s), whose heartbeat may stand behind the question.
LATE_AFTER_SECONDS: Final = 5.0

LATE_TOPIC: Final = ErrorCode.LEADER_NOT_AVAILABLE
LATE_COORDINATOR: Final = ErrorCode.COORDINATOR_NOT_AVAILABLE
LATE_GROUP: Final = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
LATE_CLUSTER: Final = ErrorCode.REQUEST_TIMED_OUT


async def in_time(call: Call, work: Awaitable[T], late: L) -> T | L:
    """The answer to a question, or a part of it; `late` when the call's time is over, however many parts there were
    before.
    """
    try:
        async with asyncio.timeout_at(call.late_at) as limit:
            return await work
    except TimeoutError:
        if not limit.expired():
            raise  # the work's own
        return late
