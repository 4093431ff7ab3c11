"""Pulsar's frames.

    simple    [total u32][command_size u32][BaseCommand]
    SEND      … [0x0e01][crc32c u32][metadata_size u32][MessageMetadata][payload]
    MESSAGE   … [0x0e02][size u32][BrokerEntryMetadata] then as SEND; each magic part is optional

The checksum covers metadata_size, metadata and payload. The sidecar always sends one: without it
a broker would store whatever arrived.
"""

from __future__ import annotations

import struct
from typing import Final

from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.pulsar_api_pb2 import BaseCommand, BrokerEntryMetadata
from kafka_sidecar.wire.crc import crc32c

_CHECKSUM: Final = 0x0E01
_BROKER_ENTRY: Final = 0x0E02
_CHECKSUM_MAGIC: Final = _CHECKSUM.to_bytes(2, "big")
_TWO_U32: Final = struct.Struct(">II")
_U32: Final = struct.Struct(">I")
_U16: Final = struct.Struct(">H")


def encode_command(command: BaseCommand) -> bytes:
    body = command.SerializeToString()
    return _TWO_U32.pack(len(body) + 4, len(body)) + body


def encode_send(command: bytes, metadata: bytes, payload: bytes | bytearray) -> bytes:
    """The part of a SEND frame before its payload, of an already serialized command and metadata."""
    size = _U32.pack(len(metadata))
    checksum = crc32c(payload, crc32c(metadata, crc32c(size)))
    total = 4 + len(command) + 6 + 4 + len(metadata) + len(payload)
    return b"".join((_TWO_U32.pack(total, len(command)), command, _CHECKSUM_MAGIC, _U32.pack(checksum), size, metadata))


def split_command(frame: memoryview) -> tuple[BaseCommand, memoryview]:
    """The command of a frame and what follows it."""
    if len(frame) < 4:
        raise ProtocolError("a Pulsar frame without a command")
    (size,) = _U32.unpack_from(frame)
    if size > len(frame) - 4:
        raise ProtocolError("a Pulsar command larger than its frame")
    return BaseCommand.FromString(bytes(frame[4 : 4 + size])), frame[4 + size :]


def decode_entry(ledger: int, entry: int, rest: memoryview) -> RawEntry:
    """The entry that follows a MESSAGE command."""
    try:
        index: int | None = None
        timestamp: int | None = None
        (magic,) = _U16.unpack_from(rest)
        if magic == _BROKER_ENTRY:
            (size,) = _U32.unpack_from(rest, 2)
            facts = BrokerEntryMetadata.FromString(bytes(rest[6 : 6 + size]))
            index = facts.index if facts.HasField("index") else None
            timestamp = facts.broker_timestamp if facts.HasField("broker_timestamp") else None
            rest = rest[6 + size :]
            (magic,) = _U16.unpack_from(rest)
        if magic == _CHECKSUM:
            (checksum,) = _U32.unpack_from(rest, 2)
            rest = rest[6:]
            if crc32c(rest) != checksum:
                raise ProtocolError(f"entry {ledger}:{entry} arrived with a wrong checksum")
        (size,) = _U32.unpack_from(rest)
        if size > len(rest) - 4:
            raise ProtocolError(f"entry {ledger}:{entry} has metadata larger than itself")
        return RawEntry(Position(ledger, entry), index, timestamp, bytes(rest[4 : 4 + size]), rest[4 + size :])
    except struct.error as error:
        raise ProtocolError(f"entry {ledger}:{entry} is cut short") from error
