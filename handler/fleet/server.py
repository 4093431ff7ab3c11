"""The control port: other sidecars' requests for groups that are coordinated here, and gRPC health.

Service and messages are in `grpc/handler/control/v1/control.proto`.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final, Protocol

from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health

import grpc
from handler.control.v1.control_pb2 import (
    EndOffsetsRequest,
    EndOffsetsResponse,
    ForwardRequest,
    ForwardResponse,
    PingRequest,
    PingResponse,
    TopicsDeletedRequest,
    TopicsDeletedResponse,
    VerifyTransactionRequest,
    VerifyTransactionResponse,
    WarmRequest,
    WarmResponse,
)
from handler.errors import ConfigError, ProtocolError, SidecarError
from handler.telemetry import metrics

log = logging.getLogger(__name__)

SERVICE: Final = "kafka_sidecar.control.v1.Control"
# Requests of other sidecars at once, beside their bytes: five sidecars whose 10,000 clients (limits.max_connections) all join
# groups that are coordinated here.
MAX_WORKS: Final = 50_000
# gRPC health: the process works; and it serves Kafka clients, which is also its overall state.
LIVE: Final = "live"
READY: Final = ("ready", "")
# A request that is passed on may have limits.max_request_bytes (100 MiB by default), and its envelope.
MAX_MESSAGE: Final = 128 * 1024 * 1024
OPTIONS: Final = [("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.max_send_message_length", MAX_MESSAGE)]
_SERVER: Final = [
    ("grpc.so_reuseport", 0),
    # Peers ask every five seconds whether this one lives (see `peers`).
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 4_000),
    ("grpc.keepalive_permit_without_calls", 1),
]

# A Kafka request and its client's address → the answer.
Serve = Callable[[bytes, str], Awaitable[bytes]]


class TransactionService(Protocol):
    """What sidecars ask each other about transactions."""

    async def verify(self, request: VerifyTransactionRequest) -> VerifyTransactionResponse: ...
    async def end_offsets(self, request: EndOffsetsRequest) -> EndOffsetsResponse: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Who answers what others ask."""

    serve: Serve
    topics_deleted: Callable[[Mapping[str, uuid.UUID | None]], None]
    transactions: TransactionService
    ping: Callable[[PingRequest], PingResponse]
    warm: Callable[[Sequence[str]], Awaitable[None]]


class Overloaded(SidecarError):
    """No more requests are taken at the moment."""


