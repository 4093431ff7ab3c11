"""The settings of a node that Kafka has names for, as they are here. Pure.

Tools read them before they do anything: kafka-ui tells a broker's version by `inter.broker.protocol.version`, others
look for limits and defaults. All of them can be read and none can be changed: they stand in the sidecar's configuration
file, or are Pulsar's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kafka_sidecar.config import Config as Settings
from kafka_sidecar.topics.config_types import Config, ConfigSource, ConfigType
from kafka_sidecar.topics.configs import TopicSettings

# The MetadataVersion of Kafka 4.2, whose protocol this node speaks. Kafka itself had inter.broker.protocol.version
# until 3.9.
PROTOCOL_VERSION: Final = "4.2-IV1"
LOG_DIR: Final = "/pulsar"
_HOUR_MS, _MINUTE_MS = 3_600_000, 60_000
_UNLIMITED: Final = -1

INT, LONG, SHORT, STRING, LIST, BOOLEAN = (
    ConfigType.INT,
    ConfigType.LONG,
    ConfigType.SHORT,
    ConfigType.STRING,
    ConfigType.LIST,
    ConfigType.BOOLEAN,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeListeners:
    """By the listener's name: where it listens, and where its clients are sent."""

    listens: Mapping[str, str] = field(default_factory=dict)
    advertises: Mapping[str, str] = field(default_factory=dict)


# The values of these configs depend on the Pulsar cluster and need admin calls.
OF_PULSAR: Final = frozenset(
    (
        "log.retention.ms",
        "log.retention.minutes",
        "log.retention.hours",
        "log.retention.bytes",
        "message.max.bytes",
        "min.insync.replicas",
    )
)


def describe_node(settings: Settings, listeners: NodeListeners, namespace: TopicSettings | None) -> list[Config]:
    """`namespace`: what holds in it for topics that say nothing themselves. Without it `OF_PULSAR` are left out."""
    found = [*_own(settings), *_listeners(settings, listeners), *_limits(settings), *_coordinators(settings)]
    if namespace is not None:
        found += _of_pulsar(namespace)
    return [
        Config(name, value or None, kind, ConfigSource.STATIC_BROKER_CONFIG, None, True, documentation)
        for name, value, kind, documentation in sorted(found)
    ]


_Row = tuple[str, str, ConfigType, str]


def _truth(value: bool) -> str:
    return str(value).lower()


def _own(settings: Settings) -> Sequence[_Row]:
    kafka = settings.kafka
    return (
        ("broker.id", str(kafka.own_node_id), INT, "The node id of this sidecar."),
        ("node.id", str(kafka.own_node_id), INT, "The node id of this sidecar."),
        ("broker.rack", kafka.rack, STRING, "The rack of this sidecar: consumers in it read from here (KIP-392)."),
        (
            "inter.broker.protocol.version",
            PROTOCOL_VERSION,
            STRING,
            "The release of Kafka whose protocol this node speaks.",
        ),
        ("authorizer.class.name", "", STRING, "There is no authorizer."),
        ("log.dirs", LOG_DIR, LIST, "Pulsar keeps the logs."),
        ("num.partitions", str(kafka.default_partitions), INT, "Partitions of a topic made without a number."),
        (
            "auto.create.topics.enable",
            _truth(kafka.auto_create_topics),
            BOOLEAN,
            "Whether a missing topic is made when it is named.",
        ),
        ("delete.topic.enable", "true", BOOLEAN, "Topics can be deleted."),
        ("default.replication.factor", "1", INT, "Pulsar keeps the copies: to Kafka's clients there is one."),
        ("unclean.leader.election.enable", "false", BOOLEAN, "What is acknowledged is never given up."),
        ("log.cleanup.policy", "delete", LIST, "Of a topic that does not say so itself."),
        ("log.message.timestamp.type", "CreateTime", STRING, "Of a topic that does not say so itself."),
        ("compression.type", "producer", STRING, "Of a topic that does not say so itself."),
    )


def _listeners(settings: Settings, listeners: NodeListeners) -> Sequence[_Row]:
    def told(addresses: Mapping[str, str]) -> str:
        return ",".join(f"{name}://{address}" for name, address in addresses.items())

    protocols = ",".join(f"{name}:PLAINTEXT" for name in listeners.listens)
    return (
        ("listeners", told(listeners.listens), LIST, "Where this sidecar listens for Kafka clients."),
        ("advertised.listeners", told(listeners.advertises), LIST, "Where Kafka clients are sent."),
        ("listener.security.protocol.map", protocols, STRING, "There is no TLS and no login."),
    )


