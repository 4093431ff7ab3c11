"""One client's connection: order of answers, limits, budget, back-pressure, draining."""

from __future__ import annotations

import asyncio
import struct

import pytest

from kafka_sidecar.apis.state.answer_share import CountedFetchResponse
from kafka_sidecar.loop.awake import STOOD_STILL_SECONDS
from kafka_sidecar.server import connection
from kafka_sidecar.server.budget import ByteBudget
from kafka_sidecar.server.connection import MAX_IN_WORK, STALLED_SECONDS
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.wire.error_code import ErrorCode
from tests.server.client_by_hand import Client


async def test_answers_leave_in_the_order_of_the_requests() -> None:
    client = Client()
    client.send(b"a", b"b", b"c")
    client.resolve(2, b"C")
    client.resolve(1, b"B")
    assert client.transport.sent == []
    client.resolve(0, b"A")
    assert client.transport.sent == [b"A", b"B", b"C"]


async def test_a_refusal_has_left_when_its_answer_has() -> None:
    client = Client()
    client.send(b"a", b"b")
    refused = client.connection.refused
    refused.note("p", 7, 0, 5, ErrorCode.NOT_LEADER_OR_FOLLOWER, asyncio.get_running_loop().time())
    client.resolve(1, b"B")
    assert refused.unanswered, "its answer stands behind another"
    client.resolve(0, b"A")
    assert not refused.unanswered


async def test_a_request_without_an_answer_holds_nobody_up() -> None:
    client = Client({b"silent": None})
    client.send(b"silent", b"x")
    client.resolve(0, b"X")
    assert client.transport.sent == [b"X"]


async def test_coroutines_promises_and_plain_answers_keep_their_order() -> None:
    async def slow() -> bytes:
        await asyncio.sleep(0)
        return b"1"

    client = Client({b"slow": slow(), b"plain": b"2"})
    client.send(b"slow", b"plain", b"promise")
    client.resolve(0, b"3")
    assert client.transport.sent == []
    await asyncio.sleep(0.01)
    assert client.transport.sent == [b"1", b"2", b"3"]


async def test_frames_may_come_byte_by_byte() -> None:
    client = Client({b"hello": b"hi"})
    for byte in struct.pack(">i", 5) + b"hello":
        client.connection.data_received(bytes([byte]))
    assert client.transport.sent == [b"hi"]
    assert client.budget.used == 0


@pytest.mark.parametrize("body", [b"garbage", b"bug"])
async def test_a_request_that_nobody_understands_closes_its_connection_only(body: bytes) -> None:
    client, other = Client(), Client({b"x": b"y"})
    client.send(body)
    assert client.transport.aborted
    other.send(b"x")
    assert other.transport.sent == [b"y"]


async def test_a_frame_over_the_limit_is_refused_from_its_length_alone() -> None:
    client = Client(max_request=100)
    client.connection.data_received(struct.pack(">i", 101))
    assert client.transport.aborted
    assert client.budget.used == 0


async def test_an_answer_that_can_not_be_encoded_closes_the_connection() -> None:
    client = Client({b"x": b"broken"})
    client.send(b"x")
    assert client.transport.aborted


async def test_a_failing_handler_closes_the_connection() -> None:
    async def fails() -> None:
        raise RuntimeError("a bug")

    errors = metrics.INTERNAL_ERRORS.labels("request")
    before = errors._value.get()
    client = Client({b"x": fails()})
    client.send(b"x")
    await asyncio.sleep(0.01)
    assert client.transport.aborted
    assert errors._value.get() == before + 1


async def test_too_many_requests_in_work_stop_the_reading_and_go_on_later() -> None:
    client = Client(budget=ByteBudget(10**6))
    client.send(*[b"%d" % number for number in range(MAX_IN_WORK + 50)])
    assert len(client.seen) == MAX_IN_WORK
    assert not client.transport.reading
    for number in range(MAX_IN_WORK):
        client.resolve(number, b"done")
    await asyncio.sleep(0)
    assert len(client.seen) == MAX_IN_WORK + 50
    assert client.transport.reading
    assert client.seen == [b"%d" % number for number in range(MAX_IN_WORK + 50)]


