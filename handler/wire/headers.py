"""Request and response headers of every version."""

from __future__ import annotations

import struct
from functools import cache
from typing import Final, NamedTuple

from handler.errors import ProtocolError
from handler.wire.schema import answer_is_flexible, request_is_flexible
from handler.wire.varint import skip_tagged_fields

API_VERSIONS: Final = 18
_FIXED: Final = struct.Struct(">hhih")
_CORRELATION: Final = struct.Struct(">i")


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_at: int


@cache
def _is_flexible(key: int, version: int) -> bool:
    try:
        return request_is_flexible(key, version)
    except RuntimeError:  # kio knows no such key or version
        return False


def read_header(frame: memoryview) -> RequestHeader:
    """The header of a request frame.

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
    if _is_flexible(key, version):
        at = skip_tagged_fields(frame, at)
    return RequestHeader(key, version, correlation_id, client_id, at)


def response_header(key: int, version: int, correlation_id: int) -> bytes:
    """The header of an answer. That of ApiVersions is never flexible: its reader may not know the version."""
    head = _CORRELATION.pack(correlation_id)
    return head + b"\0" if key != API_VERSIONS and answer_is_flexible(key, version) else head
