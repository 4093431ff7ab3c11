"""Who is elected, and what topic stats say of it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from handler.groups.directory import Leader, active_consumer
from handler.groups.election import SUBSCRIPTION, priority

TOPICS = [f"persistent://public/__kafka/__consumer_offsets-partition-{index}" for index in range(64)]
NAMES = st.lists(st.text("abcdef0123456789", min_size=8, max_size=8), min_size=2, max_size=8, unique=True)


def _elected(names: list[str]) -> list[str]:
    return [min(names, key=lambda name: priority(name, topic)) for topic in TOPICS]


@given(NAMES)
def test_one_who_comes_or_goes_moves_its_own_share_alone(names: list[str]) -> None:
    before, after = _elected(names[1:]), _elected(names)
    assert all(new in (old, names[0]) for old, new in zip(before, after, strict=True))


def test_shards_are_spread() -> None:
    shares = [_elected([f"sidecar-{number}" for number in range(4)]).count(f"sidecar-{number}") for number in range(4)]
    assert min(shares) >= 8, shares


def test_a_priority_fits_into_what_pulsar_takes() -> None:
    assert all(0 <= priority("name", topic) < 2**30 for topic in TOPICS)


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