async def test_thousands_of_requests_in_one_read_that_are_answered_at_once() -> None:
    client = Client({b"x": b"y"}, budget=ByteBudget(10**6))
    client.send(*[b"x"] * 5_000)
    await asyncio.sleep(0.01)
    assert len(client.transport.sent) == 5_000
    assert client.transport.reading


async def test_a_client_that_takes_no_answers_is_not_read() -> None:
    client = Client({b"x": b"y"})
    client.connection.pause_writing()
    assert not client.transport.reading
    client.send(b"x")
    assert client.seen == []
    client.connection.resume_writing()
    assert client.transport.reading
    assert client.transport.sent == [b"y"]


async def test_a_request_is_not_read_before_there_is_room_for_it() -> None:
    budget = ByteBudget(100)
    first, second = Client(budget=budget), Client(budget=budget)
    first.send(b"x" * 90)
    assert budget.used == 90
    second.connection.data_received(struct.pack(">i", 80) + b"begins")
    assert not second.transport.reading
    first.resolve(0, b"done")
    assert second.transport.reading
    second.connection.data_received(b"y" * 74)
    second.resolve(0, b"done")
    assert second.transport.sent == [b"done"]
    assert budget.used == 0


async def test_a_refused_batch_is_not_forgotten_while_its_connection_is_not_read() -> None:
    """What was sent behind it waits in the socket for the bytes that others hold."""
    budget = ByteBudget(100)
    first, second = Client(budget=budget), Client(budget=budget)
    first.send(b"x" * 90)
    second.connection.data_received(struct.pack(">i", 80) + b"begins")
    assert not second.transport.reading
    refused, now = second.connection.refused, asyncio.get_running_loop().time()
    refused.note("p", 7, 0, 5, ErrorCode.NOT_LEADER_OR_FOLLOWER, now)
    refused.answered(None, now)
    assert refused.holds_any(now + 1_000)
    first.resolve(0, b"done")
    assert second.transport.reading
    assert not refused.holds_any(now + 1_000)


async def test_a_lost_client_gives_everything_back() -> None:
    budget = ByteBudget(100)
    cancelled = asyncio.Event()

    async def long_poll() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    first = Client({b"poll": long_poll()}, budget=budget)
    first.send(b"poll", b"x" * 60)
    waiting = Client(budget=budget)
    waiting.connection.data_received(struct.pack(">i", 90))
    await asyncio.sleep(0)
    waiting.connection.connection_lost(None)
    first.connection.connection_lost(None)
    await asyncio.sleep(0)
    assert cancelled.is_set()
    assert first.lost == 1
    first.resolve(0, b"too late")
    assert first.transport.sent == []
    assert budget.used == 0


async def test_what_came_while_the_process_stood_still_is_not_read() -> None:
    client = Client()
    client.clock += STOOD_STILL_SECONDS + 1
    client.send(b"old")
    assert (client.seen, client.stood_still) == ([], 1)
    client.awake.beat()
    client.send(b"new")
    assert client.seen == [b"new"]


async def test_draining_answers_what_is_begun_and_takes_nothing_more() -> None:
    client = Client()
    client.send(b"a")
    client.connection.drain()
    assert not client.transport.reading
    assert not client.transport.closed
    client.send(b"b")
    client.resolve(0, b"A")
    assert client.transport.sent == [b"A"]
    assert client.transport.ended
    client.send(b"c")
    assert client.seen == [b"a"]


async def test_draining_an_idle_connection_ends_it_and_what_still_comes_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "FAREWELL_SECONDS", 0.01)
    client = Client()
    client.connection.drain()
    assert (client.transport.ended, client.transport.closed, client.transport.reading) == (True, False, True)
    client.send(b"late")
    assert client.seen == []
    await asyncio.sleep(0.05)
    assert client.transport.closed


