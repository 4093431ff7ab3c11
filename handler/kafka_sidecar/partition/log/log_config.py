"""Kafka's LogConfig: what the configs of a topic ask of the records that are appended to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafka_sidecar.partition.log.formats import KAFKA, EntryFormat

# message.timestamp.after.max.ms: since Kafka 4.0 a record may be at most an hour ahead of the broker.
MAX_AHEAD_MS: Final = 3_600_000
NO_BOUND_MS: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LogConfig:
    entry_format: EntryFormat = KAFKA
    # Kafka's codec id for all batches (compression.type); None keeps the producer's codec.
    compression: int | None = None
    log_append_time: bool = False
    needs_keys: bool = False  # Records without a key are refused, as Kafka does for cleanup.policy=compact
    before_max_ms: int = NO_BOUND_MS
    after_max_ms: int = MAX_AHEAD_MS


# Batches are appended as they are.
AS_IT_COMES: Final = LogConfig()
