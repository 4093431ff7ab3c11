"""How long the network takes, over a real socket."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest
import uvloop

from kafka_sidecar.server.round_trip import round_trip


class Silent(asyncio.Protocol):
    pass


@pytest.mark.skipif(not hasattr(socket, "TCP_INFO"), reason="this system does not tell")
@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_the_kernel_tells_how_far_a_client_is(new_loop: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def measured() -> float:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Silent, "127.0.0.1", 0)
        transport, _ = await loop.create_connection(Silent, *server.sockets[0].getsockname()[:2])
        found = round_trip(transport)
        transport.close()
        server.close()
        return found

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert 0 < runner.run(measured()) < 1


def test_without_a_socket_there_is_nothing_to_wait_for() -> None:
    assert round_trip(asyncio.BaseTransport()) == 0
