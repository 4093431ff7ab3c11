"""HTTP over kept connections, against servers that do what servers and proxies do."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from kafka_sidecar.pulsar.admin import connections
from kafka_sidecar.pulsar.admin.connections import HttpConnections, NoAnswer, NotConnected

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
Serve = Callable[["Server", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Server:
    port: int = 0
    connected: int = 0
    requests: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/path?q=1"


@asynccontextmanager
async def serving(serve: Serve) -> AsyncIterator[tuple[Server, HttpConnections]]:
    server, client = Server(), HttpConnections(2)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connected += 1
        try:
            await serve(server, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(connected, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server, client
    finally:
        client.close()
        listening.close()


async def _request(server: Server, reader: asyncio.StreamReader) -> str:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = next(
        (int(line.split(":")[1]) for line in head.splitlines() if line.lower().startswith("content-length")), 0
    )
    body = (await reader.readexactly(length)).decode()
    server.requests.append(head.splitlines()[0] + " " + body)
    return head


def answering(*answers: bytes, then_close: bool = False) -> Serve:
    """The same answers on each connection, one a request."""

    async def serve(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in answers:
            await _request(server, reader)
            writer.write(answer)
            await writer.drain()
        if not then_close:
            await reader.read()

    return serve


async def test_a_connection_is_used_again() -> None:
    async with serving(answering(OK, OK, OK)) as (server, client):
        for body in (None, b"3", b"4"):
            response = await client.request("GET" if body is None else "PUT", server.url, body)
            assert (response.status, response.json()) == (200, {})
    assert server.connected == 1
    assert server.requests == ["GET /path?q=1 HTTP/1.1 ", "PUT /path?q=1 HTTP/1.1 3", "PUT /path?q=1 HTTP/1.1 4"]


async def test_there_are_no_more_connections_than_allowed() -> None:
    async with serving(answering(*[OK] * 10)) as (server, client):
        await asyncio.gather(*(client.request("GET", server.url) for _ in range(10)))
    assert server.connected <= 2
    assert len(server.requests) == 10


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", b"abc"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", b"x"),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
    ids=["chunks", "continue", "until the end", "nothing"],
)
async def test_answers_of_every_length_are_read(answer: bytes, body: bytes) -> None:
    async with serving(answering(answer, then_close=True)) as (server, client):
        assert (await client.request("GET", server.url)).body == body


async def test_a_question_is_asked_again_where_the_kept_connection_was_closed_and_a_change_is_not() -> None:
    async with serving(answering(OK, then_close=True)) as (server, client):
        await client.request("GET", server.url)
        ((_, kept),) = client._idle
        kept.is_open = True  # as if the end of it had not been seen yet
        assert (await client.request("GET", server.url)).status == 200
        await asyncio.sleep(0.05)
        ((_, kept),) = client._idle
        assert not kept.is_open, "it was seen to be closed"
        assert (await client.request("PUT", server.url, b"1")).status == 200, "over a new one"
    assert server.connected == 3


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nConte",
        b"not http at all\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["closed", "half", "half a header", "garbage", "bad chunk"],
)
async def test_an_answer_that_is_none_is_a_failure(answer: bytes) -> None:
    async with serving(answering(answer, then_close=True)) as (server, client):
        with pytest.raises(NoAnswer):
            await client.request("PUT", server.url, b"1")
        assert len(server.requests) == 1, "it is not sent again"


async def test_an_answer_without_end_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_BODY", 1_000)
    async with serving(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n" + b"x" * 5_000)) as (
        server,
        client,
    ):
        with pytest.raises(NoAnswer):
            await client.request("GET", server.url)


async def test_a_silent_server_is_not_waited_for_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "TIMEOUT_SECONDS", 0.1)
    async with serving(answering(b"")) as (server, client):
        with pytest.raises(NoAnswer, match="no answer within"):
            await client.request("GET", server.url)


async def test_nobody_there_is_not_connected() -> None:
    async with serving(answering()) as (server, client):
        pass
    client = HttpConnections(1)
    with pytest.raises(NotConnected):
        await client.request("GET", server.url)
    with pytest.raises(ValueError, match="no address"):
        await client.request("GET", "ftp://x/y")


async def test_what_nobody_has_asked_for_is_not_the_next_answer() -> None:
    async with serving(answering(OK + b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nst", OK)) as (server, client):
        assert (await client.request("GET", server.url)).body == b"{}"
        assert (await client.request("GET", server.url)).body == b"{}"
    assert server.connected == 2


async def test_a_request_that_waits_for_others_gives_up_in_time_and_nobody_has_heard_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(answering(b"")) as (server, client):
        first = [asyncio.create_task(client.request("PUT", server.url, b"1")) for _ in range(2)]
        while len(server.requests) < 2:  # noqa: ASYNC110 - they have all connections that there may be
            await asyncio.sleep(0.001)
        monkeypatch.setattr(connections, "TIMEOUT_SECONDS", 0.05)
        results = await asyncio.gather(
            *(client.request("PUT", server.url, b"1") for _ in range(4)), return_exceptions=True
        )
        assert [type(result).__name__ for result in results] == ["NotConnected"] * 4
        assert len(server.requests) == 2
        for one in first:
            one.cancel()
        await asyncio.gather(*first, return_exceptions=True)


async def test_an_exchange_that_is_given_up_leaves_no_answer_behind() -> None:
    async def serve(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _request(server, reader)
        await asyncio.sleep(0.05)
        writer.write(OK)
        await reader.read()

    async with serving(serve) as (server, client):
        given_up = asyncio.create_task(client.request("GET", server.url))
        await asyncio.sleep(0.02)
        given_up.cancel()
        assert (await client.request("GET", server.url)).status == 200
        assert server.connected == 2


async def test_user_and_password_of_the_address_are_sent() -> None:
    heads: list[str] = []

    async def serve(server: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await _request(server, reader))
        writer.write(OK)
        await reader.read()

    async with serving(serve) as (server, client):
        await client.request("GET", server.url.replace("127.0.0.1", "me:p%40ss@127.0.0.1"))
    assert "Authorization: Basic bWU6cEBzcw==" in heads[0]
    assert f"Host: 127.0.0.1:{server.port}" in heads[0]
