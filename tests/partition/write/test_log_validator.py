"""What a topic's configs ask of a batch: done to it, or refused with the records that are to blame."""

from __future__ import annotations

import pytest
from aiokafka.record.default_records import DefaultRecordBatch

from kafka_sidecar.partition.log.formats import KAFKA, PULSAR, EntryFormat
from kafka_sidecar.partition.log.log_config import AS_IT_COMES, LogConfig
from kafka_sidecar.partition.write.log_validator import BatchRefused, check_ahead, validate
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import CODEC_MASK, LOG_APPEND_TIME, read_header, read_produced
from tests.support.batches import batch, records_batch

NOW = 1_000_000
CODECS = range(5)
FORMATS = pytest.mark.parametrize("entry_format", [KAFKA, PULSAR], ids=lambda one: str(one.name))


def values(data: bytes | bytearray) -> list[tuple[bytes | None, bytes | None]]:
    return [(record.key, record.value) for record in DefaultRecordBatch(bytes(data))]


def refusal(data: bytes, config: LogConfig) -> BatchRefused:
    with pytest.raises(BatchRefused) as refused:
        validate(data, config, NOW)
    return refused.value


@pytest.mark.parametrize("before", CODECS)
@pytest.mark.parametrize("after", CODECS)
def test_a_batch_gets_the_compression_of_its_topic_and_nothing_else_changes(before: int, after: int) -> None:
    data = records_batch([(b"k", b"v" * 100, NOW), (None, b"w", NOW)], codec=before)
    stored = validate(data, LogConfig(compression=after), NOW)
    header = read_produced(bytes(stored.payload))  # with a checksum that is right
    assert header.attributes & CODEC_MASK == after
    assert values(stored.payload) == [(b"k", b"v" * 100), (None, b"w")]
    assert (stored.payload is data) == (before == after)
    assert stored.batch is stored.payload


@FORMATS
def test_a_compacted_topic_takes_no_record_without_a_key(entry_format: EntryFormat) -> None:
    config = LogConfig(entry_format, needs_keys=True)
    validate(records_batch([(b"k", b"v", NOW), (b"", None, NOW)], codec=4), config, NOW)
    refused = refusal(records_batch([(None, b"v", NOW), (b"k", b"v", NOW), (None, None, NOW)], codec=4), config)
    assert refused.code is ErrorCode.INVALID_RECORD
    assert refused.records == [
        (0, "Compacted topic cannot accept message without key."),
        (2, "Compacted topic cannot accept message without key."),
    ]
    assert "2 record errors" in str(refused)


def test_in_format_kafka_the_header_says_whether_the_times_are_within_their_bounds() -> None:
    config = LogConfig(before_max_ms=100, after_max_ms=50)
    for time in (NOW - 100, NOW, NOW + 50, -1):
        validate(batch(b"a", timestamp=time), config, NOW)
    for time in (NOW - 101, NOW + 51):
        refused = refusal(batch(b"a", timestamp=time), config)
        assert (refused.code, refused.records) == (ErrorCode.INVALID_TIMESTAMP, ())
        assert f"[{NOW - 100}, {NOW + 50}]" in str(refused)
    with pytest.raises(BatchRefused):
        check_ahead(NOW + 3_600_001, AS_IT_COMES, NOW)


def test_where_records_are_opened_those_are_named_whose_times_are_out_of_bounds() -> None:
    data = records_batch([(b"k", b"v", NOW), (b"k", b"v", NOW - 101), (b"k", b"v", NOW + 51)])
    refused = refusal(data, LogConfig(PULSAR, before_max_ms=100, after_max_ms=50))
    assert refused.code is ErrorCode.INVALID_TIMESTAMP
    assert [number for number, _ in refused.records] == [1, 2]


@FORMATS
def test_with_log_append_time_the_producers_times_do_not_count(entry_format: EntryFormat) -> None:
    stored = validate(batch(b"a", timestamp=2**50), LogConfig(entry_format, log_append_time=True, before_max_ms=1), NOW)
    assert stored.log_append_time
    if entry_format is KAFKA:
        assert read_header(stored.payload).attributes & LOG_APPEND_TIME


@pytest.mark.parametrize(
    ("data", "code"),
    [
        pytest.param(batch(b"a" * 20_000_000, codec=4), ErrorCode.MESSAGE_TOO_LARGE, id="unfolds too far"),
        pytest.param(
            batch(b"a" * 100, codec=4)[:70] + b"?" * 20, ErrorCode.CORRUPT_MESSAGE, id="nothing to decompress"
        ),
    ],
)
def test_what_can_not_be_opened_is_refused(data: bytes, code: ErrorCode) -> None:
    assert refusal(data, LogConfig(compression=1)).code is code
