"""Requests that other sidecars pass on to this one."""

from __future__ import annotations

from typing import Protocol

from kafka_sidecar.apis.api import BegunRequest, Client, Services
from kafka_sidecar.apis.state.promise import settled
from kafka_sidecar.apis.state.refused_batches import RefusedBatches
from kafka_sidecar.fleet.fleet import View
from kafka_sidecar.fleet.server import Overloaded
from kafka_sidecar.model.sidecar import Endpoint
from kafka_sidecar.server.budget import ByteBudget


class Caller:
    """A client of another sidecar, which has passed its request on."""

    def __init__(self, services: Services, peer: str) -> None:
        self.services = services
        self.peer = peer
        self.local_address = Endpoint("", 0)
        self.is_external = False
        self.refused = RefusedBatches()
        self.software = ""
        self.last_metadata: View | None = None
        self.waiting_since = None
        self.round_trip = 0.0

    def abort(self) -> None:
        """Its connection is the other sidecar's."""


class Dispatch(Protocol):
    def __call__(
        self, client: Client, frame: memoryview, *, forwarded: bool, by_0_2: bool, load_wait_seconds: float
    ) -> BegunRequest: ...


class PeerRequests:
    def __init__(self, services: Services, dispatch: Dispatch, budget: ByteBudget) -> None:
        self._services = services
        self._dispatch = dispatch
        self._budget = budget

    async def serve(self, frame: bytes, peer: str, namespace: str, load_wait_ms: int) -> bytes:
        """The response, from its header on. `namespace`: the other sidecar's, which one of 0.2 does not tell."""
        if not self._budget.try_take(len(frame)):
            raise Overloaded("no bytes are left for requests")
        try:
            handled = self._dispatch(
                Caller(self._services, peer),
                memoryview(frame),
                forwarded=True,
                by_0_2=not namespace,
                load_wait_seconds=load_wait_ms / 1000,
            )
            answer = await settled(handled.answer)
            assert answer is not None, "requests without an answer are not passed on"
            return b"".join(handled.encode(answer))[4:]
        finally:
            self._budget.release(len(frame))
