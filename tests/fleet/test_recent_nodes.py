"""Which nodes clients are told of though they are not there now."""

from __future__ import annotations

from kafka_sidecar.fleet.member import Member
from kafka_sidecar.fleet.recent_nodes import MOST_NODES, RECENT_SECONDS, RecentNodes


def node(node_id: int, port: int = 9092) -> Member:
    return Member(node_id, "127.0.0.1", port)


def test_a_node_is_recent_for_a_while() -> None:
    recent = RecentNodes()
    recent.see(node(1), 100.0)
    assert recent.at(100.0 + RECENT_SECONDS - 1) == [node(1)]
    assert recent.at(100.0 + RECENT_SECONDS) == []


def test_the_last_place_of_a_node_counts() -> None:
    recent = RecentNodes()
    recent.see(node(1, 1), 100.0)
    recent.see(node(1, 2), 110.0)
    recent.see(node(1, 3), 105.0)
    assert recent.at(120.0) == [node(1, 2)]


def test_no_more_nodes_than_a_fleet_may_have_are_remembered() -> None:
    recent = RecentNodes()
    for number in range(MOST_NODES + 1):
        recent.see(node(number), 100.0)
        recent.see(node(1), 100.0)
        recent.tell([number])
    assert len(recent.at(100.0)) == MOST_NODES
    assert node(0) not in recent.at(100.0), "the one that was not seen for longest is forgotten"
    assert recent.were_advertised([0, 1]) == [1]


def test_it_is_known_which_nodes_clients_were_told_of() -> None:
    recent = RecentNodes()
    recent.see(node(1), 100.0)
    assert recent.were_advertised([1]) == []
    recent.tell([1, 2])
    assert recent.were_advertised([1, 2, 3]) == [1, 2]
