"""What a task tells of a partition, and what it makes of a failure. Pure, but for the log."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Final

from kafka_sidecar.errors import ProtocolError, SidecarError
from kafka_sidecar.kafka_client.client import TRANSIENT, Refused
from kafka_sidecar.pipelines.copying.delivery import Progress
from kafka_sidecar.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

# Limit for the left_out texts of one partition.
MOST_LEFT_OUT: Final = 1_000
FENCED: Final = frozenset(
    (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    topic: str
    partition: int
    progress: Progress | None = None
    records: int = 0
    bytes: int = 0
    lost: tuple[int, int] | None = None  # source offsets whose records were deleted before they could be copied
    repeats: tuple[int, int] | None = None  # target offsets that may hold duplicates
    left_out: tuple[str, ...] = ()  # what can't be copied and is left out, because --accept-loss was given
    trouble: str = ""  # a fault that the next round may overcome
    is_fenced: bool = False  # another writer has fenced this partition's producer, or its transaction has timed out
    problem: str = ""  # a fault that only an operator can fix

    def with_stored(self, progress: Progress, records: int, size: int) -> Outcome:
        return replace(self, progress=progress, records=self.records + records, bytes=self.bytes + size)


def failed(outcome: Outcome, error: Exception) -> Outcome:
    """With the trouble that another try may mend, or the problem that it won't."""
    if isinstance(error, Refused):
        if error.code in FENCED:
            return replace(outcome, trouble=str(error), is_fenced=True)
        if error.is_mended_by_beginning_again:
            return replace(outcome, trouble=str(error))
        return replace(outcome, problem=str(error))
    if isinstance(error, (ProtocolError, *TRANSIENT)):
        return replace(outcome, trouble=str(error) or type(error).__name__)
    if isinstance(error, SidecarError):
        return replace(outcome, problem=str(error))
    log.error("partition %d of topic %s", outcome.partition, outcome.topic, exc_info=error)
    return replace(outcome, problem=f"{type(error).__name__}: {error}")
