"""What Spark says of offsets."""

from __future__ import annotations

import pytest

from kafka_sidecar.pipelines.offsets import of_sources, read_offsets


def test_offsets_are_by_topic_and_partition() -> None:
    assert read_offsets('{"a":{"0":5,"11":7},"b-c":{"2":0}}') == {("a", 0): 5, ("a", 11): 7, ("b-c", 2): 0}


@pytest.mark.parametrize("text", ["", "12", '{"a":5}', '{"a":{"x":1}}', '{"a":{"0":null}}', "[1]"])
def test_what_is_no_offset_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        read_offsets(text)


def test_of_several_sources_the_one_that_is_behind_counts_and_others_than_kafka_do_not() -> None:
    ends = [
        ("KafkaV2[Subscribe[a]]", '{"a":{"0":5,"1":9}}'),
        ("KafkaV2[SubscribePattern[.*]]", '{"a":{"0":4},"b":{"0":1}}'),
        ("RateStreamV2[rowsPerSecond=1]", "17"),
        ("KafkaSourceV1[Subscribe[c]]", None),
    ]
    assert of_sources(ends) == {("a", 0): 4, ("a", 1): 9, ("b", 0): 1}
