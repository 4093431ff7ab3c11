"""Kafka's topic names and Pulsar's.

    t                         the configured tenant and namespace
    __consumer_offsets        the namespace of the sidecar's own topics
    tenant/ns/t               that namespace
    persistent://tenant/ns/t  the same, in full

All forms of one topic are one `TopicName`. Anything else is INVALID_TOPIC: `ns/t` says no tenant,
non-persistent topics have no offsets, `t-partition-3` is a partition and not a topic.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.model.partition_name import partition_name, split_partition_name

# Kafka's Topic.validate: these characters, and no more than 249 of them.
MAX_LENGTH: Final = 249
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")
_LEGAL_PART: Final = re.compile(r"[a-zA-Z0-9_.=:-]+")  # the characters that Pulsar's NamedEntity allows
_PARTITION: Final = re.compile(r".*-partition-\d+")
# A subscription pattern with the prefix `persistent://tenant/namespace/:` is matched against the short names of the
# topics there. No topic name begins with a colon.
_SCOPED: Final = re.compile(r"persistent://(?P<tenant>[^/]+)/(?P<namespace>[^/]+)/:(?P<expression>.*)", re.DOTALL)

INTERNAL: Final = frozenset(
    {
        "__consumer_offsets",
        "__transaction_state",
        "__log_starts",
        "__kept_states",
        "__transactional_partitions",
        "__fleet_members",
    }
)
# Pulsar's own topics in a user's namespace (SystemTopicNames); they are not for Kafka clients.
PULSAR_SYSTEM: Final = (
    "__change_events",
    "__transaction_buffer_snapshot",
    "__transaction_pending_ack",
    "transaction_coordinator_assign",
    "__transaction_log_",
)


class InvalidTopicName(SidecarError):
    """Kafka's INVALID_TOPIC_EXCEPTION, with a sentence that says what is wrong."""


@dataclass(frozen=True, slots=True, order=True)
class TopicName:
    tenant: str
    namespace: str
    local: str

    @property
    def pulsar(self) -> str:
        """The partitioned topic."""
        return f"persistent://{self.tenant}/{self.namespace}/{self.local}"

    def partition(self, index: int) -> str:
        return partition_name(self.pulsar, index)

    @property
    def internal(self) -> bool:
        return self.local in INTERNAL

    @property
    def hidden(self) -> bool:
        return self.local.startswith(PULSAR_SYSTEM)


class TopicNames:
    """The two-way translation for one default namespace. The only place that knows it.

    Kafka's internal topics are in a namespace of their own, and have the short name there alone.
    """

    def __init__(self, default_namespace: str, metadata_namespace: str, listed_namespaces: Sequence[str] = ()) -> None:
        """`listed_namespaces`: further ones whose topics clients see when they list all."""
        self.listed_namespaces: Final = tuple(dict.fromkeys((default_namespace, *listed_namespaces)))
        self._tenant, _, self._namespace = default_namespace.partition("/")
        self._metadata_tenant, _, self._metadata_namespace = metadata_namespace.partition("/")

    @property
    def default_namespace(self) -> str:
        return f"{self._tenant}/{self._namespace}"

    @property
    def metadata_namespace(self) -> str:
        return f"{self._metadata_tenant}/{self._metadata_namespace}"

    def parse(self, name: str) -> TopicName:
        """The one name behind what a Kafka client said."""
        if not name:
            raise InvalidTopicName("the topic name is empty")
        rest = name
        if "://" in name:
            domain, _, rest = name.partition("://")
            if domain != "persistent":
                raise InvalidTopicName(f"{name}: only persistent topics have offsets")
        parts = rest.split("/")
        if len(parts) == 1 and rest is name:
            internal = name in INTERNAL
            parts = (
                [self._metadata_tenant, self._metadata_namespace, name]
                if internal
                else [self._tenant, self._namespace, name]
            )
        if len(parts) != 3:
            raise InvalidTopicName(f"{name}: write t, tenant/namespace/t or persistent://tenant/namespace/t")
        tenant, namespace, local = parts
        if not (_is_part(tenant) and _is_part(namespace)):
            raise InvalidTopicName(
                f"{name[:MAX_LENGTH]}: the tenant or namespace has characters that Pulsar does not allow, or too many"
            )
        if not _LEGAL.fullmatch(local) or local in (".", "..") or len(local) > MAX_LENGTH:
            raise InvalidTopicName(f"{name}: a topic name has 1 to {MAX_LENGTH} of the characters a-z A-Z 0-9 . _ -")
        if _PARTITION.fullmatch(local):
            raise InvalidTopicName(f"{name}: this names one partition of a topic")
        found = TopicName(tenant, namespace, local)
        if found.hidden:
            raise InvalidTopicName(f"{name} is a system topic of Pulsar")
        return found

    def kafka(self, name: TopicName) -> str:
        """How a Kafka client that asked for no particular form sees it."""
        if name.internal:
            short = (name.tenant, name.namespace) == (self._metadata_tenant, self._metadata_namespace)
        else:
            short = (name.tenant, name.namespace) == (self._tenant, self._namespace)
        return name.local if short else name.pulsar

    def canonical(self, name: str) -> str:
        """The one form of a name that is stored; what is no name stays as it is."""
        try:
            return self.kafka(self.parse(name))
        except InvalidTopicName:
            return name

    # --- as sidecars of another `kafka.namespace` have them

    def of(self, namespace: str) -> TopicNames:
        """The names that sidecars of that namespace have for topics: a short one means another topic there."""
        return self if namespace in ("", self.default_namespace) else TopicNames(namespace, self.metadata_namespace)

    def translated(self, name: str, to: TopicNames) -> str:
        """A name as `to` has it; what is no name stays as it is."""
        try:
            return to.kafka(self.parse(name))
        except InvalidTopicName:
            return name

    def translated_expression(self, expression: str, to: TopicNames) -> str:
        """The same of a regular expression that is matched against names."""
        namespace, bare = self.scope_of(expression)
        return bare if namespace == to.default_namespace else f"persistent://{namespace}/:{bare}"

    def scope_of(self, expression: str) -> tuple[str, str]:
        """The namespace whose topics have short names for a regular expression, and the expression alone."""
        scoped = _SCOPED.fullmatch(expression)
        if scoped is None or not (_is_part(scoped["tenant"]) and _is_part(scoped["namespace"])):
            return self.default_namespace, expression
        return f"{scoped['tenant']}/{scoped['namespace']}", scoped["expression"]

    def of_partition(self, partition: str) -> tuple[TopicName, int] | None:
        """The topic and the number of one of Pulsar's partitions; None where Kafka's clients have no name for it."""
        found = split_partition_name(partition)
        name = None if found is None else self.from_pulsar(found[0])
        return None if found is None or name is None else (name, found[1])

    def from_pulsar(self, topic: str) -> TopicName | None:
        """A topic as the admin API lists it; None for what Kafka clients have no name for."""
        try:
            return self.parse(topic)
        except InvalidTopicName:
            return None


def _is_part(name: str) -> bool:
    """Whether Pulsar may have a tenant or a namespace of this name."""
    return _LEGAL_PART.fullmatch(name) is not None and name not in (".", "..") and len(name) <= MAX_LENGTH
