"""The nodes of the cluster as clients see it, who leads what, and which replicas a client may ask for.

Replication is Pulsar's. A node is a sidecar that is alive; any may serve any partition, so an assignment that names
live nodes is one that holds already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kafka_sidecar.apis.api import Client, Services
from kafka_sidecar.fleet.fleet import View
from kafka_sidecar.fleet.member import Member
from kafka_sidecar.model.sidecar import Endpoint, Node
from kafka_sidecar.topics.catalog import Topic
from kafka_sidecar.topics.node_configs import NodeListeners
from kafka_sidecar.wire.error_code import ErrorCode

NO_LEADER: Final = -1
# The listeners' names.
PLAINTEXT: Final = "PLAINTEXT"
EXTERNAL: Final = "EXTERNAL"
# librdkafka and what is made of it, as they name themselves (client.software.name).
_KEEPS_LEADERS: Final = re.compile("librdkafka|confluent-kafka|[a-z]+-rdkafka")


class NotAssignable(Exception):
    """A manual assignment that Kafka refuses too: INVALID_REPLICA_ASSIGNMENT."""


def live_nodes(services: Services) -> set[int]:
    return {member.node_id for member in services.fleet.view.nodes}


def nodes(services: Services, client: Client) -> list[Node]:
    """All advertised nodes, at their addresses for the listener that the client came to, without those that have none
    there.
    """
    return _reachable(services, client, services.fleet.view.nodes)


def nodes_for_leaders(services: Services, client: Client, view: View) -> list[Node]:
    """The same, with the leaders of partitions.

    A librdkafka drops every node that such an answer does not name. Of a partition that it knows to be led there it
    says for up to five minutes (topic.metadata.refresh.interval.ms) that there is none, and asks nobody. So its answer
    names nodes too that were there a moment ago. Java's clients ask again. Its admin client gets no such nodes: it asks
    every node for groups, and fails if one does not answer.
    """
    if not _KEEPS_LEADERS.match(client.software):
        return _reachable(services, client, view.nodes)
    client.last_metadata = view
    return _reachable(services, client, [*view.nodes, *view.recent])


def _reachable(services: Services, client: Client, members: Iterable[Member]) -> list[Node]:
    own = services.fleet.own
    found = []
    for member in members:
        address = services.node_address(client) if member == own else _address(member, client)
        if address is not None:
            found.append(Node(member.node_id, *address, member.rack))
    return found


def node_listeners(services: Services, client: Client) -> NodeListeners:
    """Of this node, under the names that Kafka's settings would have for them."""
    config = services.config
    found = client.local_address
    if client.is_external:  # it came to the other port
        found = found._replace(port=config.listen_address.port)
    listens = {PLAINTEXT: config.listen}
    advertises = {PLAINTEXT: str(config.advertised_address or found)}
    if config.external_listen:
        listens[EXTERNAL] = config.external_listen
        advertises[EXTERNAL] = config.own_external_advertised
    return NodeListeners(listens=listens, advertises=advertises)


def _address(member: Member, client: Client) -> Endpoint | None:
    return member.external if client.is_external else Endpoint(member.host, member.port)


def is_advertised(services: Services, client: Client, member: Member) -> bool:
    """Whether a member has an address for the listener to which the client came."""
    return member == services.fleet.own or _address(member, client) is not None


def controller(services: Services) -> int:
    """Any may be asked, so each names itself, as a broker of KRaft names any; one that leaves names another."""
    return (
        services.fleet.view.leadership.members[0].node_id
        if services.fleet.leads_nothing
        else services.fleet.own.node_id
    )


class Replicas(NamedTuple):
    """Of one partition, as a client sees them."""

    error: ErrorCode
    leader: int
    ids: tuple[int, ...]  # with racks there is one for each, where its clients read (KIP-392)


def replicas(services: Services, client: Client, view: View, topic: Topic) -> list[Replicas]:
    """Of all partitions. A leader that a client can't reach is shown as Kafka does it
    (MetadataCache.getPartitionMetadata).
    """
    hidden = {member.node_id for member in view.nodes if not is_advertised(services, client, member)}
    return [
        Replicas(ErrorCode.LISTENER_NOT_FOUND, NO_LEADER, ids)
        if ids[0] in hidden
        else Replicas(ErrorCode.NONE, ids[0], ids)
        for ids in view.leadership.replicas(topic.name.pulsar, topic.partitions)
    ]


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
            raise NotAssignable(
                f"the manual partition assignment includes broker {unknown[0]}, and there is none of that id"
            )
