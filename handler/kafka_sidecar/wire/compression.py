"""Kafka's compressions of a record batch, taken off within a bound, and put on."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from functools import partial
from typing import Final

import cramjam
from aiokafka.codec import gzip_encode, lz4_encode, snappy_encode, zstd_encode

from kafka_sidecar.wire.crc import crc32c
from kafka_sidecar.wire.records import CODEC_MASK, HEADER_SIZE, BatchHeader, BatchInvalid, BatchMalformed

# First guess of the decompressed size: 8 times the compressed size. If the guess is too small, decompression starts
# again with more room.
_USUAL_RATIO: Final = 8
_SMALLEST_GUESS: Final = 64 * 1024
_NO_ROOM: Final = "failed to write whole buffer"
_GZIP_WINDOW: Final = 31  # zlib's wbits for a gzip stream with any window size
_GZIP_STREAMS: Final = 16  # limit of gzip streams in a batch, which usually has one
_XERIAL_MAGIC: Final = b"\x82SNAPPY\0"
_XERIAL_HEADER_SIZE: Final = 16
_I32: Final = struct.Struct(">i")
_LENGTH_AT: Final = 8
_OVERHEAD: Final = 12
_ATTRIBUTES_AT: Final = 21
_I16: Final = struct.Struct(">h")
_U32: Final = struct.Struct(">I")
_CRC_AT: Final = 17


class UnfoldsTooFar(BatchInvalid):
    """The records take more than the bound when they are decompressed; zeros shrink to a thousandth."""


def without_compression(header: BatchHeader, data: bytes | bytearray, max_bytes: int) -> bytes | bytearray:
    """The batch with its records as they are. Its checksum is not made again: it was looked at when the batch came."""
    codec = header.attributes & CODEC_MASK
    if not codec:
        return data
    try:
        records = _DECOMPRESS[codec](data[HEADER_SIZE : header.size], max_bytes)
    except KeyError:
        raise BatchMalformed(f"unknown compression codec {codec}") from None
    except (cramjam.DecompressionError, zlib.error, struct.error, ValueError) as error:
        raise BatchMalformed(f"the records can't be decompressed: {error}") from error
    plain = bytearray(data[:HEADER_SIZE])
    _I32.pack_into(plain, _LENGTH_AT, HEADER_SIZE - _OVERHEAD + len(records))
    _I16.pack_into(plain, _ATTRIBUTES_AT, header.attributes & ~CODEC_MASK)
    plain += records
    return plain


def with_compression(plain: bytes | bytearray, codec: int) -> bytearray:
    """A batch whose records are not compressed with its records compressed, and with its checksum."""
    records = _COMPRESS[codec](bytes(plain[HEADER_SIZE:]))
    batch = bytearray(plain[:HEADER_SIZE])
    _I32.pack_into(batch, _LENGTH_AT, HEADER_SIZE - _OVERHEAD + len(records))
    (attributes,) = _I16.unpack_from(batch, _ATTRIBUTES_AT)
    _I16.pack_into(batch, _ATTRIBUTES_AT, attributes | codec)
    batch += records
    _U32.pack_into(batch, _CRC_AT, crc32c(memoryview(batch)[_ATTRIBUTES_AT:]))
    return batch


def _gzip(data: bytes | bytearray, max_bytes: int) -> bytes:
    out = b""
    for _ in range(_GZIP_STREAMS):  # a gzip stream may follow another in the same batch
        stream = zlib.decompressobj(_GZIP_WINDOW)
        out += stream.decompress(data, max_bytes - len(out) + 1)
        if len(out) > max_bytes:
            raise _too_large(max_bytes)
        if not stream.eof:
            raise BatchMalformed("the records end in the middle of a gzip stream")
        data = stream.unused_data
        if not data:
            return out
    raise BatchMalformed(f"the records are more than {_GZIP_STREAMS} gzip streams")


def _snappy(data: bytes | bytearray, max_bytes: int) -> bytes | bytearray:
    """Java's producers write blocks (xerial), librdkafka one raw stream."""
    if not data.startswith(_XERIAL_MAGIC):
        return _raw_snappy(data, max_bytes)
    out = bytearray()
    at = _XERIAL_HEADER_SIZE
    while at < len(data):
        (size,) = _I32.unpack_from(data, at)
        if size < 0 or at + 4 + size > len(data):
            raise BatchMalformed("a snappy block is longer than its batch")
        out += _raw_snappy(data[at + 4 : at + 4 + size], max_bytes - len(out))
        at += 4 + size
    return out


def _raw_snappy(block: bytes | bytearray, max_bytes: int) -> bytes:
    if cramjam.snappy.decompress_raw_len(block) > max_bytes:
        raise _too_large(max_bytes)
    return bytes(cramjam.snappy.decompress_raw(block))


def _growing(
    decompress_into: Callable[[bytes | bytearray, bytearray], int], data: bytes | bytearray, max_bytes: int
) -> bytes:
    """What has no size in front is tried with more and more room."""
    room = max(_SMALLEST_GUESS, _USUAL_RATIO * len(data))
    while True:
        out = bytearray(min(room, max_bytes))
        try:
            written = decompress_into(data, out)
        except cramjam.DecompressionError as error:
            if _NO_ROOM not in str(error):
                raise
            if room >= max_bytes:
                raise _too_large(max_bytes) from error
            room *= _USUAL_RATIO
            continue
        return bytes(memoryview(out)[:written])


def _too_large(max_bytes: int) -> UnfoldsTooFar:
    return UnfoldsTooFar(f"the records unfold to more than {max_bytes} bytes")


# Compression as in Kafka's brokers: snappy in blocks, lz4 in independent blocks.
_COMPRESS: Final[dict[int, Callable[[bytes], bytes]]] = {
    0: bytes,
    1: partial(gzip_encode, compresslevel=6),
    2: snappy_encode,
    3: partial(lz4_encode, level=1),
    4: zstd_encode,
}
_DECOMPRESS: Final[dict[int, Callable[[bytes | bytearray, int], bytes | bytearray]]] = {
    1: _gzip,
    2: _snappy,
    3: partial(_growing, cramjam.lz4.decompress_into),
    4: partial(_growing, cramjam.zstd.decompress_into),
}
