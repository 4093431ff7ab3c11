"""Record batches as a producer would send them."""

from __future__ import annotations

from aiokafka.record.default_records import DefaultRecordBatchBuilder


def batch(*values: bytes, producer_id: int = -1, epoch: int = -1, sequence: int = -1, codec: int = 0, timestamp: int = 1_000) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=0, producer_id=producer_id, producer_epoch=epoch,
        base_sequence=sequence, batch_size=1_000_000,
    )  # fmt: skip
    for number, value in enumerate(values or (b"v",)):
        builder.append(number, timestamp + number, None, value, [])
    return bytes(builder.build())
