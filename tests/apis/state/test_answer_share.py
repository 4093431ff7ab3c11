"""Bytes of answers that are not taken yet: how much there is, and who waits for it."""

from __future__ import annotations

import asyncio

from kafka_sidecar.apis.state.answer_share import PART, AnswerShare


async def test_some_is_left_however_many_take() -> None:
    share = AnswerShare(1_000)
    for _ in range(20):
        assert share.room > 0
        share.take(share.room)
    assert share.used < 1_000
    share.take(1_000)
    assert share.room == 0


async def test_those_who_wait_go_on_in_their_order_and_later() -> None:
    share = AnswerShare(100)
    share.take(100)
    went_on: list[str] = []

    def first() -> None:
        went_on.append("first")

    def gone() -> None:
        went_on.append("gone")

    def second() -> None:
        went_on.append("second")

    for waiter in (first, gone, second):
        share.wait(waiter)
    share.withdraw(gone)
    share.release(PART - 1)
    await asyncio.sleep(0)
    assert not went_on, "that is room for nothing"
    share.release(50)
    assert not went_on, "who releases is in the middle of something"
    await asyncio.sleep(0)
    assert went_on == ["first", "second"]
    assert not share.is_wanted


async def test_one_that_fails_to_go_on_keeps_no_other_from_it() -> None:
    share = AnswerShare(100)
    share.take(100)
    went_on = asyncio.Event()
    complaints: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context["exception"]))

    def fails() -> None:
        raise ZeroDivisionError

    share.wait(fails)
    share.wait(went_on.set)
    share.release(100)
    await asyncio.wait_for(went_on.wait(), 1)
    assert [type(complaint) for complaint in complaints] == [ZeroDivisionError]
