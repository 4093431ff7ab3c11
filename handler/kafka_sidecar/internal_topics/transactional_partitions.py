"""Which partitions have had transactions, and the entry behind which these stand, by partition in Pulsar's words.

It is stored before the first entry of a transaction is sent. So a partition that is not here has no transaction, and
need not be read from its beginning to tell. Of two entries the earlier counts.
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.internal_topics.shared_map import MergeRule, SharedMap
from kafka_sidecar.internal_topics.stored_values import stored_values
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.loop.ids import NewId
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.ports import Admin, Client

TransactionalPartitions = SharedMap[Position]


class _Beginnings(MergeRule[Position]):
    def encode(self, value: Position) -> bytes:
        return b"%d:%d" % value

    def decode(self, data: bytes) -> Position:
        ledger, entry = data.split(b":")
        return Position(int(ledger), int(entry))

    def supersedes(self, value: Position, other: Position) -> bool:
        return value < other


BEGINNINGS: Final = _Beginnings()


def topic_in(namespace: str) -> str:
    return f"persistent://{namespace}/__transactional_partitions"


def transactional_partitions(
    client: Client, admin: Admin, namespace: str, clock: Clock, new_id: NewId
) -> TransactionalPartitions:
    return SharedMap(client, admin, topic_in(namespace), BEGINNINGS, clock, new_id)


async def stored_beginnings(client: Client, admin: Admin, namespace: str) -> dict[str, Position]:
    """Of all partitions that have had transactions, for who looks once and writes nothing. May raise PulsarError."""
    return await stored_values(client, admin, topic_in(namespace), BEGINNINGS)
