"""Requests between sidecars: passed on, refused by the wrong one, cancelled, and told apart when nobody is there."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

import grpc
from kafka_sidecar.control.v1.control_pb2 import PingRequest, PingResponse
from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.fleet import server as server_module
from kafka_sidecar.fleet.peers import Peers, PeerUnavailable
from kafka_sidecar.fleet.server import Answers, ControlServer, Overloaded

deleted: dict[str, uuid.UUID | None] = {}
warmed: list[str] = []


def ping(request: PingRequest) -> PingResponse:
    return PingResponse(serves=not request.serves, silent=[request.sender])


async def warm(partitions: Sequence[str]) -> None:
    warmed.extend(partitions)


async def topics_deleted(topics: Mapping[str, uuid.UUID | None]) -> None:
    deleted.update(topics)


def answers(serve: Callable[[bytes, str, str, int], Awaitable[bytes]]) -> Answers:
    return Answers(serve=serve, topics_deleted=topics_deleted, transactions=cast(Any, None), ping=ping, warm=warm)


@asynccontextmanager
async def serving(serve: Callable[[bytes, str, str, int], Awaitable[bytes]]) -> AsyncIterator[tuple[Peers, str]]:
    server = ControlServer("me", answers(serve))
    port = await server.start("127.0.0.1", 0)
    peers = Peers(asyncio.get_running_loop().time)
    try:
        yield peers, f"127.0.0.1:{port}"
    finally:
        await peers.close()
        await server.close()


async def test_a_request_is_answered_by_the_sidecar_it_is_meant_for() -> None:
    async def serve(frame: bytes, peer: str, namespace: str, load_wait_ms: int) -> bytes:
        return frame[::-1] + peer.encode() + b" %d" % load_wait_ms

    async with serving(serve) as (peers, address):
        assert await peers.forward(address, "me", b"abc", "10.0.0.1:5", 1200) == b"cba10.0.0.1:5 1200"
        with pytest.raises(PeerUnavailable, match="another sidecar"):
            await peers.forward(address, "somebody else", b"abc", "10.0.0.1:5", 1200)


async def test_nobody_there_and_a_request_that_can_not_be_read_are_failures_of_that_request() -> None:
    async def serve(frame: bytes, peer: str, namespace: str, load_wait_ms: int) -> bytes:
        raise ProtocolError("nonsense")

    async with serving(serve) as (peers, address):
        with pytest.raises(PeerUnavailable, match="nonsense"):
            await peers.forward(address, "me", b"abc", "10.0.0.1:5", 1200)
        with pytest.raises(PeerUnavailable):
            await peers.forward("127.0.0.1:1", "me", b"abc", "10.0.0.1:5", 1200)


async def test_a_sidecar_without_room_for_a_request_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def serve(frame: bytes, peer: str, namespace: str, load_wait_ms: int) -> bytes:
        if frame == b"large":
            raise Overloaded("no bytes are left for requests")
        await asyncio.Event().wait()
        return b""

    monkeypatch.setattr(server_module, "MAX_WORKS", 1)
    async with serving(serve) as (peers, address):
        with pytest.raises(PeerUnavailable, match="no bytes are left"):
            await peers.forward(address, "me", b"large", "c", 1200)
        waiting = asyncio.create_task(peers.forward(address, "me", b"first", "c", 1200))
        await asyncio.sleep(0.1)
        with pytest.raises(PeerUnavailable, match="1 requests are in flight"):
            await peers.forward(address, "me", b"second", "c", 1200)
        waiting.cancel()


async def test_what_is_offered_is_told_by_reflection() -> None:
    def services(address: str) -> set[str]:
        with grpc.insecure_channel(address) as channel:
            return set(ProtoReflectionDescriptorDatabase(channel).get_services())

    async with serving(cast(Any, None)) as (_, address):
        offered = await asyncio.to_thread(services, address)
    assert {
        "kafka_sidecar.control.v1.Control",
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
    } <= offered


async def test_what_was_passed_on_runs_to_its_end_when_nobody_waits_any_more_and_is_waited_for() -> None:
    begun, go, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def serve(frame: bytes, peer: str, namespace: str, load_wait_ms: int) -> bytes:
        begun.set()
        await go.wait()
        ended.set()
        return b""

    server = ControlServer("me", answers(serve))
    port = await server.start("127.0.0.1", 0)
    peers = Peers(asyncio.get_running_loop().time)
    waiting = asyncio.create_task(peers.forward(f"127.0.0.1:{port}", "me", b"abc", "10.0.0.1:5", 1200))
    await begun.wait()
    waiting.cancel()
    await asyncio.sleep(0.1)
    assert not await server.finish(0.01)
    go.set()
    assert await server.finish(5)
    assert ended.is_set()
    await peers.close()
    await server.close()


async def test_a_peer_that_dies_in_a_long_poll_is_noticed() -> None:
    begun = asyncio.Event()

    async def serve(frame: bytes, peer: str, namespace: str, load_wait_ms: int) -> bytes:
        begun.set()
        await asyncio.sleep(60)
        return b""

    server = ControlServer("me", answers(serve))
    port = await server.start("127.0.0.1", 0)
    peers = Peers(asyncio.get_running_loop().time)
    waiting = asyncio.create_task(peers.forward(f"127.0.0.1:{port}", "me", b"abc", "10.0.0.1:5", 1200))
    await begun.wait()
    await server.close()
    with pytest.raises(PeerUnavailable):
        await asyncio.wait_for(waiting, 5)
    await peers.close()


async def test_others_are_told_of_deleted_topics() -> None:
    async def serve(frame: bytes, peer: str, namespace: str, load_wait_ms: int) -> bytes:
        return b""

    deleted.clear()
    async with serving(serve) as (peers, address):
        await peers.topics_deleted(address, "me", {"a": uuid.UUID(int=7), "b": None})
        with pytest.raises(PeerUnavailable):
            await peers.topics_deleted(address, "another", {"c": None})
    assert deleted == {"a": uuid.UUID(int=7), "b": None}


async def test_pings_and_what_is_to_be_opened_reach_the_sidecar_that_is_meant() -> None:
    async def serve(frame: bytes, peer: str, namespace: str, load_wait_ms: int) -> bytes:
        return b""

    async with serving(serve) as (peers, address):
        answer = await peers.ping(address, "me", "asker", serves=False)
        assert (answer.serves, list(answer.silent)) == (True, ["asker"])
        with pytest.raises(PeerUnavailable):
            await peers.ping(address, "another", "asker", serves=False)
        await peers.warm(address, "me", ["a-partition-0", "b-partition-1"])
    assert warmed == ["a-partition-0", "b-partition-1"]
