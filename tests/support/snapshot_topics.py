"""`SnapshotTopic` over a modelled internal topic."""

from __future__ import annotations

from typing import Any, cast

from kafka_sidecar.internal_topics.snapshot_topic import SnapshotTopic
from kafka_sidecar.loop.clock import SYSTEM_CLOCK
from kafka_sidecar.loop.ids import new_id
from kafka_sidecar.pulsar.errors import NotPermitted
from tests.support.internal_topic import InternalTopic


def states(topic: InternalTopic) -> SnapshotTopic:
    return SnapshotTopic(cast(Any, topic), cast(Any, topic), "public/__kafka", SYSTEM_CLOCK, new_id)


async def value_of(one: SnapshotTopic, key: bytes) -> bytes | None:
    kept = await one.find(key)
    return None if kept is None else kept.value


async def refused(*_: Any, **__: Any) -> Any:
    """What a broker answers to a role without the right."""
    raise NotPermitted("a right that this role has not")
