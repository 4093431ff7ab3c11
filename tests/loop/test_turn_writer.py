"""What is written in one turn of the loop leaves together, in its order."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from kafka_sidecar.loop.turn_writer import AT_ONCE_BYTES, TurnWriter


class Transport:
    def __init__(self) -> None:
        self.calls: list[list[bytes]] = []
        self.closing = False

    def is_closing(self) -> bool:
        return self.closing

    def writelines(self, parts: list[bytes]) -> None:
        self.calls.append(list(parts))


def made() -> tuple[Transport, TurnWriter]:
    transport = Transport()
    return transport, TurnWriter(cast(Any, transport))


async def test_one_call_a_turn() -> None:
    transport, writer = made()
    writer.write(b"a", b"b")
    writer.write(b"c")
    assert transport.calls == []
    await asyncio.sleep(0)
    assert transport.calls == [[b"a", b"b", b"c"]]
    writer.write(b"d")
    await asyncio.sleep(0)
    assert transport.calls[1:] == [[b"d"]]


async def test_what_can_not_wait_takes_what_was_before_it_along() -> None:
    transport, writer = made()
    writer.write(b"a")
    writer.flush()
    writer.write(b"b")
    assert transport.calls == [[b"a"]]
    await asyncio.sleep(0)
    assert transport.calls == [[b"a"], [b"b"]]


async def test_much_leaves_at_once_so_that_a_slow_peer_is_noticed_in_the_turn() -> None:
    transport, writer = made()
    large = bytes(AT_ONCE_BYTES // 2)
    for _ in range(5):
        writer.write(large)
    assert [len(call) for call in transport.calls] == [2, 2]
    await asyncio.sleep(0)
    assert [len(call) for call in transport.calls] == [2, 2, 1]


async def test_nothing_is_written_to_what_is_closing() -> None:
    transport, writer = made()
    writer.write(b"a")
    transport.closing = True
    await asyncio.sleep(0)
    assert transport.calls == []
