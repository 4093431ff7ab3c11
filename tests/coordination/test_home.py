"""What short names mean in the records of a shard that sidecars of two namespaces lead in turn."""

from __future__ import annotations

import pytest

from kafka_sidecar.coordination.home import Home
from kafka_sidecar.topics.names import TopicNames

METADATA = "public/__kafka"


async def nobody_asks(_: object) -> str:
    raise AssertionError


def home_of(own: str, learns: str) -> Home:
    home = Home(TopicNames(own, METADATA), nobody_asks)
    home.learn(learns)
    return home


def test_nothing_is_translated_at_home() -> None:
    for home in (Home(TopicNames("team/a", METADATA), nobody_asks), home_of("team/a", "team/a")):
        assert home.namespace == "team/a"
        assert home.to_own is None
        assert home.to_stored is None


@pytest.mark.parametrize(
    ("own", "stored"),
    [
        ("orders", "persistent://team/b/orders"),
        ("persistent://team/a/orders", "orders"),
        ("persistent://else/where/orders", "persistent://else/where/orders"),
        ("__consumer_offsets", "__consumer_offsets"),
        ("what is/no name", "what is/no name"),
    ],
)
def test_a_name_comes_back_as_it_was(own: str, stored: str) -> None:
    home = home_of("team/b", "team/a")
    assert home.to_stored is not None
    assert home.to_own is not None
    assert home.to_stored.name(own) == stored
    assert home.to_own.name(stored) == own


@pytest.mark.parametrize(
    ("own", "stored"),
    [
        ("orders-.*", "persistent://team/b/:orders-.*"),
        ("persistent://team/a/:orders", "orders"),
        ("^(a|b)$", "persistent://team/b/:^(a|b)$"),
    ],
)
def test_so_does_a_regular_expression(own: str, stored: str) -> None:
    home = home_of("team/b", "team/a")
    assert home.to_stored is not None
    assert home.to_own is not None
    assert home.to_stored.expression(own) == stored
    assert home.to_own.expression(stored) == own
