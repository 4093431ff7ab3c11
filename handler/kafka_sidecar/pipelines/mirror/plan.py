"""Which topics are copied, what is made for them in the target, and what is refused. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kafka_sidecar.errors import ConfigError
from kafka_sidecar.kafka_client.cluster import Cluster
from kafka_sidecar.kafka_client.topics import ClusterState
from kafka_sidecar.pipelines.copying.names import MirrorName

# Topic configs that a mirror does not copy: those about replicas and storage that the target does not have, and those
# that would change or refuse the timestamps of old records.
CONFIGS_LEFT_OUT: Final = frozenset(
    (
        "message.timestamp.type",
        "message.timestamp.difference.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.after.max.ms",
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        "min.insync.replicas",
        "unclean.leader.election.enable",
        "message.format.version",
        "message.downconversion.enable",
        "remote.storage.enable",
        "local.retention.ms",
        "local.retention.bytes",
    )
)
# The topic of offset runs never deletes records: a group may be migrated years after its topic was copied.
RUNS_CONFIGS: Final = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorOptions:
    name: MirrorName
    source: Cluster
    target: Cluster
    topics: tuple[str, ...]  # topic names, or regular expressions for whole names
    exclude: tuple[str, ...] = ()
    prefix: str = ""
    continuous: bool = False
    exactly_once: bool = True
    accept_loss: bool = False
    into_existing: bool = False
    more_partitions: bool = False  # the target topic may have more partitions than the source topic
    skip_configs: tuple[str, ...] = ()
    dry_run: bool = False
    round_seconds: float = 10.0
    patience_seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class NewTopic:
    name: str
    partitions: int
    source: str


@dataclass(frozen=True, slots=True)
class Changes:
    """What the target lacks."""

    topics: tuple[NewTopic, ...]
    partitions: tuple[tuple[str, int], ...]  # topics that need more partitions, each with the new number
    refused: Mapping[str, str]  # by source topic: why the target topic can't be created or changed


def changes(options: MirrorOptions, topics: Sequence[str], source: ClusterState, target: ClusterState) -> Changes:
    """What is to be made in the target; refused where keys would be in other partitions than before."""
    if source.cluster_id and source.cluster_id == target.cluster_id and not options.prefix:
        raise ConfigError("source and target are the same cluster: a copy in it needs a --prefix for its topics")
    new, more, refused = [], [], {}
    for topic in topics:
        wanted = source.topics[topic].partitions
        name = options.prefix + topic
        there = target.topics.get(name)
        if there is None:
            new.append(NewTopic(name, wanted, topic))
        elif there.partitions < wanted:
            more.append((name, wanted))
        elif there.partitions > wanted and not options.more_partitions:
            refused[topic] = (
                f"topic {name} has {there.partitions} partitions in the target and {wanted} in the source: producers "
                "would put keys into other partitions than where their records are. Take another --prefix, or say "
                "--more-partitions"
            )
    return Changes(tuple(new), tuple(more), refused)


def copied_configs(options: MirrorOptions, configs: Mapping[str, str]) -> dict[str, str]:
    return {
        name: value
        for name, value in configs.items()
        if name not in CONFIGS_LEFT_OUT and name not in options.skip_configs
    }


def shares_of(behind: Mapping[tuple[str, int], int], tasks: int) -> list[list[tuple[str, int]]]:
    """The partitions that are behind, for so many tasks: each has about as much to do."""
    in_order = sorted(behind, key=lambda at: (-behind[at], at))
    count = max(1, min(tasks, len(in_order)))
    hands: list[list[tuple[str, int]]] = [[] for _ in range(count)]
    loads = [0] * count
    for at in in_order:
        least = loads.index(min(loads))
        hands[least].append(at)
        loads[least] += max(1, behind[at])
    return hands
