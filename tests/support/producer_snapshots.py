"""A log in which a producer wrote long ago, and a sidecar that has kept what it knew of that producer."""

from __future__ import annotations

import asyncio

from kafka_sidecar.partition.fold.known_producers import KnownProducers
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.snapshots.packed import pack, unpack
from kafka_sidecar.partition.snapshots.snapshot_values import extent_text
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, open_partition

KEY = b"producer-states:t-partition-0"
PRODUCER = 7


def values(states: MemoryStates) -> list[KnownProducers]:
    """All that was kept."""
    return [KnownProducers.decode(unpack(value)) for value in by_key(states).values()]


def by_key(states: MemoryStates) -> dict[bytes, bytes]:
    return {key: value for key, value in states.values.items() if key.startswith(KEY)}


def replace_all(states: MemoryStates, *by: KnownProducers) -> None:
    """As if somebody else had written them."""
    for key in by_key(states):
        del states.values[key]
    for number, one in enumerate(by):
        states.values[b"%b\0%b:%d" % (KEY, extent_text(one.extent), number)] = pack(one.encode())


def numbered(sequence: int) -> bytes:
    return batch(b"%d" % sequence, producer_id=PRODUCER, epoch=0, sequence=sequence)


def written_long_ago(log: MemoryLog, since: int = 100) -> None:
    """A batch of the producer, and many of others."""
    log.write(batch(b"first"))
    log.write(numbered(5))
    for _ in range(since):
        log.write(batch(b"other"))


async def settled(partition: Partition) -> None:
    while (keeping := partition._producer_snapshots.keeping) is not None and not keeping.done():  # noqa: ASYNC110
        await asyncio.sleep(0)


async def kept_by_another(log: MemoryLog, states: MemoryStates) -> None:
    """A sidecar has known the producer, and kept it."""
    partition = open_partition(log, "kafka-sidecar-a", states=states)
    assert (await append(partition, numbered(6))).error is ErrorCode.NONE
    partition.close()
    await settled(partition)
    assert values(states)
