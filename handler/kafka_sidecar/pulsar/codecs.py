"""Pulsar's payload compressions (PulsarApi.proto, enum CompressionType)."""

from __future__ import annotations

from typing import Final

import cramjam

from kafka_sidecar.errors import EntryUnreadable

NONE: Final = 0
# Limit for the uncompressed size that an entry's metadata names: the broker's maxMessageSize limits the compressed size
# only.
MAX_UNCOMPRESSED: Final = 128 * 1024 * 1024


def compress(codec: int, data: bytes) -> bytes:
    match codec:
        case 1:
            return bytes(cramjam.lz4.compress_block(data, store_size=False))
        case 2:
            return bytes(cramjam.zlib.compress(data))
        case 3:
            return bytes(cramjam.zstd.compress(data))
        case 4:
            return bytes(cramjam.snappy.compress_raw(data))
        case _:
            return data


def decompress(codec: int, data: memoryview, uncompressed_size: int) -> bytes:
    if codec == NONE:
        return bytes(data)
    if uncompressed_size > MAX_UNCOMPRESSED:
        raise EntryUnreadable(
            f"an entry that unfolds to {uncompressed_size} bytes is over the limit of {MAX_UNCOMPRESSED}"
        )
    out = bytearray(uncompressed_size)
    try:
        match codec:
            case 1:  # LZ4: one raw block, without its size in front
                written = cramjam.lz4.decompress_block_into(bytes(data), out, output_len=uncompressed_size)
            case 2:
                written = cramjam.zlib.decompress_into(bytes(data), out)
            case 3:
                written = cramjam.zstd.decompress_into(bytes(data), out)
            case 4:
                written = cramjam.snappy.decompress_raw_into(bytes(data), out)
            case _:
                raise EntryUnreadable(f"unknown Pulsar compression {codec}")
    except cramjam.DecompressionError as error:
        raise EntryUnreadable(f"Pulsar compression {codec}: {error}") from error
    return bytes(out[:written])
