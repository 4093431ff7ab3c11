"""Request and response headers of every version."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.wire.message import Message
from kafka_sidecar.wire.varint import skip_tagged_fields

API_VERSIONS: Final = 18
_FIXED: Final = struct.Struct(">hhih")
_CORRELATION: Final = struct.Struct(">i")


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    end: int  # end of the fields that every header version has


def read_header(frame: memoryview) -> RequestHeader:
    """The header of a request frame, without its tagged fields: whether it has some is known with the API.

    The client id keeps its old two-byte length in every header version (KIP-482's exception).
    """
    if len(frame) < _FIXED.size:
        raise ProtocolError(f"a request of {len(frame)} bytes is shorter than its header")
    key, version, correlation_id, length = _FIXED.unpack_from(frame)
    at = _FIXED.size
    client_id: str | None = None
    if length >= 0:
        if at + length > len(frame):
            raise ProtocolError("the client id is longer than the request")
        client_id = bytes(frame[at : at + length]).decode("utf-8", "replace")
        at += length
    return RequestHeader(key, version, correlation_id, client_id, at)


def body_at(frame: memoryview, header: RequestHeader, request: type[Message]) -> int:
    """Where the body begins."""
    return skip_tagged_fields(frame, header.end) if request.is_flexible(header.api_version) else header.end


def request_header(request: type[Message], version: int, correlation_id: int, client_id: str) -> bytes:
    """The header of a question."""
    name = client_id.encode()
    head = _FIXED.pack(request.KEY, version, correlation_id, len(name)) + name
    return head + b"\0" if request.is_flexible(version) else head


def response_header(response: type[Message], version: int, correlation_id: int) -> bytes:
    """The header of an answer. That of ApiVersions is never flexible: its reader may not know the version."""
    head = _CORRELATION.pack(correlation_id)
    return head + b"\0" if response.is_flexible(version) and response.KEY != API_VERSIONS else head
