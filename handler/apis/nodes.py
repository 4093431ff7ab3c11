"""The nodes of the cluster as clients see it, who leads what, and which replicas a client may ask for.

Replication is Pulsar's. A node is a sidecar that is alive; any may serve any partition, so an assignment that names live
nodes is one that holds already.
"""

from __future__ import annotations

from collections.abc import Sequence

from handler.apis.api import Client, Services
from handler.fleet.member import Member
from handler.topics.catalog import Topic


class NotAssignable(Exception):
    """A manual assignment that Kafka refuses too: INVALID_REPLICA_ASSIGNMENT."""


def live_nodes(services: Services) -> set[int]:
    return {member.node_id for member in services.fleet.view.nodes}


def nodes(services: Services, client: Client) -> list[Member]:
    """All that clients are told of, this one at the address by which the client finds it."""
    host, port = services.node_address(client)
    own = services.fleet.own
    return [member._replace(host=host, port=port) if member == own else member for member in services.fleet.view.nodes]


def controller(services: Services) -> int:
    """Any may be asked, so each names itself, as a broker of KRaft names any; one that leaves names another."""
    return services.fleet.view.leadership.members[0].node_id if services.fleet.leads_nothing else services.fleet.own.node_id


def replicas(services: Services, topic: Topic) -> tuple[tuple[int, ...], ...]:
    """Of each partition the node ids, its leader's first. With racks there is one for each, where its clients read (KIP-392)."""
    return services.fleet.view.leadership.replicas(topic.name.pulsar, topic.partitions)


def check_assignments(services: Services, assignments: Sequence[Sequence[int]]) -> None:
    """Replicas for partitions, one list each (ReplicationControlManager.validateManualPartitionAssignment)."""
    live = live_nodes(services)
    for replicas in assignments:
        if not replicas:
            raise NotAssignable("the manual partition assignment includes an empty replica list")
        if len(set(replicas)) < len(replicas):
            raise NotAssignable("the manual partition assignment includes the same broker twice")
        if len(replicas) != len(assignments[0]):
            raise NotAssignable("the manual partition assignment has partitions of different replication factors")
        unknown = sorted(set(replicas) - live)
        if unknown:
            raise NotAssignable(f"the manual partition assignment includes broker {unknown[0]}, and there is none of that id")
