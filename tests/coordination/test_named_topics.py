"""Which namespace a log means that does not say what short names mean there."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

import pytest

from kafka_sidecar.coordination.named_topics import MOST_TOPICS, NamedTopics, namespace_of
from kafka_sidecar.pulsar.errors import NotPermitted, Unavailable
from kafka_sidecar.topics.names import TopicNames

OWN = TopicNames("team/new", "public/__kafka")
OTHERS = ("team/a", "team/b")
ONE, ANOTHER = uuid.UUID(int=1), uuid.UUID(int=2)


@dataclass
class Topics:
    """As a sidecar of `team/new` names them."""

    ids: dict[str, uuid.UUID] = field(default_factory=dict)

    async def id_of(self, name: str) -> uuid.UUID | None:
        return self.ids.get(name)


async def found(topics: dict[str, uuid.UUID | None], current: dict[str, uuid.UUID]) -> str:
    return await namespace_of(topics, OWN, OTHERS, Topics(current).id_of)


async def test_topics_are_of_the_namespace_where_they_are_by_their_ids() -> None:
    current = {"orders": ANOTHER, "persistent://team/b/orders": ONE}
    assert await found({"orders": ONE}, current) == "team/b"
    assert await found({"orders": ANOTHER}, current) == "team/new"


async def test_where_most_of_them_are() -> None:
    current = {"x": ONE, "persistent://team/a/y": ONE, "persistent://team/a/z": ONE}
    assert await found({"x": ONE, "y": ONE, "z": ONE}, current) == "team/a"
    assert await found({"x": ONE, "y": ONE}, current) == "team/new", "as many"


async def test_a_name_without_an_id_counts_where_no_id_tells() -> None:
    both = {"orders": ANOTHER, "persistent://team/a/orders": ONE}
    assert await found({"orders": None}, both) == "team/new"
    assert await found({"orders": None, "bills": None}, {**both, "persistent://team/a/bills": ONE}) == "team/a"
    assert await found({"orders": ANOTHER, "bills": None}, {**both, "persistent://team/a/bills": ONE}) == "team/new"


async def test_where_nothing_is_found_they_are_taken_for_the_own() -> None:
    assert await found({"orders": ONE, "bills": None}, {}) == "team/new"


async def test_of_a_namespace_that_may_not_be_seen_they_are_if_none_is_the_own() -> None:
    async def id_of(name: str) -> uuid.UUID | None:
        if name.startswith("persistent://team/a/"):
            raise NotPermitted("not yours")
        return {"bills": ONE}.get(name)

    assert await namespace_of({"orders": ONE}, OWN, ["team/a"], id_of) == "team/a"
    assert await namespace_of({"orders": ONE}, OWN, OTHERS, id_of) == "team/a"
    assert await namespace_of({"orders": None}, OWN, OTHERS, id_of) == "team/new", "no id speaks for another"
    assert await namespace_of({"orders": ONE, "bills": ONE}, OWN, OTHERS, id_of) == "team/new"


async def test_nobody_decides_while_pulsar_is_away() -> None:
    async def away(_: str) -> uuid.UUID | None:
        raise Unavailable("Pulsar is away")

    with pytest.raises(Unavailable):
        await namespace_of({"orders": ONE}, OWN, OTHERS, away)


def test_the_last_topics_that_were_read_are_remembered_with_their_ids() -> None:
    named = NamedTopics()
    named.note([("orders", ONE), ("persistent://team/a/orders", ANOTHER)])
    named.note([("orders", None)])
    assert named.ids == {"orders": ONE}, "a long name means the same everywhere"
    named.note((f"t{number}", None) for number in range(MOST_TOPICS))
    assert len(named.ids) == MOST_TOPICS
    assert "orders" not in named.ids
