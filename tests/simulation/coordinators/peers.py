"""Sidecars that ask each other. What is asked of one that is dead or stands still ends when its silence is noticed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka_sidecar.apis.routing.transactions import PeerTransactions
from kafka_sidecar.control.v1.control_pb2 import (
    EndOffsetsRequest,
    EndOffsetsResponse,
    VerifyTransactionRequest,
    VerifyTransactionResponse,
)
from kafka_sidecar.fleet.peers import PeerUnavailable

if TYPE_CHECKING:
    from tests.simulation.coordinators.fleet import Member

# keepalive_time and keepalive_timeout together (kafka_sidecar.fleet.peers).
SILENT_SECONDS: Final = 10.0
T = TypeVar("T")


class SimulatedPeers:
    def __init__(self, members: list[Member], delay: Callable[[], float]) -> None:
        """`members`: all there are, once the fleet has begun."""
        self._members = members
        self._delay = delay

    async def verify_transaction(self, address: str, request: VerifyTransactionRequest) -> VerifyTransactionResponse:
        return await self._ask(address, request.to, lambda peer: peer.verify(request))

    async def end_offsets(self, address: str, request: EndOffsetsRequest) -> EndOffsetsResponse:
        return await self._ask(address, request.to, lambda peer: peer.end_offsets(request))

    async def _ask(self, address: str, name: str, work: Callable[[PeerTransactions], Coroutine[Any, Any, T]]) -> T:
        await asyncio.sleep(self._delay())
        member = next(one for one in self._members if one.runtime.control_address == address)
        if member.runtime.name != name:
            raise PeerUnavailable("this is another sidecar")
        life = member.life
        task = member.begin(work(PeerTransactions(member.transactions, member.groups)))
        while not task.done():
            await asyncio.wait({task}, timeout=SILENT_SECONDS)
            if not task.done() and (member.life != life or not member.is_running):
                raise PeerUnavailable("it does not answer")
        await asyncio.sleep(self._delay())
        return task.result()
