"""A request whose answer has left is no cycle of objects.

A cycle stays until Python's collector looks for it: that would cost each of thousands of requests a second.
"""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from kafka_sidecar.server.connection import KafkaConnection
from tests.server.client_by_hand import Client, Work


@dataclass
class WatchedClient(Client):
    dispatched: list[weakref.ref[Work]] = field(default_factory=list)

    def _dispatch(self, connection: KafkaConnection, frame: memoryview) -> Work:
        work = super()._dispatch(connection, frame)
        self.dispatched.append(weakref.ref(work))
        return work


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("body", [b"promise", b"coroutine", b"plain"])
async def test_a_request_whose_answer_has_left_takes_no_memory(body: bytes) -> None:
    async def soon() -> bytes:
        await asyncio.sleep(0)
        return b"A"

    client = WatchedClient({b"coroutine": soon()} if body == b"coroutine" else {b"plain": b"A"})
    client.send(body)
    if client.works:
        client.works.pop().resolve(b"A")
    for _ in range(5):
        await asyncio.sleep(0)
    assert client.transport.sent == [b"A"]
    assert [one() for one in client.dispatched] == [None]