def _limits(settings: Settings) -> Sequence[_Row]:
    limits = settings.limits
    return (
        (
            "fetch.max.bytes",
            str(settings.kafka.fetch_max_bytes),
            INT,
            "Bytes in one fetch answer, whatever the client asks for.",
        ),
        ("socket.request.max.bytes", str(limits.max_request_bytes), INT, "The largest request."),
        ("max.connections", str(limits.max_connections), INT, "Kafka connections at once."),
        (
            "connections.max.idle.ms",
            str(round(limits.connection_idle_seconds * 1_000)),
            LONG,
            "A silent connection is closed after it.",
        ),
    )


def _coordinators(settings: Settings) -> Sequence[_Row]:
    groups, transactions = settings.groups, settings.transactions
    replicas = "Pulsar keeps the copies: to Kafka's clients there is one."
    return (
        (
            "offsets.topic.num.partitions",
            str(groups.offsets_partitions),
            INT,
            "Of __consumer_offsets, when it is made.",
        ),
        ("offsets.topic.replication.factor", "1", SHORT, replicas),
        (
            "offsets.retention.minutes",
            str(groups.offsets_retention_minutes),
            INT,
            "How long an empty group keeps its offsets.",
        ),
        (
            "offsets.commit.timeout.ms",
            str(groups.offset_commit_timeout_ms),
            INT,
            "How long a commit waits to be stored.",
        ),
        (
            "offset.metadata.max.bytes",
            str(groups.offset_metadata_bytes),
            INT,
            "The largest metadata of a committed offset.",
        ),
        (
            "group.initial.rebalance.delay.ms",
            str(groups.initial_rebalance_delay_ms),
            INT,
            "How long a new group waits for more members.",
        ),
        (
            "group.min.session.timeout.ms",
            str(groups.min_session_timeout_ms),
            INT,
            "The shortest session timeout of a member.",
        ),
        (
            "group.max.session.timeout.ms",
            str(groups.max_session_timeout_ms),
            INT,
            "The longest session timeout of a member.",
        ),
        ("group.max.size", str(groups.max_size), INT, "Most members of a group."),
        ("group.coordinator.rebalance.protocols", "classic,consumer", LIST, "The protocols of groups (KIP-848)."),
        (
            "group.consumer.session.timeout.ms",
            str(groups.consumer_session_timeout_ms),
            INT,
            "How long a member may be silent (KIP-848).",
        ),
        (
            "group.consumer.heartbeat.interval.ms",
            str(groups.consumer_heartbeat_interval_ms),
            INT,
            "Between heartbeats (KIP-848).",
        ),
        (
            "group.consumer.migration.policy",
            groups.migration,
            STRING,
            "Which groups with members change their protocol.",
        ),
        (
            "transaction.state.log.num.partitions",
            str(transactions.state_partitions),
            INT,
            "Of __transaction_state, when it is made.",
        ),
        ("transaction.state.log.replication.factor", "1", SHORT, replicas),
        ("transaction.state.log.min.isr", "1", INT, replicas),
        (
            "transaction.max.timeout.ms",
            str(transactions.max_timeout_ms),
            INT,
            "The longest transaction.timeout.ms of a producer.",
        ),
        (
            "producer.id.expiration.ms",
            str(transactions.producer_id_expiration_ms),
            INT,
            "How long a producer is remembered.",
        ),
        (
            "transactional.id.expiration.ms",
            str(transactions.id_expiration_ms),
            INT,
            "How long an unused transactional id is remembered.",
        ),
    )


def _of_pulsar(namespace: TopicSettings) -> Sequence[_Row]:
    milliseconds = int(namespace.default_retention.ms)

    def in_units(of_one: int) -> str:
        """Rounded up: less than an hour is not nothing."""
        return str(_UNLIMITED if milliseconds == _UNLIMITED else -(-milliseconds // of_one))

    kept = "For how long Pulsar keeps records of a topic that does not say so itself. -1 for no limit."
    return (
        ("log.retention.ms", str(milliseconds), LONG, kept),
        ("log.retention.minutes", in_units(_MINUTE_MS), INT, kept),
        ("log.retention.hours", in_units(_HOUR_MS), INT, kept),
        (
            "log.retention.bytes",
            namespace.default_retention.bytes,
            LONG,
            "How much of a partition Pulsar keeps. -1 for all.",
        ),
        (
            "message.max.bytes",
            str(namespace.default_max_message_bytes),
            INT,
            "The largest record batch: Pulsar's maxMessageSize.",
        ),
        (
            "min.insync.replicas",
            str(namespace.quorums.ack),
            INT,
            "So many bookies have stored what is acknowledged: the ack quorum.",
        ),
    )
