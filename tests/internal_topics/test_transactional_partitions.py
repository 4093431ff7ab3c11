"""Which partitions have had transactions: the names stay, also of topics that are deleted."""

from __future__ import annotations

import tracemalloc
from typing import Any, cast

from kafka_sidecar.internal_topics.transactional_partitions import transactional_partitions
from kafka_sidecar.loop.clock import SYSTEM_CLOCK
from kafka_sidecar.loop.ids import new_id
from kafka_sidecar.pulsar.entry import Position
from tests.support.internal_topic import InternalTopic

NAMES = 10_000
# As docs/operations.md says.
BYTES_OF_A_NAME = 300


async def test_a_name_costs_little_memory() -> None:
    """So none is deleted: a deletion that lands late would take what is known of the next topic with the name."""
    topic = cast(Any, InternalTopic())
    followed = transactional_partitions(topic, topic, "public/__kafka", SYSTEM_CLOCK, new_id)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for number in range(NAMES):
        followed._take(
            f"persistent://public/default/orders-of-the-day-{number}-partition-0",
            Position(1_000_000 + number, 1_000 + number),
        )
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (after - before) / NAMES < BYTES_OF_A_NAME
