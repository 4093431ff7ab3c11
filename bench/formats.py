"""What format pulsar costs: there Python touches every record."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from kafka_sidecar.partition.log.formats import PULSAR
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata

BATCH_BYTES: Final = 16 * 1024
SIZES: Final = (100, 1024)
ROUNDS: Final = 40
TIMES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatCost:
    what: str
    encode_us: float  # a record, from Kafka to Pulsar
    decode_us: float


def format_costs() -> Iterator[FormatCost]:
    for size in SIZES:
        for headers in (0, 2):
            count = max(1, BATCH_BYTES // size)
            batch = _batch(count, size, headers)
            encoded = PULSAR.encode(batch, None, log_append_time=False)
            metadata = MessageMetadata.FromString(
                MessageMetadata(producer_name=b"w", sequence_id=0, publish_time=1).SerializeToString() + encoded.fields
            )
            payload = memoryview(bytes(encoded.payload))
            yield FormatCost(
                what=f"{size} B, {headers} headers",
                encode_us=_least(partial(PULSAR.encode, batch, None, log_append_time=False)) / count,
                decode_us=_least(partial(PULSAR.decode, metadata, payload)) / count,
            )


def _batch(count: int, size: int, headers: int) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
        batch_size=2**30,
    )
    for number in range(count):
        of_record = [(f"header-{one}", b"value") for one in range(headers)]
        builder.append(number, 1_700_000_000_000 + number, b"key-%d" % number, b"x" * size, of_record)
    return bytes(builder.build())


def _least(work: Callable[[], object]) -> float:
    """Microseconds, the least of some rounds."""
    found = []
    for _ in range(ROUNDS):
        begun = time.perf_counter_ns()
        for _ in range(TIMES):
            work()
        found.append((time.perf_counter_ns() - begun) / TIMES / 1000)
    return min(found)
