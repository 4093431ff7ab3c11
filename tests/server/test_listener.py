"""The listener: real sockets, scripted answers."""

from __future__ import annotations

import asyncio
import struct
from contextlib import suppress
from typing import Any, cast

import pytest

from kafka_sidecar.apis.state.answer_share import AnswerShare
from kafka_sidecar.errors import ConfigError
from kafka_sidecar.fleet.fleet import View
from kafka_sidecar.fleet.leadership import Leadership
from kafka_sidecar.fleet.member import Member
from kafka_sidecar.loop.awake import ACCEPTS_SECONDS, STOOD_STILL_SECONDS
from kafka_sidecar.server.budget import ByteBudget
from kafka_sidecar.server.listener import Listener
from tests.server.client_by_hand import Work

NO_SERVICES = cast(Any, None)


def listener(answer: object, *, max_connections: int = 10, idle_seconds: float = 60.0) -> Listener:
    return Listener(
        NO_SERVICES,
        lambda _client, _frame: Work(answer),
        ByteBudget(1_000),
        AnswerShare(1_000),
        max_request=100,
        max_connections=max_connections,
        idle_seconds=idle_seconds,
        others_serve=lambda: False,
    )


async def _ask(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(struct.pack(">i", 1) + b"x")
    return reader, writer


async def test_it_serves_and_drains() -> None:
    server = listener(b"answer")
    port = await server.start("127.0.0.1", 0)
    reader, writer = await _ask(port)
    assert await reader.readexactly(6) == b"answer"
    assert await server.drain(5)
    assert await reader.read() == b""
    writer.close()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_a_connection_knows_to_which_listener_it_came() -> None:
    came: list[bool] = []
    server = listener(b"answer")
    server._dispatch = lambda client, _frame: came.append(client.is_external) or Work(b"answer")  # type: ignore[func-returns-value]
    writers = []
    for port in (await server.start("127.0.0.1", 0), await server.start_external("127.0.0.1", 0)):
        reader, writer = await _ask(port)
        assert await reader.readexactly(6) == b"answer"
        writers.append(writer)
    assert came == [False, True]
    assert await server.drain(5), "both end"
    for writer in writers:
        writer.close()


async def test_a_drain_that_takes_too_long_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def never() -> None:
        await asyncio.sleep(60)

    server = listener(never())
    _, writer = await _ask(await server.start("127.0.0.1", 0))
    await asyncio.sleep(0.05)
    assert not await server.drain(0.05)
    assert "(draining, 1 requests, 0 go on without it): Test has had no answer for 0." in caplog.text
    writer.close()


async def test_connections_over_the_limit_are_closed() -> None:
    server = listener(b"!", max_connections=1)
    port = await server.start("127.0.0.1", 0)
    first, one = await _ask(port)
    assert await first.readexactly(1) == b"!"
    second, two = await asyncio.open_connection("127.0.0.1", port)
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await second.readexactly(1)
    one.close()
    two.close()
    await server.drain(1)


async def test_idle_connections_are_closed() -> None:
    server = listener(b"!", idle_seconds=0.1)
    reader, writer = await _ask(await server.start("127.0.0.1", 0))
    async with asyncio.timeout(5):
        assert await reader.read() == b"!"
    writer.close()
    await server.drain(1)


async def test_who_announces_a_request_and_sends_nothing_is_closed_when_others_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kafka_sidecar.server.connection.STALLED_SECONDS", 0.2)
    monkeypatch.setattr("kafka_sidecar.server.listener.SWEEP_SECONDS", 0.05)
    server = Listener(
        NO_SERVICES,
        lambda _client, _frame: Work(b"!"),
        ByteBudget(1_000),
        AnswerShare(1_000),
        max_request=900,
        max_connections=10,
        idle_seconds=60.0,
        others_serve=lambda: False,
    )
    port = await server.start("127.0.0.1", 0)
    silent, one = await asyncio.open_connection("127.0.0.1", port)
    one.write(struct.pack(">i", 900) + b"begins")
    await asyncio.sleep(0.5)
    waiting, two = await asyncio.open_connection("127.0.0.1", port)
    two.write(struct.pack(">i", 800) + b"x" * 100)
    await asyncio.sleep(0.02)
    two.write(b"x" * 700)
    async with asyncio.timeout(5):
        assert await waiting.readexactly(1) == b"!", "it was its turn"
        assert await silent.read() == b""
    one.close()
    two.close()
    await server.drain(1)


async def test_a_taken_address_is_one_clear_sentence() -> None:
    first, second = listener(None), listener(None)
    port = await first.start("127.0.0.1", 0)
    with pytest.raises(ConfigError, match=r"set kafka[.]listen to a free address"):
        await second.start("127.0.0.1", port)
    await first.drain(1)


async def test_who_was_told_too_little_is_sent_away_once_and_nobody_else() -> None:
    views = [
        None,
        View((Member(1, "here", 9092),), (), Leadership([])),
        View((Member(1, "here", 9092), Member(2, "there", 9092)), (), Leadership([])),
    ]
    server = listener(b"answer")
    server._dispatch = lambda client, _frame: setattr(client, "last_metadata", views.pop(0)) or Work(b"answer")  # type: ignore[func-returns-value]
    port = await server.start("127.0.0.1", 0)
    there = []
    for _ in range(3):
        there.append(await _ask(port))
        assert await there[-1][0].readexactly(6) == b"answer"
    server.tell_again(2)
    (unreached, one), (told_too_little, two), (told, three) = there
    async with asyncio.timeout(5):
        assert await told_too_little.read() == b""
    views += [None, None]
    for reader, writer in ((unreached, one), (told, three)):
        writer.write(struct.pack(">i", 1) + b"x")
        assert await reader.readexactly(6) == b"answer", "it goes on"
    for writer in (one, two, three):
        writer.close()
    await server.drain(1)


async def test_a_connection_that_was_made_while_the_process_stood_still_is_not_served() -> None:
    """The kernel has accepted it, and its client has given the request up."""
    clock = [0.0]
    server = Listener(
        NO_SERVICES,
        lambda _client, _frame: Work(b"!"),
        ByteBudget(1_000),
        AnswerShare(1_000),
        max_request=900,
        max_connections=10,
        idle_seconds=60.0,
        others_serve=lambda: True,
        awake_clock=lambda: clock[0],
    )
    port = await server.start("127.0.0.1", 0)
    clock[0] = STOOD_STILL_SECONDS + 1
    for is_answered in (False, False, True):
        reader, writer = await _ask(port)
        async with asyncio.timeout(5):
            with suppress(ConnectionError):
                assert await reader.read(1) == (b"!" if is_answered else b"")
        writer.close()
        clock[0] += ACCEPTS_SECONDS * 0.6
    await server.drain(1)
