"""What is known of topics: looked up before it is needed, kept fresh, and not believed to be gone at the first word."""

from __future__ import annotations

import asyncio

import pytest
from kio.schema.errors import ErrorCode

from handler.groups.consumer.members import InvalidRegex
from handler.groups.topics import Informed, Needs, TopicBook
from handler.pulsar.errors import Unavailable
from tests.support.memory_topics import MemoryTopics


def needs(*names: str, regexes: tuple[str, ...] = ()) -> Needs:
    return Needs(frozenset(names), frozenset(regexes))


async def test_topics_are_known_once_they_were_looked_up_also_those_that_are_not_there() -> None:
    source = MemoryTopics({"a": 3})
    book = TopicBook(source)
    assert not book.knows(needs("a", "b"))
    await book.learn(needs("a", "b"))
    assert book.knows(needs("a", "b"))
    assert book.get("a") == (source.topic_id("a"), 3)
    assert book.get("b") is None
    assert book.name_of(source.topic_id("a")) == "a"
    await book.learn(needs("a", "b"))
    assert source.asked == ["a", "b"] or source.asked == ["b", "a"]


async def test_a_regular_expression_matches_whole_names_and_what_it_matches_is_known() -> None:
    source = MemoryTopics({"log-1": 1, "log-2": 2, "other-log-1": 1})
    book = TopicBook(source)
    await book.learn(needs(regexes=("log-.*",)))
    assert book.matching("log-.*") == {"log-1", "log-2"}
    assert book.get("log-2") == (source.topic_id("log-2"), 2)


@pytest.mark.parametrize("regex", ["(", "a(?=b)", r"(a)\1"])
def test_what_re2_can_not_read_is_refused(regex: str) -> None:
    with pytest.raises(InvalidRegex):
        TopicBook(MemoryTopics()).matching(regex)


async def test_a_topic_is_gone_when_that_is_said_twice() -> None:
    source = MemoryTopics({"a": 3})
    book = TopicBook(source)
    await book.learn(needs("a"))
    del source.partitions["a"]
    await book.refresh(needs("a"))
    assert book.get("a") is not None
    await book.refresh(needs("a"))
    assert book.get("a") is None


async def test_a_topic_that_was_doubtful_and_is_there_again_was_never_gone() -> None:
    source = MemoryTopics({"a": 3})
    book = TopicBook(source)
    for _ in range(3):
        source.partitions = {"a": 3}
        await book.refresh(needs("a"))
        source.partitions = {}
        await book.refresh(needs("a"))
        assert book.get("a") is not None


async def test_a_topic_that_was_made_again_has_another_id_when_that_is_said_twice() -> None:
    source = MemoryTopics({"a": 3})
    book = TopicBook(source)
    await book.learn(needs("a"))
    before = source.topic_id("a")
    source.generation["a"] = 1
    await book.refresh(needs("a"))
    assert book.name_of(before) == "a"
    await book.refresh(needs("a"))
    assert book.name_of(before) is None
    assert book.get("a") == (source.topic_id("a"), 3)


async def test_partitions_come_at_once_and_never_go() -> None:
    source = MemoryTopics({"a": 3})
    book = TopicBook(source)
    for there, known in ((3, 3), (5, 5), (4, 5), (4, 5)):
        source.partitions["a"] = there
        await book.refresh(needs("a"))
        topic = book.get("a")
        assert topic is not None
        assert topic.partitions == known


async def test_while_pulsar_is_away_what_is_known_stays() -> None:
    source = MemoryTopics({"a": 3})
    book = TopicBook(source)
    await book.learn(needs("a", regexes=("a+",)))
    source.unavailable = True
    with pytest.raises(Unavailable):
        await book.refresh(needs("a", regexes=("a+",)))
    assert book.get("a") == (source.topic_id("a"), 3)
    assert book.matching("a+") == {"a"}


async def test_what_nobody_needs_is_forgotten() -> None:
    book = TopicBook(MemoryTopics({"a": 1, "b": 1}))
    await book.learn(needs("a", "b", regexes=("a|b", "b")))
    await book.refresh(needs(regexes=("b",)))
    assert not book.knows(needs("a"))
    assert not book.knows(needs(regexes=("a|b",)))
    assert book.knows(needs("b", regexes=("b",)))


async def test_calls_wait_for_topics_and_keep_their_order() -> None:
    source = MemoryTopics({"a": 1})
    informed = Informed(TopicBook(source))
    done: list[str] = []
    informed.when_known("g", lambda: needs("a"), lambda: done.append("first"), lambda error: done.append(error.name))
    informed.when_known("g", needs, lambda: done.append("second"), lambda error: done.append(error.name))
    informed.when_known("other", needs, lambda: done.append("another group's"), lambda error: done.append(error.name))
    assert done == ["another group's"]
    await asyncio.sleep(0.01)
    assert done == ["another group's", "first", "second"]
    informed.when_known("g", lambda: needs("a"), lambda: done.append("third"), lambda error: done.append(error.name))
    assert done[-1] == "third"
    await informed.close()


async def test_who_can_not_be_told_of_topics_is_told_to_ask_again() -> None:
    source = MemoryTopics({"a": 1}, unavailable=True)
    informed = Informed(TopicBook(source))
    told: list[ErrorCode] = []
    informed.when_known("g", lambda: needs("a"), lambda: told.append(ErrorCode.none), told.append)
    informed.when_known("g", needs, lambda: told.append(ErrorCode.none), told.append)
    await asyncio.sleep(0.01)
    assert told == [ErrorCode.coordinator_load_in_progress, ErrorCode.none]
    await informed.close()


async def test_who_waits_when_the_sidecar_stops_is_sent_away() -> None:
    informed = Informed(TopicBook(MemoryTopics({"a": 1})))
    told: list[ErrorCode] = []
    informed.when_known("g", lambda: needs("a"), lambda: told.append(ErrorCode.none), told.append)
    await informed.close()
    assert told in ([], [ErrorCode.not_coordinator])
