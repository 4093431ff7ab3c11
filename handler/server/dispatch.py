"""From a frame to a handler: header, version, body, and how the answer is to be encoded."""

from __future__ import annotations

import struct
from collections.abc import Awaitable, Mapping
from typing import Any, Final

from handler.apis import BY_KEY
from handler.apis.a18_api_versions import KEY as API_VERSIONS
from handler.apis.a18_api_versions import unsupported_version
from handler.apis.api import Call, Services
from handler.errors import ProtocolError
from handler.server.connection import KafkaConnection
from handler.wire.headers import read_header, response_header
from handler.wire.schema import answer_writer, read_request

_SIZE: Final = struct.Struct(">i")


class Handled:
    """A request that was begun. The first four bytes of its answer are the size, filled in last."""

    __slots__ = ("_correlation_id", "_key", "_version", "answer", "api")

    def __init__(
        self, api: str, key: int, version: int, correlation_id: int,
        answer: dict[str, Any] | Awaitable[dict[str, Any] | None] | None,
    ) -> None:  # fmt: skip
        self.api = api
        self.answer = answer
        self._key = key
        self._version = version
        self._correlation_id = correlation_id

    def encode(self, answer: Mapping[str, Any]) -> bytearray:
        out = bytearray(4)
        out += response_header(self._key, self._version, self._correlation_id)
        answer_writer(self._key, self._version)(out, answer)
        _SIZE.pack_into(out, 0, len(out) - 4)
        return out


class Dispatcher:
    def __init__(self, services: Services) -> None:
        self._services = services

    def __call__(self, client: KafkaConnection, frame: memoryview) -> Handled:
        header = read_header(frame)
        api = BY_KEY.get(header.api_key)
        if api is None:
            raise ProtocolError(f"API {header.api_key} is not supported (client {header.client_id!r})")
        version = header.api_version
        if not api.lowest <= version <= api.highest:
            if api.key == API_VERSIONS:
                return Handled(api.name, API_VERSIONS, 0, header.correlation_id, unsupported_version())
            raise ProtocolError(
                f"{api.name} version {version} is not supported, only {api.lowest} to {api.highest} (client {header.client_id!r})"
            )
        request = read_request(api.key, version, frame[header.body_at :])
        call = Call(api.key, version, request, header.client_id, client)
        return Handled(api.name, api.key, version, header.correlation_id, api.handle(self._services, call))
