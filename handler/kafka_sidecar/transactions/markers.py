"""What ends a transaction in the logs of its partitions: a marker each. One that is written twice does no harm
(`partition.fold`).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, Protocol

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.loop.backoff import Backoff
from kafka_sidecar.loop.lasting import Lasting
from kafka_sidecar.loop.waiting import gathered
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.transactions.metadata import TopicPartition, TransactionMetadata
from kafka_sidecar.wire.control_records import EndTransactionMarker, write_marker
from kafka_sidecar.wire.error_code import ErrorCode

log = RateLimitedLog(logging.getLogger(__name__))

# Timeout of one attempt to write a marker, within which a dead broker is replaced. Then the marker is retried.
WRITE_SECONDS: Final = 30.0
# A topic counts as deleted after brokers have reported it missing for 30 s: a broker that has just started may not know
# an existing topic.
GONE_SECONDS: Final = 30.0
# Longest pause between two reports that a topic is missing. One attempt (WRITE_SECONDS) with its back-off takes less.
PAUSE_SECONDS: Final = 45.0
_WRITTEN: Final = (ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE)  # INVALID_TXN_STATE: the marker was in the log already


class Logs(Protocol):
    """The partitions' logs, as far as markers need them."""

    async def append_marker(
        self, partition: TopicPartition, marker: bytes, transaction: int, seconds: float
    ) -> ErrorCode:
        """Append a marker, and return what became of it. UNKNOWN_TOPIC_OR_PARTITION where the topic is not there,
        looked at again.
        """
        ...


class Markers:
    def __init__(self, logs: Logs) -> None:
        self._logs = logs

    async def write(self, metadata: TransactionMetadata) -> None:
        """Write the markers of a prepared transaction. Returns when all are in their logs, however long that takes."""
        await gathered(self._write_one(metadata, partition) for partition in sorted(metadata.partitions))

    async def _write_one(self, metadata: TransactionMetadata, partition: TopicPartition) -> None:
        marker = EndTransactionMarker(metadata.is_committed, 0)
        backoff = Backoff()
        gone = Lasting(GONE_SECONDS, PAUSE_SECONDS)
        while True:
            data = write_marker(metadata.producer_id, metadata.producer_epoch, marker, metadata.last_update_timestamp)
            error = await self._try(metadata, partition, data)
            if error in _WRITTEN:
                return
            if error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                gone.say(now := asyncio.get_running_loop().time())
                if gone.is_believed(now):
                    log.info(
                        "%s-%d of transaction %s is deleted: it needs no marker", *partition, metadata.transactional_id
                    )
                    return
            elif error is not None:  # any other error: the topic may exist
                gone.deny()
            why = "nothing is heard of it" if error is None else error.name
            log.warning(
                "the marker of transaction %s in %s-%d is tried again: %s", metadata.transactional_id, *partition, why
            )
            await backoff.pause()

    async def _try(self, metadata: TransactionMetadata, partition: TopicPartition, data: bytes) -> ErrorCode | None:
        """None where nothing is heard of it."""
        try:
            return await self._logs.append_marker(partition, data, metadata.number, WRITE_SECONDS)
        except (TimeoutError, SidecarError) as error:
            log.info("the marker of transaction %s in %s-%d: %s", metadata.transactional_id, *partition, error)
            return None
