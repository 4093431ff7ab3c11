"""The assignors: everything is assigned once, to those who want it, evenly, and no more moves than need to."""

from __future__ import annotations

import uuid

from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.groups.consumer.assignors import ASSIGNORS, Members, Subscriber, range_, uniform
from kafka_sidecar.groups.records.consumer import Assignment

TOPICS = [uuid.UUID(int=number) for number in range(1, 6)]
A, B = TOPICS[:2]


History = list[dict[str, frozenset[uuid.UUID]]]  # who is subscribed to what, one rebalance after the other


def places(assignment: Assignment) -> set[tuple[uuid.UUID, int]]:
    return {(topic, index) for topic, indexes in assignment.items() for index in indexes}


def load(assignment: Assignment) -> int:
    return len(places(assignment))


COUNTS = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 12), max_size=5)
SUBSCRIPTIONS = st.dictionaries(
    st.sampled_from([f"m{number}" for number in range(8)]), st.frozensets(st.sampled_from(TOPICS)), max_size=8
)


@given(st.sampled_from(sorted(ASSIGNORS)), COUNTS, st.lists(SUBSCRIPTIONS, min_size=1, max_size=4))
def test_every_partition_has_one_member_that_wants_it(
    name: str, counts: dict[uuid.UUID, int], history: History
) -> None:
    """Over several rebalances, each beginning with what the one before has left."""
    before: dict[str, Assignment] = {}
    for subscriptions in history:
        members = {member: Subscriber(topics, before.get(member, {})) for member, topics in subscriptions.items()}
        before = ASSIGNORS[name](members, counts)
        assert before.keys() == members.keys()
        given_out = [place for assignment in before.values() for place in places(assignment)]
        wanted = {topic for topics in subscriptions.values() for topic in topics}
        assert len(given_out) == len(set(given_out))
        assert set(given_out) == {
            (topic, index) for topic, count in counts.items() if topic in wanted for index in range(count)
        }
        assert all(set(before[member]) <= topics for member, topics in subscriptions.items())


@given(COUNTS, st.lists(SUBSCRIPTIONS, min_size=1, max_size=3))
def test_uniform_leaves_no_move_that_would_even_it_out(counts: dict[uuid.UUID, int], history: History) -> None:
    found: dict[str, Assignment] = {}
    for subscriptions in history:
        found = uniform(
            {member: Subscriber(topics, found.get(member, {})) for member, topics in subscriptions.items()}, counts
        )
    for rich in found:
        for poor, topics in history[-1].items():
            if load(found[rich]) > load(found[poor]) + 1:
                assert topics.isdisjoint(found[rich]), f"{rich} could give one to {poor}"


@given(st.integers(1, 30), st.integers(1, 6), st.integers(1, 6))
def test_uniform_moves_only_what_has_to_move(partitions: int, before: int, after: int) -> None:
    """Of members with one subscription those that stay keep what fits into an even share."""
    one = frozenset({A})
    first = uniform({f"m{number}": Subscriber(one, {}) for number in range(before)}, {A: partitions})
    second = uniform(
        {f"m{number}": Subscriber(one, first.get(f"m{number}", {})) for number in range(after)}, {A: partitions}
    )
    kept = sum(len(places(first.get(member, {})) & places(assignment)) for member, assignment in second.items())
    stays = min(before, after)
    low, high = partitions // after, -(-partitions // after)
    larger_shares = partitions - low * after
    loads = sorted((load(first[f"m{number}"]) for number in range(stays)), reverse=True)
    possible = sum(min(size, high if place < larger_shares else low) for place, size in enumerate(loads))
    assert kept == possible


def members(*names: str, topics: frozenset[uuid.UUID]) -> Members:
    return {name: Subscriber(topics, {}) for name in names}


def test_range_gives_runs_and_the_first_get_one_more() -> None:
    found = range_(members("a", "b", "c", topics=frozenset({A})), {A: 8})
    assert found == {"a": {A: frozenset({0, 1, 2})}, "b": {A: frozenset({3, 4, 5})}, "c": {A: frozenset({6, 7})}}


def test_range_joins_topics_by_partition() -> None:
    found = range_(members("a", "b", topics=frozenset({A, B})), {A: 4, B: 4})
    assert all(assignment[A] == assignment[B] for assignment in found.values())


def test_range_with_more_members_than_partitions() -> None:
    assert range_(members("a", "b", topics=frozenset({A})), {A: 1}) == {"a": {A: frozenset({0})}, "b": {}}
