"""From a frame to a handler: header, version, body, and how the answer is to be encoded."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, Final, NamedTuple

from handler.apis import BY_KEY, COORDINATED
from handler.apis.a18_api_versions import KEY as API_VERSIONS
from handler.apis.a18_api_versions import unsupported_version
from handler.apis.api import Api, Call, Client, Result, Services
from handler.apis.late import QUESTION_SECONDS
from handler.errors import ProtocolError
from handler.telemetry import metrics
from handler.telemetry.latencies import Latency
from handler.wire.headers import RequestHeader, read_header, response_header
from handler.wire.schema import answer_writer, request_reader

_SIZE: Final = struct.Struct(">i")


class Route(NamedTuple):
    """All that is known of an API in one version before a request comes."""

    api: Api
    version: int
    read: Callable[[memoryview, int], Any]
    write: Callable[[bytearray, Any], None]
    seconds: Latency


@cache
def _route(key: int, version: int) -> Route | None:
    """None where the version, or the API altogether, is not served."""
    api = BY_KEY.get(key)
    if api is None or not api.lowest <= version <= api.highest:
        return None
    return Route(
        api, version, api.read or request_reader(key, version), (api.writer or partial(answer_writer, key))(version),
        metrics.REQUEST_SECONDS.of(api.name),
    )  # fmt: skip


class Handled:
    """A request that was begun. The first four bytes of its answer are the size, filled in last."""

    __slots__ = ("_correlation_id", "_route", "answer")

    def __init__(self, route: Route, correlation_id: int, answer: Result) -> None:
        self.answer = answer
        self._route = route
        self._correlation_id = correlation_id

    @property
    def api(self) -> str:
        return self._route.api.name

    @property
    def ends_with_client(self) -> bool:
        return self._route.api.ends_with_client

    def encode(self, answer: Mapping[str, Any] | bytes) -> bytes | bytearray:
        if isinstance(answer, bytes):
            return _SIZE.pack(len(answer)) + answer
        route = self._route
        out = bytearray(4)
        out += response_header(route.api.key, route.version, self._correlation_id)
        route.write(out, answer)
        _SIZE.pack_into(out, 0, len(out) - 4)
        return out

    def took(self, seconds: float) -> None:
        self._route.seconds.observe(seconds)


class Dispatcher:
    def __init__(self, services: Services) -> None:
        self._services = services

    def __call__(self, client: Client, frame: memoryview, *, forwarded: bool = False) -> Handled:
        header = read_header(frame)
        route = _route(header.api_key, header.api_version)
        if forwarded and header.api_key not in COORDINATED:
            raise ProtocolError(f"API {header.api_key} is not passed on")
        if route is None:
            return self._refused(header)
        version = route.version
        request = route.read(frame[header.body_at :], version)
        late_at = self._services.clock() + QUESTION_SECONDS
        call = Call(route.api.key, version, request, header.client_id, client, frame, forwarded, late_at)
        return Handled(route, header.correlation_id, route.api.handle(self._services, call))

    def _refused(self, header: RequestHeader) -> Handled:
        if header.api_key == API_VERSIONS:
            lowest = _route(API_VERSIONS, 0)
            assert lowest is not None
            return Handled(lowest, header.correlation_id, unsupported_version())
        api = BY_KEY.get(header.api_key)
        if api is None:
            raise ProtocolError(f"API {header.api_key} is not supported (client {header.client_id!r})")
        raise ProtocolError(
            f"{api.name} version {header.api_version} is not supported, only {api.lowest} to {api.highest} (client {header.client_id!r})"
        )
