"""Taking Kafka's compressions off: every codec, both kinds of snappy, and never more than the bound."""

from __future__ import annotations

import gzip
from collections.abc import Callable

import cramjam
import pytest
from aiokafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode
from aiokafka.record.default_records import DefaultRecordBatch

from kafka_sidecar.wire.compression import UnfoldsTooFar, without_compression
from kafka_sidecar.wire.records import BatchMalformed, read_header
from tests.support.batches import batch

PLAIN = batch(b"a" * 300, b"b" * 300_000)
MAX = 1_000_000
Encode = Callable[[bytes], bytes]
ENCODERS: list[tuple[int, Encode]] = [
    (1, gzip_encode),
    (2, snappy_encode),
    (2, lambda data: bytes(cramjam.snappy.compress_raw(data))),
    (3, lz4_encode),
    (4, zstd_encode),
]
NAMES = ["gzip", "snappy of Java", "snappy of librdkafka", "lz4", "zstd"]


def compressed(codec: int, records: bytes) -> bytes:
    data = bytearray(PLAIN[:61])
    data[8:12] = (49 + len(records)).to_bytes(4, "big")
    data[21:23] = codec.to_bytes(2, "big")
    return bytes(data + records)


@pytest.mark.parametrize(("codec", "encode"), ENCODERS, ids=NAMES)
def test_the_records_are_those_that_were_compressed(codec: int, encode: Encode) -> None:
    data = compressed(codec, encode(PLAIN[61:]))
    plain = without_compression(read_header(data), data, MAX)
    assert plain[61:] == PLAIN[61:]
    assert [record.value for record in DefaultRecordBatch(bytes(plain))] == [b"a" * 300, b"b" * 300_000]


@pytest.mark.parametrize(("codec", "encode"), ENCODERS, ids=NAMES)
def test_what_unfolds_to_more_than_the_bound_is_refused(codec: int, encode: Encode) -> None:
    data = compressed(codec, encode(PLAIN[61:]))
    with pytest.raises(UnfoldsTooFar):
        without_compression(read_header(data), data, len(PLAIN) - 62)
    assert without_compression(read_header(data), data, len(PLAIN) - 61)[61:] == PLAIN[61:]


@pytest.mark.parametrize(("codec", "encode"), ENCODERS, ids=NAMES)
def test_what_is_cut_off_is_refused(codec: int, encode: Encode) -> None:
    records = encode(PLAIN[61:])
    data = compressed(codec, records[: len(records) // 2])
    with pytest.raises(BatchMalformed):
        without_compression(read_header(data), data, MAX)


def test_a_codec_that_nobody_knows_is_refused() -> None:
    data = compressed(7, b"")
    with pytest.raises(BatchMalformed, match="codec 7"):
        without_compression(read_header(data), data, MAX)


def test_a_gzip_stream_of_another_window_is_read() -> None:
    data = compressed(1, gzip.compress(PLAIN[61:], 1))
    assert without_compression(read_header(data), data, MAX)[61:] == PLAIN[61:]


def test_one_gzip_stream_may_follow_another() -> None:
    data = compressed(1, gzip.compress(PLAIN[61:100]) + gzip.compress(PLAIN[100:]))
    assert without_compression(read_header(data), data, MAX)[61:] == PLAIN[61:]
