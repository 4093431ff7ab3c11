"""A mirror's own topic, read back: what each of its transactions has copied, and how far it was at last."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Final

from kafka_sidecar.errors import CommandFailed
from kafka_sidecar.kafka_client.client import KafkaClient, Refused, until_it_succeeds
from kafka_sidecar.kafka_client.topics import EARLIEST, LATEST, READ_COMMITTED, Partition, offsets
from kafka_sidecar.pipelines.copying.delivery import TRANSACTION_TIMEOUT_MS
from kafka_sidecar.pipelines.copying.offset_runs import Copied, Translation, decode, decode_key
from kafka_sidecar.pipelines.copying.places import record_place
from kafka_sidecar.pipelines.copying.reading import records
from kafka_sidecar.wire.error_code import ErrorCode

# A run that was killed may leave a transaction open. Records behind it stay unread until that transaction times out.
STABLE_SECONDS: Final = 1.5 * TRANSACTION_TIMEOUT_MS / 1_000


async def recorded(kafka: KafkaClient, topic: str) -> AsyncIterator[tuple[Partition, Copied]]:
    """All of it that committed readers see, in order."""
    at = (topic, 0)
    begin, end = (await offsets(kafka, [at], EARLIEST))[at], (await offsets(kafka, [at], LATEST, READ_COMMITTED))[at]
    async for record in records(kafka, topic, 0, begin, end):
        try:
            found = decode_key(record.key or b""), decode(record.value or b"")
        except ValueError as error:
            raise CommandFailed(f"offset {record.offset} of topic {topic} is not of a mirror: {error}") from error
        yield found


async def translations(kafka: KafkaClient, topic: str) -> dict[Partition, Translation]:
    """Where each offset has gone, up to now."""
    found: dict[Partition, list[Copied]] = {}
    async for partition, copied in recorded(kafka, topic):
        found.setdefault(partition, []).append(copied)
    return {partition: Translation(records) for partition, records in found.items()}


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a topic of runs says, without its runs."""

    latest: dict[Partition, Copied] = field(default_factory=dict)
    # Partitions where the copying of entries without a broker index has begun or is done.
    with_places: set[Partition] = field(default_factory=set)


async def latest(kafka: KafkaClient, topic: str) -> Recorded:
    """How far each partition is, once nothing is held back any more."""
    at = (topic, 0)
    end = (await offsets(kafka, [at], LATEST))[at]
    await until_it_succeeds(lambda: _stable(kafka, at, end), STABLE_SECONDS)
    found = Recorded()
    async for partition, copied in recorded(kafka, topic):
        if record_place(copied.next_source) is not None:
            found.with_places.add(partition)
        if partition not in found.latest or copied.next_source >= found.latest[partition].next_source:
            found.latest[partition] = replace(copied, runs=())
    return found


async def _stable(kafka: KafkaClient, at: Partition, end: int) -> None:
    if (await offsets(kafka, [at], LATEST, READ_COMMITTED))[at] < end:
        raise Refused(
            ErrorCode.CONCURRENT_TRANSACTIONS,
            f"a transaction in topic {at[0]} was not ended; it times out within a minute",
        )
