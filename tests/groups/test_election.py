"""Who is elected, and what topic stats say of it."""

from __future__ import annotations

from typing import Any

from handler.groups.directory import Leader, active_consumer
from handler.groups.election import SUBSCRIPTION


def _stats(active: str, *consumers: dict[str, Any]) -> dict[str, Any]:
    return {"subscriptions": {SUBSCRIPTION: {"activeConsumerName": active, "consumers": list(consumers)}}}


def test_the_active_consumer_s_metadata_say_where_it_is() -> None:
    metadata = {"kafka.advertised": "host:9092", "kafka.node": "3", "kafka.control": "host:9094"}
    stats = _stats("b", {"consumerName": "a", "metadata": {}}, {"consumerName": "b", "metadata": metadata})
    assert active_consumer(stats) == Leader("b", 3, "host:9092", "host:9094")


def test_stats_without_a_leader_name_none() -> None:
    assert active_consumer({}) is None
    assert active_consumer({"subscriptions": {}}) is None
    assert active_consumer(_stats("gone", {"consumerName": "a"})) is None
    assert active_consumer(_stats("a", {"consumerName": "a", "metadata": None})) == Leader("a", 0, "", "")
