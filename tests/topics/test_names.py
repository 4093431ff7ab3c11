"""Names on both sides."""

from __future__ import annotations

import pytest

from kafka_sidecar.topics.names import InvalidTopicName, TopicNames

NAMES = TopicNames("public/default", "public/__kafka")


@pytest.mark.parametrize("name", ["t", "public/default/t", "persistent://public/default/t"])
def test_all_forms_are_one_topic(name: str) -> None:
    parsed = NAMES.parse(name)
    assert parsed.pulsar == "persistent://public/default/t"
    assert parsed.partition(3) == "persistent://public/default/t-partition-3"
    assert NAMES.kafka(parsed) == "t"


def test_a_topic_of_another_namespace_keeps_its_full_name() -> None:
    assert NAMES.kafka(NAMES.parse("a/b/t")) == "persistent://a/b/t"


@pytest.mark.parametrize(
    "name",
    [
        "",
        "ns/t",
        "a/b/c/d",
        "non-persistent://a/b/t",
        "t-partition-3",
        "a b",
        "x" * 250,
        ".",
        "..",
        "a//t",
        "persistent://t",
        "../../t",
    ],
)
def test_what_is_no_topic_is_refused(name: str) -> None:
    with pytest.raises(InvalidTopicName):
        NAMES.parse(name)


def test_pulsars_own_topics_are_not_listed() -> None:
    assert NAMES.from_pulsar("persistent://public/default/__change_events") is None
    assert NAMES.from_pulsar("persistent://public/default/__consumer_offsets") is not None