async def test_a_connection_that_is_drained_before_it_is_made_is_ended_too() -> None:
    client = Client(is_drained_first=True)
    assert client.transport.ended


async def test_answers_that_nobody_takes_are_not_encoded() -> None:
    client = Client({b"x": b"y"})
    client.send(b"first", b"x")
    client.connection.pause_writing()
    client.resolve(0, b"1")
    assert client.transport.sent == []
    client.connection.resume_writing()
    assert client.transport.sent == [b"1", b"y"]


async def test_work_that_outlives_its_client_keeps_its_bytes_until_it_is_done() -> None:
    client = Client(changes=True)
    client.send(b"x" * 50)
    client.connection.connection_lost(None)
    assert client.budget.used == 50
    assert client.lost == 0, "it counts as a connection until then"
    client.resolve(0, b"too late")
    assert client.budget.used == 0
    assert client.lost == 1


@pytest.mark.parametrize("fails", [False, True])
async def test_what_changes_something_is_not_cancelled_with_its_client(fails: bool) -> None:
    go, done = asyncio.Event(), asyncio.Event()

    async def change() -> bytes:
        await go.wait()
        done.set()
        if fails:
            raise ZeroDivisionError
        return b""

    client = Client({b"delete": change()}, changes=True)
    client.send(b"delete")
    await asyncio.sleep(0)
    client.connection.connection_lost(None)
    await asyncio.sleep(0.01)
    assert client.lost == 0
    go.set()
    await asyncio.wait_for(done.wait(), 1)
    await asyncio.sleep(0)
    assert (client.lost, client.budget.used) == (1, 0)


@pytest.mark.parametrize("error", [ZeroDivisionError, asyncio.CancelledError])
async def test_a_change_that_has_failed_is_not_waited_for_when_its_connection_goes(error: type[BaseException]) -> None:
    """Its connection is closed for it. One that was counted for ever would hold up each later drain."""

    async def change() -> bytes:
        raise error

    client = Client({b"delete": change()}, changes=True)
    client.send(b"delete")
    await asyncio.sleep(0.01)
    assert client.transport.aborted
    client.connection.connection_lost(None)
    assert (client.lost, client.budget.used) == (1, 0)


def slow_answer(size: int) -> CountedFetchResponse:
    answer = CountedFetchResponse()
    answer.counted_bytes = size
    return answer


async def test_an_answer_counts_until_its_client_has_taken_it() -> None:
    client = Client()
    client.send(b"fetch", b"fetch")
    client.answers_share.take(600)  # as the fetch does that has made them
    client.works[1].resolve(slow_answer(200))
    client.works[0].resolve(slow_answer(400))
    assert client.answers_share.used == 0, "both were taken at once"
    client.send(b"fetch", b"fetch")
    client.transport.writelines = lambda parts: client.connection.pause_writing()  # type: ignore[method-assign]
    client.answers_share.take(600)
    client.works[2].resolve(slow_answer(400))
    client.works[3].resolve(slow_answer(200))
    assert client.answers_share.used == 600
    client.transport.writelines = lambda parts: None  # type: ignore[method-assign]
    client.connection.resume_writing()
    assert client.answers_share.used == 0


@pytest.mark.parametrize("taken", [False, True])
async def test_a_client_that_goes_leaves_no_answer_behind(taken: bool) -> None:
    client = Client()
    client.send(b"fetch", b"fetch", b"fetch")
    client.answers_share.take(700)
    client.transport.writelines = lambda parts: client.connection.pause_writing()  # type: ignore[method-assign]
    if taken:
        client.works[0].resolve(slow_answer(400))
    client.works[1].resolve(slow_answer(200))
    client.connection.connection_lost(None)
    if not taken:
        client.works[0].resolve(slow_answer(400))
    client.works[2].resolve(slow_answer(100))
    assert client.answers_share.used == 0


