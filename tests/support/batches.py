"""Record batches as a producer would send them."""

from __future__ import annotations

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from kafka_sidecar.wire.crc import crc32c
from kafka_sidecar.wire.records import CHECKED_FROM, HEADER, read_header


def batch(
    *values: bytes,
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    codec: int = 0,
    timestamp: int = 1_000,
    transactional: bool = False,
) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=transactional,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        batch_size=1_000_000,
    )
    for number, value in enumerate(values or (b"v",)):
        builder.append(number, timestamp + number, None, value, [])
    return bytes(builder.build())


def records_batch(records: list[tuple[bytes | None, bytes | None, int]], codec: int = 0) -> bytes:
    """Keys, values and timestamps."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1_000_000,
    )
    for number, (key, value, timestamp) in enumerate(records):
        builder.append(number, timestamp, key, value, [])
    return bytes(builder.build())


def with_header(data: bytes, **fields: int) -> bytes:
    """The batch with other fields in its header, and the checksum of that."""
    header = read_header(data)._replace(**fields)
    changed = bytearray(data)
    HEADER.pack_into(changed, 0, *header)
    HEADER.pack_into(changed, 0, *header._replace(crc=crc32c(memoryview(changed)[CHECKED_FROM:])))
    return bytes(changed)
