"""The nodes of the cluster as clients see it, and which replicas a client may ask for.

Replication is Pulsar's. A node is a sidecar that is alive; any may serve any partition, so an assignment that names live
nodes is one that holds already.
"""

from __future__ import annotations

from collections.abc import Sequence

from handler.apis.api import Services


class NotAssignable(Exception):
    """A manual assignment that Kafka refuses too: INVALID_REPLICA_ASSIGNMENT."""


def live_nodes(services: Services) -> set[int]:
    return {services.config.node_id, *(node_id for node_id, _, _ in services.groups.leaders.advertised_nodes())}


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
