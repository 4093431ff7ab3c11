"""Other sidecars, as this one asks them: one channel each, closed when nobody has used it for a while."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import grpc
from kafka_sidecar.control.v1.control_pb2 import (
    EndedTransactionsRequest,
    EndedTransactionsResponse,
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
from kafka_sidecar.errors import SidecarError
from kafka_sidecar.fleet.server import CONTROL, OPTIONS

log = logging.getLogger(__name__)

# A gRPC channel to another sidecar is closed after 300 s without use.
IDLE_SECONDS: Final = 300.0
# gRPC keepalive pings detect a dead peer even while a long poll waits for its response.
_KEEPALIVE: Final = [
    ("grpc.keepalive_time_ms", 5_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.min_reconnect_backoff_ms", 200),
    ("grpc.max_reconnect_backoff_ms", 2_000),
]


class PeerUnavailable(SidecarError):
    """The other sidecar can't be asked now, or did not answer."""


class PeerTooOld(PeerUnavailable):
    """The other sidecar is there, and of a version that does not know the question."""


class Peers:
    def __init__(self, clock: Callable[[], float], namespace: str = "") -> None:
        """`namespace`: of topics with short names here."""
        self._clock = clock
        self._namespace = namespace
        self._channels: dict[str, Any] = {}
        self._used_at: dict[str, float] = {}
        self._in_use: dict[str, int] = {}
        self._closing: set[asyncio.Task[None]] = set()

    async def forward(self, address: str, name: str, frame: bytes, peer: str, load_wait_ms: int) -> bytes:
        """The answer of the sidecar `name` at `address`; the call ends with the task that waits for it."""
        request = ForwardRequest(to=name, frame=frame, peer=peer, namespace=self._namespace, load_wait_ms=load_wait_ms)
        response: ForwardResponse = await self._call(address, "Forward", request, ForwardResponse)
        return response.frame

    async def ping(self, address: str, name: str, own_name: str, *, serves: bool) -> PingResponse:
        response: PingResponse = await self._call(
            address, "Ping", PingRequest(to=name, sender=own_name, serves=serves), PingResponse
        )
        return response

    async def warm(self, address: str, name: str, partitions: Sequence[str]) -> None:
        """Have partitions opened that the sidecar `name` is about to lead."""
        await self._call(address, "Warm", WarmRequest(to=name, partitions=partitions), WarmResponse)

    async def topics_deleted(self, address: str, name: str, topics: Mapping[str, uuid.UUID | None]) -> None:
        """Tell of deleted topics, by name and with their ids."""
        ids = [b"" if topic_id is None else topic_id.bytes for topic_id in topics.values()]
        await self._call(
            address, "TopicsDeleted", TopicsDeletedRequest(to=name, topics=topics, topic_ids=ids), TopicsDeletedResponse
        )

    async def verify_transaction(self, address: str, request: VerifyTransactionRequest) -> VerifyTransactionResponse:
        response: VerifyTransactionResponse = await self._call(
            address, "VerifyTransaction", request, VerifyTransactionResponse
        )
        return response

    async def ended_transactions(self, address: str, request: EndedTransactionsRequest) -> EndedTransactionsResponse:
        response: EndedTransactionsResponse = await self._call(
            address, "EndedTransactions", request, EndedTransactionsResponse
        )
        return response

    async def end_offsets(self, address: str, request: EndOffsetsRequest) -> EndOffsetsResponse:
        response: EndOffsetsResponse = await self._call(address, "EndOffsets", request, EndOffsetsResponse)
        return response

    async def _call(self, address: str, method: str, request: Any, response: Any) -> Any:
        channel = self._channel(address)
        call = channel.unary_unary(
            f"/{CONTROL.full_name}/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=response.FromString,
        )
        self._in_use[address] = self._in_use.get(address, 0) + 1
        try:
            return await call(request)
        except grpc.aio.AioRpcError as error:
            kind = PeerTooOld if error.code() is grpc.StatusCode.UNIMPLEMENTED else PeerUnavailable
            raise kind(f"the sidecar at {address} did not answer: {error.code().name} {error.details()}") from error
        finally:
            self._in_use[address] -= 1
            self._used_at[address] = self._clock()

    def _channel(self, address: str) -> Any:
        channel = self._channels.get(address)
        if channel is None:
            self._close_idle()
            channel = self._channels[address] = grpc.aio.insecure_channel(address, options=[*OPTIONS, *_KEEPALIVE])
        self._used_at[address] = self._clock()
        return channel

    def _close_idle(self) -> None:
        """Before another channel is opened: close those that nobody uses. Peers come back under other addresses."""
        now = self._clock()
        for address in [
            address
            for address, at in self._used_at.items()
            if now - at > IDLE_SECONDS and not self._in_use.get(address)
        ]:
            del self._used_at[address]
            self._in_use.pop(address, None)
            task = asyncio.create_task(self._channels.pop(address).close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        channels, self._channels = self._channels, {}
        await asyncio.gather(*(channel.close() for channel in channels.values()), *self._closing)