async def test_who_announces_a_request_and_sends_nothing_is_put_out_when_others_wait() -> None:
    budget = ByteBudget(100)
    first, second = Client(budget=budget), Client(budget=budget)
    first.connection.data_received(struct.pack(">i", 90) + b"begins")
    late = asyncio.get_running_loop().time() + STALLED_SECONDS + 1
    assert not first.connection.has_stalled(late), "nobody waits"
    second.connection.data_received(struct.pack(">i", 80) + b"begins")
    assert first.connection.has_stalled(late)
    assert not second.connection.has_stalled(late), "it waits itself"
    first.connection.connection_lost(None)
    assert second.transport.reading


async def test_who_takes_no_answer_is_put_out_when_others_wait_and_who_takes_it_slowly_is_not() -> None:
    client = Client()
    left = 10_000_000
    client.transport.get_write_buffer_size = lambda: left  # type: ignore[attr-defined]
    client.transport.writelines = lambda parts: client.connection.pause_writing()  # type: ignore[method-assign]
    client.send(b"fetch")
    client.answers_share.take(1_000)
    client.works[0].resolve(slow_answer(1_000))
    now = asyncio.get_running_loop().time()
    assert not client.connection.has_stalled(now + 1_000), "nobody waits"
    client.answers_share.wait(lambda: None)
    for second in range(60):
        left -= 10_000
        assert not client.connection.has_stalled(now + second)
    assert not client.connection.has_stalled(now + 60)
    assert client.connection.has_stalled(now + 61 + STALLED_SECONDS)


async def test_an_answer_that_waited_long_behind_another_names_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_sidecar.server.connection.LATE_SECONDS", 0.02)
    client = Client()
    client.send(b"slow", b"heartbeat")
    client.resolve(1, b"B")
    await asyncio.sleep(0.05)
    client.resolve(0, b"A")
    assert client.transport.sent == [b"A", b"B"]
    assert "behind one to Test" in caplog.text


async def test_a_connection_that_is_not_read_here_is_not_one_that_sends_nothing() -> None:
    budget = ByteBudget(100_000)
    client, other = Client(budget=budget, max_request=100_000), Client(budget=budget, max_request=100_000)
    client.send(*[b"x"] * MAX_IN_WORK)
    client.connection.data_received(struct.pack(">i", 90_000) + b"begins")
    other.connection.data_received(struct.pack(">i", 90_000) + b"begins")
    assert not client.transport.reading
    late = asyncio.get_running_loop().time() + STALLED_SECONDS + 1
    assert not client.connection.has_stalled(late)
    for number in range(MAX_IN_WORK):
        client.resolve(number, b"")
    await asyncio.sleep(0)
    assert client.transport.reading
    assert client.connection.has_stalled(late + 1)


async def test_a_request_that_comes_in_drops_does_not_hold_its_bytes_for_ever() -> None:
    budget = ByteBudget(100)
    dripping, other = Client(budget=budget), Client(budget=budget)
    dripping.connection.data_received(struct.pack(">i", 90) + b"b")
    other.connection.data_received(struct.pack(">i", 90) + b"b")
    now = asyncio.get_running_loop().time()
    dripping.connection.last_active = now + 15
    assert dripping.connection.has_stalled(now + 20)


async def test_answers_that_wait_behind_one_that_does_not_come_are_given_up_when_others_wait() -> None:
    client = Client()
    client.send(b"long poll", b"fetch")
    client.answers_share.take(1_000)
    client.transport.get_write_buffer_size = lambda: 0  # type: ignore[attr-defined]
    client.works[1].resolve(slow_answer(1_000))
    now = asyncio.get_running_loop().time()
    assert client.budget.used == len(b"long poll"), "a request is done with when its answer is ready"
    assert not client.connection.has_stalled(now + 60), "nobody waits"
    client.answers_share.wait(lambda: None)
    assert not client.connection.has_stalled(now + 5)
    assert client.connection.has_stalled(now + 60)


async def test_a_handler_whose_work_was_cancelled_by_others_does_not_hold_up_its_connection() -> None:
    work = asyncio.get_running_loop().create_future()
    client = Client({b"x": work})
    client.send(b"x")
    work.cancel()
    await asyncio.sleep(0)
    assert client.transport.aborted
