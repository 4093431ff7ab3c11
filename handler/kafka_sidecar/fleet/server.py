"""The control port: what other sidecars ask, what operators ask, and gRPC health.

Services and messages are in `grpc/kafka_sidecar/control/v1/`.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import SERVICE_NAME
from grpc_health.v1.health import aio as health
from grpc_reflection.v1alpha import reflection

import grpc
from kafka_sidecar.control.v1 import control_pb2 as pb
from kafka_sidecar.errors import ConfigError, ProtocolError, SidecarError
from kafka_sidecar.fleet.rpc import Aborted, Exhausted, Invalid, Misdirected, answered_by
from kafka_sidecar.model.sidecar import Endpoint
from kafka_sidecar.telemetry import metrics

log = logging.getLogger(__name__)

CONTROL: Final[ServiceDescriptor] = pb.DESCRIPTOR.services_by_name["Control"]
# Limit of requests in flight from other sidecars, besides the limit on their bytes. It admits five sidecars whose
# 10,000 clients each (limits.max_connections) all join groups that are coordinated here.
MAX_WORKS: Final = 50_000
# gRPC health services: `live` says that the process works, `ready` that it serves Kafka clients. The overall health
# (empty name) is the same as `ready`.
LIVE: Final = "live"
READY: Final = ("ready", "")
# A forwarded request may have limits.max_request_bytes (100 MiB by default), plus its envelope.
MAX_MESSAGE: Final = 128 * 1024 * 1024
OPTIONS: Final = [("grpc.max_receive_message_length", MAX_MESSAGE), ("grpc.max_send_message_length", MAX_MESSAGE)]
_SERVER: Final = [
    ("grpc.so_reuseport", 0),
    # Other sidecars send a keepalive ping every 5 s (see `peers`), so the server must allow shorter intervals than
    # that.
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 4_000),
    ("grpc.keepalive_permit_without_calls", 1),
]

# A Kafka request, its client's address, the namespace of the sidecar that passes it on, and how many milliseconds it
# may wait while the coordinator loads (see ForwardRequest) → the answer.
Serve = Callable[[bytes, str, str, int], Awaitable[bytes]]

T = TypeVar("T")


class TransactionService(Protocol):
    """What sidecars ask each other about transactions."""

    async def verify(self, request: pb.VerifyTransactionRequest) -> pb.VerifyTransactionResponse: ...
    async def end_offsets(self, request: pb.EndOffsetsRequest) -> pb.EndOffsetsResponse: ...
    async def ended(self, request: pb.EndedTransactionsRequest) -> pb.EndedTransactionsResponse: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """Who answers what other sidecars ask."""

    serve: Serve
    topics_deleted: Callable[[Mapping[str, uuid.UUID | None]], Awaitable[None]]
    transactions: TransactionService
    ping: Callable[[pb.PingRequest], pb.PingResponse]
    warm: Callable[[Sequence[str]], Awaitable[None]]
    heard_of: Callable[[str], None] = lambda _: None  # called with the namespace of a sidecar that forwards requests


class Overloaded(SidecarError):
    """No more requests are taken at the moment."""


class _Control:
    """The Control service: a method for each of its own."""

    def __init__(self, name: str, answers: Answers) -> None:
        self._name = name
        self._answers = answers
        self.is_draining = False
        self.works: set[asyncio.Future[Any]] = set()

    async def forward(self, request: pb.ForwardRequest) -> pb.ForwardResponse:
        self._check(request.to)
        if self.is_draining:
            raise Aborted("this sidecar stops")
        if len(self.works) >= MAX_WORKS:
            raise Exhausted(f"{MAX_WORKS} requests are in flight")
        if request.namespace:
            self._answers.heard_of(request.namespace)
        try:
            answer = self._answers.serve(request.frame, request.peer, request.namespace, request.load_wait_ms)
            return pb.ForwardResponse(frame=await self._wholly(answer))
        except Overloaded as error:
            raise Exhausted(str(error)) from error
        except ProtocolError as error:
            raise Invalid(str(error)) from error

    async def topics_deleted(self, request: pb.TopicsDeletedRequest) -> pb.TopicsDeletedResponse:
        self._check(request.to)
        ids = [uuid.UUID(bytes=raw) if len(raw) == 16 else None for raw in request.topic_ids]
        await self._wholly(self._answers.topics_deleted(dict(zip_longest(request.topics, ids[: len(request.topics)]))))
        return pb.TopicsDeletedResponse()

    async def verify_transaction(self, request: pb.VerifyTransactionRequest) -> pb.VerifyTransactionResponse:
        self._check(request.to)
        return await self._answers.transactions.verify(request)

    async def end_offsets(self, request: pb.EndOffsetsRequest) -> pb.EndOffsetsResponse:
        self._check(request.to)
        return await self._answers.transactions.end_offsets(request)

    async def ended_transactions(self, request: pb.EndedTransactionsRequest) -> pb.EndedTransactionsResponse:
        self._check(request.to)
        return await self._answers.transactions.ended(request)

    async def ping(self, request: pb.PingRequest) -> pb.PingResponse:
        self._check(request.to)
        return self._answers.ping(request)

    async def warm(self, request: pb.WarmRequest) -> pb.WarmResponse:
        self._check(request.to)
        await self._answers.warm(request.partitions)
        return pb.WarmResponse()

    def _check(self, to: str) -> None:
        if to != self._name:
            raise Misdirected("this is another sidecar")

    async def _wholly(self, changing: Awaitable[T]) -> T:
        """In a task of its own: what it changes it changes wholly, also if the other sidecar waits no more."""
        work = asyncio.ensure_future(changing)
        self.works.add(work)
        work.add_done_callback(self._done)
        return await asyncio.shield(work)

    def _done(self, work: asyncio.Future[Any]) -> None:
        self.works.discard(work)
        # The other sidecar may have stopped waiting, so nobody else sees this exception.
        failure = None if work.cancelled() else work.exception()
        if failure is not None and not isinstance(failure, SidecarError):
            metrics.INTERNAL_ERRORS.labels("request").inc()
            log.error("a request of another sidecar ended in an error of this one", exc_info=failure)


class Further(NamedTuple):
    """A service, what answers it, and its methods that may be called from this host alone."""

    service: ServiceDescriptor
    answers: object
    from_this_host: Collection[str]


class ControlServer:
    def __init__(self, name: str, answers: Answers, *further: Further) -> None:
        self._control = _Control(name, answers)
        self._services = [Further(CONTROL, self._control, ()), *further]
        self._server: Any = None
        self._health = health.HealthServicer()

    async def start(self, host: str, port: int) -> int:
        """Listen; the port, which the system chose if `port` is 0."""
        self._server = grpc.aio.server(options=[*OPTIONS, *_SERVER])
        self._server.add_generic_rpc_handlers(tuple(answered_by(*one, host) for one in self._services))
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        names = [one.service.full_name for one in self._services]
        reflection.enable_server_reflection([*names, SERVICE_NAME, reflection.SERVICE_NAME], self._server)
        address = str(Endpoint(host, port))
        try:
            bound = int(self._server.add_insecure_port(address))
        except RuntimeError as error:
            raise ConfigError(
                f"can't listen for other sidecars on {host}:{port}: set control.listen to a free address"
            ) from error
        await self._server.start()
        await self._health.set(LIVE, health_pb2.HealthCheckResponse.SERVING)
        await self.not_ready()
        return bound

    async def ready(self) -> None:
        """Kafka clients are served from now on."""
        for service in READY:
            await self._health.set(service, health_pb2.HealthCheckResponse.SERVING)

    async def not_ready(self) -> None:
        """Say that no more clients should come here."""
        if self._server is not None:
            for service in READY:
                await self._health.set(service, health_pb2.HealthCheckResponse.NOT_SERVING)

    def drain(self) -> None:
        """Take no more requests of clients of others."""
        self._control.is_draining = True

    async def finish(self, seconds: float) -> bool:
        """Wait for what is under way; True when all of it was finished."""
        if not self._control.works:
            return True
        _, left = await asyncio.wait(set(self._control.works), timeout=seconds)
        return not left

    async def close(self) -> None:
        if self._server is not None:
            await self._server.stop(grace=None)
            self._server = None
        for work in self._control.works:
            work.cancel()
