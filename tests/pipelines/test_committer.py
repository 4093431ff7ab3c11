"""Of each group the latest offsets are committed, however often that fails before."""

from __future__ import annotations

import threading

import pytest

from kafka_sidecar.pipelines import committer as module
from kafka_sidecar.pipelines.committer import Committer
from kafka_sidecar.pipelines.offsets import Offsets
from kafka_sidecar.pulsar.errors import Unavailable

AT = ("t", 0)


class Kafka:
    def __init__(self) -> None:
        self.stored: list[tuple[str, int]] = []
        self.fails = 0
        self.may_answer = threading.Event()
        self.may_answer.set()

    async def __call__(self, bootstrap: str, group: str, offsets: Offsets) -> None:
        assert bootstrap == "here:9092"
        self.may_answer.wait(5)
        if self.fails:
            self.fails -= 1
            raise Unavailable("nobody is there")
        self.stored.append((group, offsets[AT]))


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    return Kafka()


@pytest.fixture
def committer(kafka: Kafka) -> Committer:
    return Committer("here:9092", kafka)


def test_what_is_committed_already_is_not_committed_again(kafka: Kafka, committer: Committer) -> None:
    for offset in (1, 1, 2, 2):
        committer.commit("g", {AT: offset})
        assert committer.flush(5)
    assert kafka.stored == [("g", 1), ("g", 2)]


def test_while_one_is_under_way_only_the_latest_waits(kafka: Kafka, committer: Committer) -> None:
    kafka.may_answer.clear()
    for offset in range(10):
        committer.commit("g", {AT: offset})
        committer.commit("h", {AT: offset})
    assert not committer.flush(0.01)
    kafka.may_answer.set()
    assert committer.flush(5)
    assert kafka.stored[-2:] in ([("g", 9), ("h", 9)], [("h", 9), ("g", 9)])
    assert len(kafka.stored) <= 4


def test_it_is_tried_until_it_is_stored(kafka: Kafka, committer: Committer) -> None:
    kafka.fails = 3
    committer.commit("g", {AT: 7})
    assert committer.flush(5)
    assert kafka.stored == [("g", 7)]


def test_a_query_that_goes_back_takes_its_group_with_it(kafka: Kafka, committer: Committer) -> None:
    for offset in (9, 4):
        committer.commit("g", {AT: offset})
        assert committer.flush(5)
    assert kafka.stored == [("g", 9), ("g", 4)]


def test_of_a_query_that_has_ended_nothing_is_kept(kafka: Kafka, committer: Committer) -> None:
    for _ in range(2):
        committer.commit("g", {AT: 1})
        assert committer.flush(5)
        committer.forget("g")
    assert kafka.stored == [("g", 1), ("g", 1)]
