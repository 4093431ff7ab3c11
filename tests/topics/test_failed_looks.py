"""A look that fails may succeed a moment later; one that has failed for long will not soon."""

from __future__ import annotations

from kafka_sidecar.topics import failed_looks
from kafka_sidecar.topics.failed_looks import PASSING_SECONDS, FailedLooks
from kafka_sidecar.topics.names import TopicName

NAME = TopicName("public", "default", "t")


def test_the_time_counts_from_the_first_look_that_failed() -> None:
    now = 100.0
    looks = FailedLooks(lambda: now)
    assert not looks.may_pass(NAME), "no look has failed"
    looks.note(NAME)
    assert looks.may_pass(NAME)
    now += PASSING_SECONDS
    looks.note(NAME)
    assert not looks.may_pass(NAME)
    looks.forget(NAME)
    looks.note(NAME)
    assert looks.may_pass(NAME), "Pulsar had described it meanwhile"


def test_their_number_is_bounded() -> None:
    looks = FailedLooks(lambda: 0.0)
    for number in range(failed_looks.MOST + 1):
        looks.note(TopicName("public", "default", f"t{number}"))
    assert not looks.may_pass(TopicName("public", "default", "t0"))
    assert looks.may_pass(TopicName("public", "default", "t1"))
