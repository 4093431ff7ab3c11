"""One batch on its way: from its request to the log, and back with its offset. One object goes all the way."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Final, Protocol, TypeVar

from kafka_sidecar.partition.log.basis import NO_TRANSACTION, BatchSequence
from kafka_sidecar.partition.log.errors import SENT_AGAIN
from kafka_sidecar.partition.log.formats import EncodedEntry
from kafka_sidecar.partition.log.log_config import AS_IT_COMES, LogConfig
from kafka_sidecar.partition.write.log_validator import BatchRefused, check_ahead, validate
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP, BatchHeader, next_sequence

limited = RateLimitedLog(logging.getLogger(__name__))

T = TypeVar("T")

AREA: Final = "append"  # The label of append failures in the metric of internal errors


class AppendRequest(Protocol):
    """A request that waits for the outcomes of its appends."""

    def on_appended(self, batch_index: int, error: ErrorCode, base_offset: int) -> None:
        """The outcome of the batch that the request has given this index."""
        ...

    def on_refused(self, batch_index: int, refused: BatchRefused) -> None:
        """Why its records are not taken; the outcome follows."""
        ...

    def on_log_append_time(self, batch_index: int, timestamp: int) -> None:
        """The time of its records is the broker's; the outcome follows."""
        ...


class Append:
    __slots__ = (
        "_others",
        "_request",
        "batch_index",
        "data",
        "deadline",
        "encoded",
        "epoch",
        "error",
        "first_sequence",
        "is_marker",
        "is_validated",
        "last_sequence",
        "max_timestamp",
        "offset_count",
        "producer_id",
        "transaction",
    )

    def __init__(
        self,
        data: bytes | bytearray,
        offset_count: int,
        max_timestamp: int,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        deadline: float,
        request: AppendRequest,
        batch_index: int,
    ) -> None:
        self.data = data
        self.encoded: EncodedEntry | None = None  # The entry to store; None if the batch is stored unchanged
        self.offset_count = offset_count
        self.max_timestamp = max_timestamp
        self.producer_id = producer_id
        self.epoch = epoch
        self.first_sequence = first_sequence
        self.last_sequence = next_sequence(first_sequence, offset_count - 1)
        # The number of the transaction that the batch belongs to, or that the marker ends.
        self.transaction = NO_TRANSACTION
        self.is_marker = False
        self.is_validated = False
        self.deadline = deadline
        self.batch_index = batch_index
        self.error = ErrorCode.NONE  # The error of the outcome; NONE before it is known
        self._request: AppendRequest | None = request
        self._others: list[tuple[AppendRequest, int]] = []  # requests with a retry of the batch

    @classmethod
    def of(cls, header: BatchHeader, data: bytes, deadline: float, request: AppendRequest, batch_index: int) -> Append:
        return cls(
            data,
            header.offset_count,
            header.max_timestamp,
            header.producer_id,
            header.producer_epoch,
            header.base_sequence,
            deadline,
            request,
            batch_index,
        )

    @classmethod
    def of_marker(
        cls, data: bytes, transaction: int, deadline: float, request: AppendRequest, batch_index: int
    ) -> Append:
        """What ends a transaction. It has no place in its producer's sequence."""
        append = cls(data, 1, NO_TIMESTAMP, NO_PRODUCER_ID, -1, NO_SEQUENCE, deadline, request, batch_index)
        append.transaction = transaction
        append.is_marker = True
        return append

    def validate(self, config: LogConfig, now_ms: int) -> None:
        """Make it what the configs of its topic ask for, or BatchRefused."""
        # A batch that has waited is not validated again, even if the configs have changed.
        if self.is_marker or self.is_validated:
            return
        if config is AS_IT_COMES:
            check_ahead(self.max_timestamp, config, now_ms)
            self.is_validated = True
        else:
            self.become(validate(self.data, config, now_ms))

    def become(self, encoded: EncodedEntry) -> None:
        self.is_validated = True
        self.encoded = encoded
        self.max_timestamp = encoded.max_timestamp
        self.data = encoded.batch

    @property
    def size(self) -> int:
        """Of what is stored."""
        return len(self.data) if self.encoded is None else len(self.encoded.fields) + len(self.encoded.payload)

    @property
    def has_producer(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID

    @property
    def is_awaited(self) -> bool:
        """Whether a request still waits for it."""
        return self._request is not None

    @property
    def sequence(self) -> BatchSequence:
        return BatchSequence(self.producer_id, self.epoch, self.first_sequence, self.last_sequence)

    def is_retry_of(self, other: Append) -> bool:
        """Whether the two are one batch of one producer. It is sent again when its answer does not come."""
        return (
            self.first_sequence == other.first_sequence
            and self.last_sequence == other.last_sequence
            and self.epoch == other.epoch
            and self.producer_id == other.producer_id
        )

    def share(self, copy: Append) -> None:
        """The request of a retry waits for the outcome of the first try."""
        self.deadline = max(self.deadline, copy.deadline)
        if copy._request is None:
            return
        if self._request is None:
            self._request, self.batch_index = copy._request, copy.batch_index
        else:
            self._others.append((copy._request, copy.batch_index))

    def resolve(self, error: ErrorCode, base_offset: int) -> None:
        """Tell the requests the outcome, once."""
        self.error = error
        request, self._request = self._request, None
        if request is not None:
            _tell(request, self.batch_index, error, base_offset)
        if self._others:
            others, self._others = self._others, []
            for request, batch_index in others:
                _tell(request, batch_index, error, base_offset)

    def refuse(self, error: ErrorCode) -> None:
        self.resolve(error, -1)

    def refuse_records(self, refused: BatchRefused) -> None:
        """What is in it can't be taken."""
        for request, batch_index in self._requests():
            request.on_refused(batch_index, refused)
        self.refuse(refused.code)

    def tell_log_append_time(self, timestamp: int) -> None:
        """The broker's time, by which its records have been stored."""
        for request, batch_index in self._requests():
            request.on_log_append_time(batch_index, timestamp)

    def _requests(self) -> list[tuple[AppendRequest, int]]:
        return self._others if self._request is None else [(self._request, self.batch_index), *self._others]


class MarkerWritten(AppendRequest):
    """Who waits for a marker."""

    def __init__(self) -> None:
        self.error: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()

    def on_appended(self, batch_index: int, error: ErrorCode, base_offset: int) -> None:
        if not self.error.done():
            self.error.set_result(error)

    def on_refused(self, batch_index: int, refused: BatchRefused) -> None: ...

    def on_log_append_time(self, batch_index: int, timestamp: int) -> None: ...


def expire(appends: list[Append], now: float) -> tuple[list[Append], set[int]]:
    """Refuse those whose time is over, and with each what its producer wrote behind it: the log must not have a hole.

    Returns the others, and the producers of those that were refused.
    """
    late: set[int] = set()
    kept = []
    for append in appends:
        producer_id = append.producer_id
        if append.deadline <= now or producer_id in late:
            late.add(producer_id)
            late.discard(NO_PRODUCER_ID)  # Batches without a producer id have no sequence that could get a hole
            append.refuse(ErrorCode.REQUEST_TIMED_OUT)
        else:
            kept.append(append)
    return kept, late


def pass_on(waited: Iterable[tuple[Append, T]], take: Callable[[Append, T], None]) -> dict[int, ErrorCode]:
    """Have those taken that have waited, in their order.

    Where one is refused for a moment, so is what its producer wrote behind it. Else room may come, say, between the
    two: the second would stand in the log before the first, which would stay out of order.

    Returns the producers to whom that has happened.
    """
    refused: dict[int, ErrorCode] = {}  # Producer id → the error with which its later batches are refused
    for append, with_it in waited:
        error = refused.get(append.producer_id)
        if error is not None:
            append.refuse(error)
            continue
        take(append, with_it)
        if append.has_producer and append.error in SENT_AGAIN:
            refused[append.producer_id] = append.error
    return refused


def _tell(request: AppendRequest, batch_index: int, error: ErrorCode, base_offset: int) -> None:
    try:
        request.on_appended(batch_index, error, base_offset)
    except Exception:  # A failing request must not affect the other appends or the fold
        metrics.INTERNAL_ERRORS.labels(AREA).inc()
        limited.exception("the request of an append could not be told its outcome")
