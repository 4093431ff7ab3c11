"""What a topic's configs ask of a batch: done to it, or the reason why it is refused (Kafka's LogValidator). Pure.

A batch that has to meet nothing is never opened: its header says what there is to check.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from aiokafka.record.default_records import DefaultRecordBatch

from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.partition.log.formats import EncodedEntry
from kafka_sidecar.partition.log.log_config import LogConfig
from kafka_sidecar.partition.log.opened_batch import RecordsTooLarge, open_batch, reading_records
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import CODEC_MASK, NO_TIMESTAMP, BatchMalformed, read_header

# The error message lists the first three record errors, as Kafka's does; the response lists all of them (KIP-467).
_TOLD_IN_TEXT: Final = 3


class RecordError(NamedTuple):
    """A record that can't be taken (KIP-467)."""

    number: int  # the record's index in its batch
    message: str


class BatchRefused(Exception):
    def __init__(self, code: ErrorCode, message: str, records: Sequence[RecordError] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.records = records


def check_ahead(max_timestamp: int, config: LogConfig, now_ms: int) -> None:
    """By the header alone."""
    if max_timestamp > now_ms + config.after_max_ms:
        raise BatchRefused(
            ErrorCode.INVALID_TIMESTAMP, f"the batch has the timestamp {max_timestamp}, {_range(config, now_ms)}"
        )


def opens(data: bytes | bytearray, config: LogConfig) -> bool:
    """Whether `validate` has to look into the records of a batch."""
    if config.entry_format.opens_records or config.needs_keys:
        return True
    return config.compression is not None and config.compression != read_header(data).attributes & CODEC_MASK


def validate(data: bytes | bytearray, config: LogConfig, now_ms: int) -> EncodedEntry:
    """The entry for a batch that `read_produced` has taken, or BatchRefused."""
    try:
        if config.needs_keys:
            _check_keys(data)
        entry = config.entry_format.encode(data, config.compression, log_append_time=config.log_append_time)
        if not config.log_append_time:
            _check_times(data, entry, config, now_ms)
    except RecordsTooLarge as error:
        raise BatchRefused(ErrorCode.MESSAGE_TOO_LARGE, str(error)) from error
    except BatchMalformed as error:
        raise BatchRefused(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
    except ProtocolError as error:
        raise BatchRefused(ErrorCode.INVALID_RECORD, str(error)) from error
    return entry


def _check_keys(data: bytes | bytearray) -> None:
    with reading_records():
        _, plain = open_batch(data)
        missing = [number for number, record in enumerate(DefaultRecordBatch(plain)) if record.key is None]
    if missing:
        errors = [RecordError(number, "Compacted topic cannot accept message without key.") for number in missing]
        raise BatchRefused(ErrorCode.INVALID_RECORD, _text(errors), errors)


def _check_times(data: bytes | bytearray, entry: EncodedEntry, config: LogConfig, now_ms: int) -> None:
    earliest, latest = now_ms - config.before_max_ms, now_ms + config.after_max_ms
    if not config.entry_format.opens_records:
        header = read_header(data)
        if header.max_timestamp > latest or NO_TIMESTAMP != header.base_timestamp < earliest:
            text = (
                f"the batch has timestamps from {header.base_timestamp} to {header.max_timestamp}, "
                f"{_range(config, now_ms)}"
            )
            raise BatchRefused(ErrorCode.INVALID_TIMESTAMP, text)
        return
    if entry.max_timestamp <= latest and earliest < 0:
        return
    with reading_records():
        _, plain = open_batch(data)
        times = [record.timestamp for record in DefaultRecordBatch(plain)]
    errors = [
        RecordError(
            number, f"Timestamp {time} of message with offset {number} is out of range, {_range(config, now_ms)}"
        )
        for number, time in enumerate(times)
        if time > latest or NO_TIMESTAMP != time < earliest
    ]
    if errors:
        raise BatchRefused(
            ErrorCode.INVALID_TIMESTAMP, "One or more records have been rejected due to invalid timestamp", errors
        )


def _range(config: LogConfig, now_ms: int) -> str:
    return f"the timestamp should be within [{max(0, now_ms - config.before_max_ms)}, {now_ms + config.after_max_ms}]"


def _text(errors: Sequence[RecordError]) -> str:
    first = "; ".join(f"{error.number}: {error.message}" for error in errors[:_TOLD_IN_TEXT])
    return (
        f"One or more records have been rejected due to {len(errors)} record errors in total, "
        f"and only showing the first three errors at most: {first}"
    )
