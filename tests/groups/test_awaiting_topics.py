"""Requests wait until topics are known."""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.groups import awaiting_topics as module
from kafka_sidecar.groups.awaiting_topics import QUEUE_LENGTH, RequestsAwaitingTopics
from kafka_sidecar.groups.consumer.members import RequiredTopics
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.memory_topics import MemoryTopics, image_of

LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class Members:
    """What becomes of their requests, in order."""

    def __init__(self, source: MemoryTopics) -> None:
        self.awaiting = RequestsAwaitingTopics(image_of(source))
        self.done: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []

    def ask(self, member: str, what: str, *names: str) -> None:
        self.tasks.append(asyncio.create_task(self._ask(member, what, names)))

    async def _ask(self, member: str, what: str, names: tuple[str, ...]) -> None:
        try:
            await self.awaiting.known(("g", member), lambda: RequiredTopics(frozenset(names)))
            self.done.append(what)
        except CoordinatorError as refused:
            self.done.append(refused.error.name)

    async def answered(self) -> None:
        await asyncio.gather(*self.tasks)

    async def end(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def test_requests_wait_for_topics_and_keep_their_order() -> None:
    members = Members(MemoryTopics({"a": 1}))
    members.ask("m", "first", "a")
    members.ask("m", "second")
    members.ask("other", "another member's")
    await asyncio.sleep(0)
    assert members.done == ["another member's"]
    assert not members.awaiting.is_idle
    await members.answered()
    assert members.done == ["another member's", "first", "second"]
    assert members.awaiting.is_idle
    members.ask("m", "third", "a")
    await asyncio.sleep(0)
    assert members.done[-1] == "third"


async def test_who_can_not_be_told_of_topics_is_told_to_ask_again() -> None:
    members = Members(MemoryTopics({"a": 1}, unavailable=True))
    members.ask("m", "first", "a")
    members.ask("m", "second")
    await members.answered()
    assert members.done == [LOADING.name, "second"]


async def test_nobody_waits_longer_than_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """From when it came, also behind another request of its member."""
    monkeypatch.setattr(module, "LEARN_SECONDS", 0.4)
    members = Members(MemoryTopics({"a": 1}, hangs=True))
    for _ in range(3):
        members.ask("m", "done", "a")
    await asyncio.sleep(1.0)  # one after the other would take 1.2 s
    assert members.done == [LOADING.name] * 3
    assert members.awaiting.is_idle


async def test_no_more_wait_than_a_client_asks_at_once() -> None:
    members = Members(MemoryTopics({"a": 1}, hangs=True))
    for _ in range(QUEUE_LENGTH + 2):
        members.ask("m", "done", "a")
    for _ in range(10):  # a turn of the loop is enough
        await asyncio.sleep(0)
    assert members.done == [LOADING.name] * 2
    await members.end()
    assert members.awaiting.is_idle


async def test_who_waits_while_the_coordinator_goes_is_told_so() -> None:
    def gone() -> RequiredTopics:
        raise CoordinatorError(ErrorCode.NOT_COORDINATOR)

    awaiting = RequestsAwaitingTopics(image_of(MemoryTopics({"a": 1})))
    with pytest.raises(CoordinatorError):
        await awaiting.known(("g", "m"), gone)
