"""Which topics are meant by names and patterns."""

from __future__ import annotations

import pytest

from kafka_sidecar.errors import ConfigError
from kafka_sidecar.kafka_client.client import Refused
from kafka_sidecar.kafka_client.topics import ClusterState, Topics, TopicState, described_topics, matching_topics
from kafka_sidecar.wire.error_code import ErrorCode

TOPICS = (
    "orders.v1",
    "orders-v1",
    "orders",
    "orders-old",
    "pay",
    "internal",
    "mirror-dc-offsets",
    "__transaction_state",
)
STATE = ClusterState("c", Topics({name: TopicState(name, 1, "", name == "internal") for name in TOPICS}))


def test_topics_are_chosen_by_name_and_pattern() -> None:
    assert matching_topics(["orders"], [], STATE) == ["orders"]
    assert matching_topics(["orders.v1"], [], STATE) == ["orders.v1"]  # a name, and no pattern for orders-v1
    assert matching_topics(["orders-.*", "pay"], [], STATE) == ["orders-old", "orders-v1", "pay"]
    assert matching_topics([".*"], ["orders.*"], STATE) == ["pay"]


@pytest.mark.parametrize(
    ("pattern", "text"), [("absent", "no topic"), ("or[", "neither a topic's name"), ("internal", "is not for this")]
)
def test_what_nobody_can_mean_is_refused(pattern: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        matching_topics([pattern], [], STATE)
    with pytest.raises(ConfigError, match="leaves no topic"):
        matching_topics(["pay"], ["p.*"], STATE)


def test_a_topic_that_is_away_is_not_taken_for_one_that_is_not_there() -> None:
    described = {"orders": TopicState("orders", 1, "", False)}
    state = ClusterState(
        "c", Topics(described, {"payments": ErrorCode.LEADER_NOT_AVAILABLE, "__own": ErrorCode.LEADER_NOT_AVAILABLE})
    )
    for asked in (
        lambda: "payments" in state.topics,
        lambda: state.topics.get("payments"),
        lambda: matching_topics([".*"], [], state),
    ):
        with pytest.raises(Refused, match="topic payments: LEADER_NOT_AVAILABLE") as refused:
            asked()
        assert refused.value.is_retriable
    assert matching_topics([".*"], ["payments"], state) == ["orders"]
    assert described_topics([".*", "gone"], [], state) == ["orders"]
