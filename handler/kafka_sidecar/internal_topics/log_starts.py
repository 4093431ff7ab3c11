"""Where clients have moved the starts of logs to (DeleteRecords), by partition in Pulsar's words.

A start only moves forward: of two moves of one partition the greater counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.internal_topics.shared_map import MergeRule, SharedMap
from kafka_sidecar.internal_topics.stored_values import stored_values
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.loop.ids import NewId
from kafka_sidecar.pulsar.ports import Admin, Client

LogStarts = SharedMap[MovedStart]


class _Moves(MergeRule[MovedStart]):
    def encode(self, value: MovedStart) -> bytes:
        return value.encode()

    def decode(self, data: bytes) -> MovedStart:
        return MovedStart.decode(data)

    def supersedes(self, value: MovedStart, other: MovedStart) -> bool:
        return value > other


MOVES: Final = _Moves()


def topic_in(namespace: str) -> str:
    return f"persistent://{namespace}/__log_starts"


def log_starts(
    client: Client,
    admin: Admin,
    namespace: str,
    clock: Clock,
    new_id: NewId,
    on_moved: Callable[[str, MovedStart], None],
) -> LogStarts:
    return SharedMap(client, admin, topic_in(namespace), MOVES, clock, new_id, on_moved)


async def stored_starts(client: Client, admin: Admin, namespace: str) -> dict[str, MovedStart]:
    """Where the starts of all partitions have been moved to, for who looks once and writes nothing. May raise
    PulsarError.
    """
    return await stored_values(client, admin, topic_in(namespace), MOVES)
