"""The records that Kafka-on-Pulsar has stored in `__consumer_offsets`.

Its messages hold Kafka record batches, all commits of a group under one and the same message key.
Pulsar's compaction would keep only the last of them, so what is read in this form is to be written
again in ours. Offsets of a transaction count once its commit marker has come.
"""

from __future__ import annotations

import struct
from typing import Final

from aiokafka.record.memory_records import MemoryRecords

from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.wire.crc import crc32c
from kafka_sidecar.wire.records import CHECKED_FROM, CONTROL, TRANSACTIONAL, BatchHeader, split_batches

Pair = tuple[bytes, bytes | None]

_COMMIT: Final = 1


class LegacyBatches:
    """Record batches in message values, in the order of the log."""

    def __init__(self) -> None:
        self._open: dict[int, list[Pair]] = {}  # by producer id: commits of transactions that have not ended

    def records(self, value: bytes) -> list[Pair] | None:
        """The records that count now; None where the value is not record batches."""
        batches = _batches(value)
        if batches is None:
            return None
        found: list[Pair] = []
        for header, data in batches:
            pairs = _pairs(data)
            if header.attributes & CONTROL:
                waiting = self._open.pop(header.producer_id, [])
                if pairs and struct.unpack_from(">hh", pairs[0][0])[1] == _COMMIT:
                    found += waiting
            elif header.attributes & TRANSACTIONAL:
                self._open.setdefault(header.producer_id, []).extend(pairs)
            else:
                found += pairs
        return found


def _batches(value: bytes) -> list[tuple[BatchHeader, bytes]] | None:
    try:
        split = [(header, value[at : at + header.size]) for header, at in split_batches(value)]
    except ProtocolError:
        return None
    intact = all(crc32c(memoryview(data)[CHECKED_FROM:]) == header.crc for header, data in split)
    return split if split and intact else None


def _pairs(data: bytes) -> list[Pair]:
    records = MemoryRecords(data)
    pairs: list[Pair] = []
    while records.has_next():
        pairs += [(record.key, record.value) for record in records.next_batch() if record.key is not None]
    return pairs
