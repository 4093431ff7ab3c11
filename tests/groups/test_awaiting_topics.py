"""Requests wait until topics are known."""

from __future__ import annotations

import asyncio

import pytest
from kio.schema.errors import ErrorCode

from handler.coordination.errors import NotLeading
from handler.groups import awaiting_topics as module
from handler.groups.awaiting_topics import QUEUE_LENGTH, RequestsAwaitingTopics
from handler.groups.consumer.members import Needs
from handler.groups.topics_image import TopicsImage
from tests.support.memory_topics import MemoryTopics


def needs(*names: str, regexes: tuple[str, ...] = ()) -> Needs:
    return Needs(frozenset(names), frozenset(regexes))


async def test_calls_wait_for_topics_and_keep_their_order() -> None:
    source = MemoryTopics({"a": 1})
    informed = RequestsAwaitingTopics(TopicsImage(source))
    done: list[str] = []
    informed.when_known(("g", "m"), lambda: needs("a"), lambda: done.append("first"), lambda error: done.append(error.name))
    informed.when_known(("g", "m"), needs, lambda: done.append("second"), lambda error: done.append(error.name))
    informed.when_known(("g", "other"), needs, lambda: done.append("another member's"), lambda error: done.append(error.name))
    assert done == ["another member's"]
    await asyncio.sleep(0.01)
    assert done == ["another member's", "first", "second"]
    informed.when_known(("g", "m"), lambda: needs("a"), lambda: done.append("third"), lambda error: done.append(error.name))
    assert done[-1] == "third"
    await informed.close()


async def test_who_can_not_be_told_of_topics_is_told_to_ask_again() -> None:
    source = MemoryTopics({"a": 1}, unavailable=True)
    informed = RequestsAwaitingTopics(TopicsImage(source))
    told: list[ErrorCode] = []
    informed.when_known(("g", "m"), lambda: needs("a"), lambda: told.append(ErrorCode.none), told.append)
    informed.when_known(("g", "m"), needs, lambda: told.append(ErrorCode.none), told.append)
    await asyncio.sleep(0.01)
    assert told == [ErrorCode.coordinator_load_in_progress, ErrorCode.none]
    await informed.close()


async def test_who_waits_when_the_sidecar_stops_is_sent_away() -> None:
    informed = RequestsAwaitingTopics(TopicsImage(MemoryTopics({"a": 1})))
    told: list[ErrorCode] = []
    informed.when_known(("g", "m"), lambda: needs("a"), lambda: told.append(ErrorCode.none), told.append)
    await informed.close()
    assert told in ([], [ErrorCode.not_coordinator])


async def test_nobody_waits_longer_than_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """From when it came, also behind another request of its member."""
    monkeypatch.setattr(module, "LEARN_SECONDS", 0.05)
    source = MemoryTopics({"a": 1}, hangs=True)
    informed = RequestsAwaitingTopics(TopicsImage(source))
    told: list[ErrorCode] = []
    for _ in range(3):
        informed.when_known(("g", "m"), lambda: needs("a"), lambda: told.append(ErrorCode.none), told.append)
    await asyncio.sleep(0.1)
    assert told == [ErrorCode.coordinator_load_in_progress] * 3
    await informed.close()


async def test_no_more_wait_than_a_client_asks_at_once() -> None:
    informed = RequestsAwaitingTopics(TopicsImage(MemoryTopics({"a": 1}, hangs=True)))
    told: list[ErrorCode] = []
    for _ in range(QUEUE_LENGTH + 2):
        informed.when_known(("g", "m"), lambda: needs("a"), lambda: told.append(ErrorCode.none), told.append)
    assert told == [ErrorCode.coordinator_load_in_progress] * 2
    await informed.close()


async def test_who_waits_while_the_coordinator_goes_is_told_so() -> None:
    def gone() -> None:
        raise NotLeading(ErrorCode.not_coordinator)

    informed = RequestsAwaitingTopics(TopicsImage(MemoryTopics({"a": 1})))
    told: list[ErrorCode] = []
    informed.when_known(("g", "m"), lambda: needs("a"), gone, told.append)
    await asyncio.sleep(0.01)
    assert told == [ErrorCode.not_coordinator]
    await informed.close()
