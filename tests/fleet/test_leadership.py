"""Who leads what: the same for every member, kept when others come and go, and a reader for each rack."""

from __future__ import annotations

from kafka_sidecar.fleet.leadership import Leadership
from kafka_sidecar.fleet.member import Member

A, B, C = (Member(number, f"host-{number}", 9092) for number in (1, 2, 3))
IN_X, ALSO_IN_X, IN_Y = Member(1, "a", 1, "x"), Member(2, "b", 1, "x"), Member(3, "c", 1, "y")


def test_every_member_names_the_same_leaders_at_whatever_address_it_is() -> None:
    moved = [A._replace(host="elsewhere"), B, C]
    for topic in ("orders", "events"):
        found = [
            [fleet.leader(topic, 16, index).node_id for index in range(16)]
            for fleet in (Leadership([A, B, C]), Leadership(moved[::-1]))
        ]
        assert found[0] == found[1]
        assert set(found[0]) == {1, 2, 3}


def test_who_is_alone_leads_everything() -> None:
    alone = Leadership([A])
    assert alone.replicas("orders", 3) == ((1,), (1,), (1,))
    assert not alone.has_racks


def test_each_rack_has_one_replica_and_the_leader_is_that_of_its_own() -> None:
    fleet = Leadership([IN_X, ALSO_IN_X, IN_Y])
    for index, (leader, other) in enumerate(fleet.replicas("orders", 16)):
        assert leader == fleet.leader("orders", 16, index).node_id
        racks = {member.node_id: member.rack for member in fleet.members}
        assert {racks[leader], racks[other]} == {"x", "y"}
        assert fleet.replica_in(str(racks[leader]), "orders", 16, index).node_id == leader
        assert fleet.replica_in(str(racks[other]), "orders", 16, index).node_id == other
        assert fleet.replica_in("somewhere", "orders", 16, index).node_id == leader
    readers = [fleet.replica_in("x", "orders", 16, index).node_id for index in range(16)]
    assert min(readers.count(1), readers.count(2)) >= 4, "both of a rack serve reads"
