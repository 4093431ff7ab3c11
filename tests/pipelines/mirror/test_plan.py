"""What a mirror copies, makes and refuses; and what the driver makes of what tasks tell."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.errors import CommandFailed, ConfigError
from kafka_sidecar.kafka_client.cluster import Cluster
from kafka_sidecar.kafka_client.topics import ClusterState, Topics, TopicState
from kafka_sidecar.pipelines.copying.delivery import Progress, Route, not_the_same, read_progress, write_progress
from kafka_sidecar.pipelines.copying.names import MirrorName
from kafka_sidecar.pipelines.copying.outcome import Outcome
from kafka_sidecar.pipelines.mirror.plan import Changes, MirrorOptions, NewTopic, changes, copied_configs, shares_of
from kafka_sidecar.pipelines.mirror.run import FENCED_ROUNDS, PartitionState


def options(*topics: str) -> MirrorOptions:
    return MirrorOptions(
        name=MirrorName.of("dc"), source=Cluster(bootstrap="a:1"), target=Cluster(bootstrap="b:1"), topics=topics
    )


def cluster(name: str, **topics: int) -> ClusterState:
    states = [
        TopicState(topic.replace("_", "-"), partitions, "", topic.startswith("internal"))
        for topic, partitions in topics.items()
    ]
    return ClusterState(name, Topics({one.name: one for one in states}))


def test_what_the_target_lacks_is_made() -> None:
    source, target = cluster("s", a=3, b=2, c=1), cluster("t", p_b=1, p_c=1)
    prefixed = replace(options(".*"), prefix="p-")
    assert changes(prefixed, ["a", "b", "c"], source, target) == Changes((NewTopic("p-a", 3, "a"),), (("p-b", 2),), {})


def test_keys_stay_in_their_partitions() -> None:
    source, target = cluster("s", a=2), cluster("t", a=3)
    refused = changes(options("a"), ["a"], source, target).refused
    assert "3 partitions in the target and 2 in the source" in refused["a"]
    assert changes(replace(options("a"), more_partitions=True), ["a"], source, target) == Changes((), (), {})


def test_a_copy_in_the_same_cluster_needs_other_names() -> None:
    with pytest.raises(ConfigError, match="needs a --prefix"):
        changes(options("a"), ["a"], cluster("s", a=1), cluster("s", a=1))


def test_configs_that_the_target_would_change_times_by_are_left_out() -> None:
    configs = {"retention.ms": "1", "message.timestamp.type": "LogAppendTime", "cleanup.policy": "compact"}
    assert copied_configs(replace(options("a"), skip_configs=("cleanup.policy",)), configs) == {"retention.ms": "1"}


@pytest.mark.parametrize("name", ["", "a-b", "a b", "x" * 61, "ä"])
def test_a_name_that_would_be_ambiguous_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="letters, digits, dots and underscores"):
        MirrorName.of(name)


@given(st.dictionaries(st.tuples(st.sampled_from("abc"), st.integers(0, 20)), st.integers(0, 1_000)), st.integers(1, 8))
def test_each_partition_is_dealt_to_one_task(behind: dict[tuple[str, int], int], tasks: int) -> None:
    hands = shares_of(behind, tasks)
    assert sorted(at for hand in hands for at in hand) == sorted(behind)
    assert len(hands) <= tasks
    loads = [sum(max(1, behind[at]) for at in hand) for hand in hands]
    assert max(loads) - min(loads) <= max([*behind.values(), 1])


ROUTE = Route(mirror=MirrorName.of("dc"), topic="a", target_topic="a", partition=0)


def told(**fields: object) -> Outcome:
    return Outcome(topic="a", partition=0, **fields)  # type: ignore[arg-type]


def test_a_partition_that_stands_still_is_given_up_after_a_while() -> None:
    state = PartitionState(ROUTE, end=10, goal=10)
    state.take(told(progress=Progress(5, 5)), 200.0)
    problems = []
    for now in (499.0, 501.0):
        state.take(told(progress=Progress(5, 5), trouble="no broker"), now)
        state.lose_patience(now, 300.0)
        problems.append(state.problem)
    assert problems == ["", "nothing was copied for 301 s: no broker"]


def test_a_source_that_gives_nothing_is_named() -> None:
    state = PartitionState(ROUTE, end=10, goal=10, progress=Progress(5, 5))
    state.lose_patience(301.0, 300.0)
    assert state.problem == "the source gives nothing from offset 5 on, and ends at 10"


def test_records_behind_an_open_transaction_are_not_copied_and_not_forgotten() -> None:
    state = PartitionState(ROUTE, end=5, high_watermark=10, goal=10, progress=Progress(5, 5))
    assert not state.has_work
    assert not state.is_done
    state.lose_patience(301.0, 300.0)
    assert "5 offsets of the source are behind a transaction" in state.problem


def test_a_producer_that_is_fenced_again_and_again_says_so() -> None:
    state = PartitionState(ROUTE, end=10, goal=10)
    for _ in range(FENCED_ROUNDS):
        state.lose_patience(1.0, 300.0)
        assert not state.problem
        state.take(told(trouble="fenced", is_fenced=True), 1.0)
    state.lose_patience(1.0, 300.0)
    assert "another run of mirror dc" in state.problem


def test_every_loss_and_repeat_is_kept() -> None:
    state = PartitionState(ROUTE)
    for one in ((1, 2), (1, 2), (5, 9)):
        state.take(told(lost=one, repeats=one), 1.0)
    assert state.lost == state.repeats == ((1, 2), (5, 9))


def test_another_topic_is_not_gone_on_with() -> None:
    before = replace(ROUTE, source_cluster="c", source_id="s", target_id="t")
    assert not not_the_same(before, before)
    assert not not_the_same(before, replace(before, source_cluster="", source_id="", target_id=""))  # nothing is known
    assert "from elsewhere" in not_the_same(before, replace(before, source_cluster="d"))
    assert "made again in the source" in not_the_same(before, replace(before, source_id="x"))
    assert "made again in the target" in not_the_same(before, replace(before, target_id="x"))
    assert "take that --prefix" in not_the_same(before, replace(before, target_topic="p-a"))


def test_progress_is_read_as_it_was_written() -> None:
    assert read_progress(7, write_progress(12)) == Progress(12, 7)
    assert read_progress(-1, None) is None
    with pytest.raises(CommandFailed, match="no mirror has committed"):
        read_progress(7, "mine")
