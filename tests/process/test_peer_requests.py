"""A request that another sidecar passes on counts among this one's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from kafka_sidecar.apis.api import Client
from kafka_sidecar.fleet.server import Overloaded
from kafka_sidecar.process.peer_requests import PeerRequests
from kafka_sidecar.server.budget import ByteBudget

SERVICES = cast(Any, object())


class Begun:
    api = "Heartbeat"
    ends_with_client = False

    def __init__(self, answer: bytes | Exception) -> None:
        self.answer = self._answer(answer)

    async def _answer(self, answer: bytes | Exception) -> bytes:
        if isinstance(answer, Exception):
            raise answer
        return answer

    def encode(self, answer: bytes) -> Sequence[bytes]:
        return b"size", answer

    def took(self, seconds: float) -> None: ...


class Dispatched:
    def __init__(self, answer: bytes | Exception = b"response") -> None:
        self.answer = answer
        self.client: Client | None = None
        self.by_0_2: list[bool] = []
        self.load_wait_seconds = 0.0

    def __call__(
        self, client: Client, frame: memoryview, *, forwarded: bool, by_0_2: bool, load_wait_seconds: float
    ) -> Begun:
        assert forwarded
        self.load_wait_seconds = load_wait_seconds
        self.client = client
        self.by_0_2.append(by_0_2)
        return Begun(self.answer)


async def test_the_answer_is_the_response_without_its_size() -> None:
    dispatch, budget = Dispatched(), ByteBudget(100)
    requests = PeerRequests(SERVICES, cast(Any, dispatch), budget)
    assert await requests.serve(b"frame", "pod:1", "team/sales", 1200) == b"response"
    assert dispatch.client is not None
    assert (dispatch.client.peer, dispatch.client.services) == ("pod:1", SERVICES)
    assert await requests.serve(b"frame", "pod:1", "", 1200) == b"response"
    assert dispatch.by_0_2 == [False, True]
    assert dispatch.load_wait_seconds == 1.2


async def test_its_bytes_count_until_it_is_answered() -> None:
    budget = ByteBudget(10)
    requests = PeerRequests(SERVICES, cast(Any, Dispatched(ValueError("broken"))), budget)
    for _ in range(3):
        with pytest.raises(ValueError, match="broken"):
            await requests.serve(b"x" * 8, "pod:1", "", 1200)
    assert budget.try_take(8)
    with pytest.raises(Overloaded):
        await requests.serve(b"x" * 8, "pod:1", "", 1200)
