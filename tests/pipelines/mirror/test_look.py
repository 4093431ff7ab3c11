"""A mirror that goes on looks again and again: what happens to one topic concerns that one."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from typing import Any, cast

import pytest

from kafka_sidecar.kafka_client.cluster import Cluster
from kafka_sidecar.kafka_client.topics import ClusterState, Partition, Topics, TopicState
from kafka_sidecar.pipelines.copying.names import MirrorName
from kafka_sidecar.pipelines.copying.record import Recorded
from kafka_sidecar.pipelines.mirror import run
from kafka_sidecar.pipelines.mirror.plan import MirrorOptions
from kafka_sidecar.wire.error_code import ErrorCode

SOURCE, TARGET = Cluster(bootstrap="a:1"), Cluster(bootstrap="b:1")


class Clusters:
    """The source's topics, and how long their logs are."""

    def __init__(self) -> None:
        self.ends = {"orders": 10, "payments": 10}
        self.away: dict[str, ErrorCode] = {}
        self.in_target = {"orders": 1, "payments": 1, "mirror-m-offsets": 1}

    async def state(self, kafka: str) -> ClusterState:
        counts = dict.fromkeys(self.ends, 1) if kafka == "source" else self.in_target
        described = {
            name: TopicState(name, count, "", False) for name, count in counts.items() if name not in self.away
        }
        return ClusterState(kafka, Topics(described, self.away))

    async def offsets(
        self, _: str, wanted: Iterable[Partition], when: int, __: int = 0
    ) -> tuple[dict[Partition, int], dict[Any, Any]]:
        return {at: 0 if when == -2 else self.ends[at[0]] for at in wanted}, {}


@pytest.mark.parametrize("happens", ["deleted", "away", "has more partitions in the target"])
def test_one_topic_does_not_hold_up_the_others(monkeypatch: pytest.MonkeyPatch, happens: str) -> None:
    there = Clusters()

    @contextlib.asynccontextmanager
    async def connected(cluster: Cluster, _: str) -> AsyncIterator[str]:
        yield "source" if cluster == SOURCE else "target"

    async def read_runs(_: run.Mirror, __: object) -> Recorded:
        return Recorded()

    monkeypatch.setattr(run, "cluster_state", there.state)
    monkeypatch.setattr(run, "offsets_and_failures", there.offsets)
    monkeypatch.setattr(run, "connected", connected)
    monkeypatch.setattr(run.Mirror, "_read_runs", read_runs)
    said: list[str] = []
    options = MirrorOptions(
        name=MirrorName.of("m"), source=SOURCE, target=TARGET, topics=("orders", "payments"), continuous=True
    )
    mirror = run.Mirror(cast(Any, None), options, said.append)
    asyncio.run(mirror.look())
    assert mirror.partitions["orders", 0].end == 10
    there.ends["orders"] = 1_000
    match happens:
        case "deleted":
            del there.ends["payments"]
        case "away":
            there.away["payments"] = ErrorCode.LEADER_NOT_AVAILABLE
        case _:
            there.in_target["payments"] = 3
    for _ in range(3):
        asyncio.run(mirror.look())
    assert mirror.partitions["orders", 0].end == 1_000
    if happens == "has more partitions in the target":
        assert "3 partitions in the target" in mirror.partitions["payments", 0].fault
    else:
        assert said == [
            "payments: the clusters do not describe this topic at the moment, or it was deleted: the others go on"
        ]
