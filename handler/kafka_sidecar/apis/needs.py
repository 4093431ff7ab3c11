"""What a request needs the right to do, in Kafka's words: operations on kinds of resources.

Each API says so where it is registered. Which topic, group or transactional id it is about stands in the request. Some
need only one of several rights: a topic may be created with the right to CREATE it, or on the cluster. Nothing is
refused yet, for there are no users.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple


class AclOperation(Enum):
    """By the codes of Kafka's AclOperation."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


class ResourceType(Enum):
    """By the codes of Kafka's ResourceType."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5


class Need(NamedTuple):
    operation: AclOperation
    resource: ResourceType


Needs = tuple[Need, ...]

# A client logs in with these requests, or learns what it may send. DescribeCluster needs a right only to show rights,
# and delegation tokens are refused to all.
NOTHING: Final[Needs] = ()


def on_topic(*operations: AclOperation) -> Needs:
    return tuple(Need(one, ResourceType.TOPIC) for one in operations)


def on_group(*operations: AclOperation) -> Needs:
    return tuple(Need(one, ResourceType.GROUP) for one in operations)


def on_cluster(*operations: AclOperation) -> Needs:
    return tuple(Need(one, ResourceType.CLUSTER) for one in operations)


def on_transactional_id(*operations: AclOperation) -> Needs:
    return tuple(Need(one, ResourceType.TRANSACTIONAL_ID) for one in operations)
