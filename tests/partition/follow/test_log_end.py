"""The end of the log: whoever asks hears of everything that was acknowledged before, and a crowd asks one question at a
time.
"""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.partition.follow.log_end import LogEnd
from kafka_sidecar.pulsar.errors import Unavailable


class Broker:
    """Answers when it is let go, or fails."""

    def __init__(self) -> None:
        self.questions = 0
        self.told = 0
        self.answers: asyncio.Queue[Exception | None] = asyncio.Queue()
        self.end = LogEnd(self)

    async def read_to_end(self) -> None:
        self.questions += 1
        answer = await self.answers.get()
        if answer is not None:
            raise answer

    def changed(self) -> None:
        self.told += 1


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_those_who_come_during_a_question_share_the_next() -> None:
    broker = Broker()
    first = asyncio.create_task(broker.end.confirmed())
    await turns()
    later = [asyncio.create_task(broker.end.confirmed()) for _ in range(10)]
    await turns()
    assert broker.questions == 1
    broker.answers.put_nowait(None)
    await asyncio.wait_for(first, 1)
    await turns()
    assert broker.questions == 2
    assert not any(task.done() for task in later)
    broker.answers.put_nowait(None)
    await asyncio.wait_for(asyncio.gather(*later), 1)
    assert broker.questions == 2


async def test_a_question_answers_only_readers_that_came_before_it() -> None:
    broker = Broker()
    now = asyncio.get_running_loop().time
    came = now()
    assert not broker.end.is_confirmed_since(came)
    await asyncio.sleep(0.01)  # the question is under way
    late = now()
    assert not broker.end.is_confirmed_since(late)
    broker.answers.put_nowait(None)
    await asyncio.sleep(0.01)
    assert broker.end.is_confirmed_since(came - 0.001)
    assert not broker.end.is_confirmed_since(late)
    assert broker.questions == 2, "the next one is on its way already"
    broker.answers.put_nowait(None)
    await asyncio.sleep(0.01)
    assert broker.end.is_confirmed_since(late)
    assert broker.told == 2


@pytest.mark.parametrize("failure", [Unavailable("away"), KeyError("nobody thought of it")])
async def test_a_failed_question_is_told_to_those_who_waited_and_the_next_is_asked_anew(failure: Exception) -> None:
    broker = Broker()
    waiting = asyncio.create_task(broker.end.confirmed())
    await turns()
    broker.answers.put_nowait(failure)
    with pytest.raises(Unavailable):
        await waiting
    assert broker.told == 0
    again = asyncio.create_task(broker.end.confirmed())
    broker.answers.put_nowait(None)
    await asyncio.wait_for(again, 1)


async def test_who_waits_is_told_when_the_partition_ends() -> None:
    broker = Broker()
    waiting = [asyncio.create_task(broker.end.confirmed())]
    await turns()
    waiting.append(asyncio.create_task(broker.end.confirmed()))
    await turns()
    broker.end.fail(Unavailable("closed"))
    assert [type(result) for result in await asyncio.gather(*waiting, return_exceptions=True)] == [
        Unavailable,
        Unavailable,
    ]


async def test_who_gives_up_leaves_nothing_behind() -> None:
    broker = Broker()
    waiting = asyncio.create_task(broker.end.confirmed())
    await turns()
    waiting.cancel()
    await turns()
    broker.answers.put_nowait(None)
    await turns()
    assert broker.end._task is None
