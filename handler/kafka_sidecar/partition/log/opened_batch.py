"""A batch whose records have to be looked at, within what that may cost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from aiokafka.errors import CorruptRecordException

from kafka_sidecar.wire.compression import UnfoldsTooFar, without_compression
from kafka_sidecar.wire.records import BatchHeader, BatchInvalid, BatchMalformed, header_count, read_header

# A batch is decoded without interruption. Each of these limits, in records, bytes and headers, allows about 50 ms.
MAX_RECORDS: Final = 30_000
MAX_BYTES: Final = 16 * 1024 * 1024
MAX_HEADERS: Final = 50_000
# A batch of up to 64 KiB can't hold more than MAX_HEADERS headers, so its headers need not be counted.
_FEW_BYTES: Final = 64 * 1024


class RecordsTooLarge(BatchInvalid):
    """More records, or more bytes, than are opened: Kafka's MESSAGE_TOO_LARGE. Java's producers split such a batch."""


@contextmanager
def reading_records() -> Iterator[None]:
    """Errors of records are those of their batch."""
    try:
        yield
    except UnfoldsTooFar as error:
        raise RecordsTooLarge(str(error)) from error
    except CorruptRecordException as error:
        raise BatchMalformed(f"the records of the batch can't be read: {error}") from error
    except (UnicodeError, ValueError, IndexError) as error:
        raise BatchInvalid(f"a record of the batch can't be read: {error}") from error


def size_if_small(data: bytes | bytearray, most: int) -> int | None:
    """The size of a batch without compression; None where it is more than so many bytes, or is not known."""
    if len(data) > most:
        return None
    try:
        return len(without_compression(read_header(data), data, most))
    except (BatchInvalid, BatchMalformed):
        return None


def open_batch(data: bytes | bytearray) -> tuple[BatchHeader, bytes | bytearray]:
    """The header of a batch as it came, and the batch without compression. Call it within `reading_records`."""
    header = read_header(data)
    if header.record_count > MAX_RECORDS:
        raise RecordsTooLarge(f"a batch of {header.record_count} records is opened here: write at most {MAX_RECORDS}")
    plain = without_compression(header, data, MAX_BYTES)
    if len(plain) > _FEW_BYTES and header_count(plain, header.record_count) > MAX_HEADERS:
        raise RecordsTooLarge(f"a batch of more than {MAX_HEADERS} headers is opened here: write fewer")
    return header, plain