class ControlServer:
    def __init__(self, name: str, answers: Answers) -> None:
        self._name = name
        self._answers = answers
        self._server: Any = None
        self._health = health.HealthServicer()
        self._draining = False
        self._works: set[asyncio.Future[bytes]] = set()

    async def start(self, host: str, port: int) -> int:
        """Listen; the port, which the system chose if `port` is 0."""
        self._server = grpc.aio.server(options=[*OPTIONS, *_SERVER])
        forward = grpc.unary_unary_rpc_method_handler(
            self._forward, request_deserializer=ForwardRequest.FromString, response_serializer=ForwardResponse.SerializeToString
        )
        deleted = grpc.unary_unary_rpc_method_handler(
            self._deleted, request_deserializer=TopicsDeletedRequest.FromString, response_serializer=TopicsDeletedResponse.SerializeToString
        )
        verified = grpc.unary_unary_rpc_method_handler(
            self._verified,
            request_deserializer=VerifyTransactionRequest.FromString,
            response_serializer=VerifyTransactionResponse.SerializeToString,
        )
        ended = grpc.unary_unary_rpc_method_handler(
            self._end_offsets,
            request_deserializer=EndOffsetsRequest.FromString,
            response_serializer=EndOffsetsResponse.SerializeToString,
        )
        pinged = grpc.unary_unary_rpc_method_handler(
            self._ping, request_deserializer=PingRequest.FromString, response_serializer=PingResponse.SerializeToString
        )
        warmed = grpc.unary_unary_rpc_method_handler(
            self._warm, request_deserializer=WarmRequest.FromString, response_serializer=WarmResponse.SerializeToString
        )
        methods = {
            "Ping": pinged, "Warm": warmed, "Forward": forward,
            "TopicsDeleted": deleted, "VerifyTransaction": verified, "EndOffsets": ended,
        }  # fmt: skip
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, methods),))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            bound = int(self._server.add_insecure_port(address))
        except RuntimeError as error:
            raise ConfigError(f"can't listen for other sidecars on {host}:{port}: set control.listen to a free address") from error
        await self._server.start()
        await self._health.set(LIVE, health_pb2.HealthCheckResponse.SERVING)
        for service in READY:
            await self._health.set(service, health_pb2.HealthCheckResponse.NOT_SERVING)
        return bound

    async def ready(self) -> None:
        """Kafka clients are served from now on."""
        for service in READY:
            await self._health.set(service, health_pb2.HealthCheckResponse.SERVING)

    async def _forward(self, request: ForwardRequest, context: Any) -> ForwardResponse:
        await self._check(request.to, context)
        if self._draining:
            await context.abort(grpc.StatusCode.UNAVAILABLE, "this sidecar stops")
        if len(self._works) >= MAX_WORKS:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, f"{MAX_WORKS} requests are in work")
        # In a task of its own: what it changes it changes wholly, also if the other sidecar waits no more.
        work = asyncio.ensure_future(self._answers.serve(request.frame, request.peer))
        self._works.add(work)
        work.add_done_callback(self._done)
        try:
            return ForwardResponse(frame=await asyncio.shield(work))
        except Overloaded as error:
            await context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
            raise AssertionError("abort raises") from error
        except ProtocolError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            raise AssertionError("abort raises") from error

    async def _ping(self, request: PingRequest, context: Any) -> PingResponse:
        await self._check(request.to, context)
        return self._answers.ping(request)

    async def _warm(self, request: WarmRequest, context: Any) -> WarmResponse:
        await self._check(request.to, context)
        await self._answers.warm(request.partitions)
        return WarmResponse()

    async def _deleted(self, request: TopicsDeletedRequest, context: Any) -> TopicsDeletedResponse:
        await self._check(request.to, context)
        ids = [uuid.UUID(bytes=raw) if len(raw) == 16 else None for raw in request.topic_ids]
        self._answers.topics_deleted(dict(zip_longest(request.topics, ids[: len(request.topics)])))
        return TopicsDeletedResponse()

    async def _verified(self, request: VerifyTransactionRequest, context: Any) -> VerifyTransactionResponse:
        await self._check(request.to, context)
        return await self._answers.transactions.verify(request)

    async def _end_offsets(self, request: EndOffsetsRequest, context: Any) -> EndOffsetsResponse:
        await self._check(request.to, context)
        return await self._answers.transactions.end_offsets(request)

    async def _check(self, to: str, context: Any) -> None:
        if to != self._name:
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "this is another sidecar")

    def _done(self, work: asyncio.Future[bytes]) -> None:
        self._works.discard(work)
        failure = None if work.cancelled() else work.exception()  # the other sidecar may wait no more
        if failure is not None and not isinstance(failure, SidecarError):
            metrics.INTERNAL_ERRORS.labels("request").inc()
            log.error("a request of another sidecar ended in an error of this one", exc_info=failure)

    async def not_ready(self) -> None:
        """Say that no more clients should come here."""
        if self._server is not None:
            for service in READY:
                await self._health.set(service, health_pb2.HealthCheckResponse.NOT_SERVING)

    def drain(self) -> None:
        """Take no more requests of clients of others."""
        self._draining = True

    async def finish(self, seconds: float) -> bool:
        """Wait for what is in work; True when all of it came to its end."""
        if not self._works:
            return True
        _, left = await asyncio.wait(set(self._works), timeout=seconds)
        return not left

    async def close(self) -> None:
        if self._server is not None:
            await self._server.stop(grace=None)
            self._server = None
        for work in self._works:
            work.cancel()
