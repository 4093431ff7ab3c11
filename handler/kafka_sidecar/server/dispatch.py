"""From a frame to a handler: header, version, body, and how the answer is to be encoded."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, NamedTuple

from kafka_sidecar.apis import BY_KEY
from kafka_sidecar.apis.a18_api_versions import unsupported_version
from kafka_sidecar.apis.api import AnyApi, BegunRequest, Call, Client, Result
from kafka_sidecar.apis.common.late import LATE_AFTER_SECONDS
from kafka_sidecar.apis.common.ordinary_produce import begin_ordinary
from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.latencies import Latency
from kafka_sidecar.wire.headers import API_VERSIONS, RequestHeader, body_at, read_header, response_header
from kafka_sidecar.wire.message import Message
from kafka_sidecar.wire.produce_frame import PRODUCE

_SIZE: Final = struct.Struct(">i")


class Route(NamedTuple):
    """All that is known of an API in one version before a request comes."""

    api: AnyApi
    version: int
    seconds: Latency


@cache
def _route(key: int, version: int) -> Route | None:
    """None where the version, or the API altogether, is not served."""
    api = BY_KEY.get(key)
    if api is None or not api.lowest <= version <= api.highest:
        return None
    return Route(api, version, metrics.REQUEST_SECONDS.of(api.name))


class RoutedRequest:
    """A BegunRequest, answered by the handler of its API. The first four bytes of its answer are the size, filled in
    last.
    """

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

    def encode(self, answer: Message | bytes) -> Sequence[bytes | bytearray]:
        """In pieces, so that megabytes of records need not be copied."""
        if isinstance(answer, bytes):
            return _SIZE.pack(len(answer)), answer
        route = self._route
        out = bytearray(4)
        out += response_header(route.api.response, route.version, self._correlation_id)
        pieces = answer.write_pieces(route.version, out)
        _SIZE.pack_into(out, 0, sum(map(len, pieces)) - 4)
        return pieces

    def took(self, seconds: float) -> None:
        self._route.seconds.observe(seconds)


class Dispatcher:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock

    def __call__(
        self,
        client: Client,
        frame: memoryview,
        *,
        forwarded: bool = False,
        by_0_2: bool = False,
        load_wait_seconds: float = LATE_AFTER_SECONDS,
    ) -> BegunRequest:
        if bytes(frame[:2]) == PRODUCE and not forwarded:
            ordinary = begin_ordinary(client.services, client, frame)
            if ordinary is not None:
                return ordinary
        header = read_header(frame)
        route = _route(header.api_key, header.api_version)
        if forwarded and (route is None or not route.api.is_passed_on):
            raise ProtocolError(f"API {header.api_key} is not passed on")
        if route is None:
            return self._refused(header)
        api, version = route.api, route.version
        at = body_at(frame, header, api.request)
        request = api.request.read(version, frame[at:])
        now = self._clock()
        loaded_by = now + min(load_wait_seconds, LATE_AFTER_SECONDS)
        call = Call(
            version, header.client_id, client, frame, at, forwarded, now + LATE_AFTER_SECONDS, by_0_2, loaded_by
        )
        return RoutedRequest(route, header.correlation_id, api.handle(client.services, call, request))

    def _refused(self, header: RequestHeader) -> RoutedRequest:
        if header.api_key == API_VERSIONS:
            lowest = _route(API_VERSIONS, 0)
            assert lowest is not None
            return RoutedRequest(lowest, header.correlation_id, unsupported_version())
        api = BY_KEY.get(header.api_key)
        if api is None:
            raise ProtocolError(f"API {header.api_key} is not supported (client {header.client_id!r})")
        raise ProtocolError(
            f"{api.name} version {header.api_version} is not supported, only {api.lowest} to {api.highest} (client "
            f"{header.client_id!r})"
        )
