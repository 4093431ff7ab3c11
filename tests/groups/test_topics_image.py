"""What is known of topics: looked up before it is needed, kept fresh, and not believed to be gone at the first word."""

from __future__ import annotations

import pytest

from kafka_sidecar.groups.consumer.members import InvalidRegex, RequiredTopics
from kafka_sidecar.pulsar.errors import Unavailable, Undescribed
from tests.support.memory_topics import MemoryTopics, image_of


def required_topics(*names: str, regexes: tuple[str, ...] = ()) -> RequiredTopics:
    return RequiredTopics(frozenset(names), frozenset(regexes))


async def test_topics_are_known_once_they_were_looked_up_also_those_that_are_not_there() -> None:
    source = MemoryTopics({"a": 3})
    book = image_of(source)
    assert not book.knows(required_topics("a", "b"))
    await book.learn(required_topics("a", "b"))
    assert book.knows(required_topics("a", "b"))
    assert book.get("a") == (source.topic_id("a"), 3)
    assert book.get("b") is None
    assert book.name_of(source.topic_id("a")) == "a"
    await book.learn(required_topics("a", "b"))
    assert source.asked == ["a", "b"] or source.asked == ["b", "a"]


async def test_a_regular_expression_matches_whole_names_and_what_it_matches_is_known() -> None:
    source = MemoryTopics({"log-1": 1, "log-2": 2, "other-log-1": 1})
    book = image_of(source)
    await book.learn(required_topics(regexes=("log-.*",)))
    assert book.matching("log-.*") == {"log-1", "log-2"}
    assert book.get("log-2") == (source.topic_id("log-2"), 2)


@pytest.mark.parametrize("regex", ["(", "a(?=b)", r"(a)\1"])
def test_what_re2_can_not_read_is_refused(regex: str) -> None:
    with pytest.raises(InvalidRegex):
        image_of(MemoryTopics()).matching(regex)


async def test_a_topic_is_gone_when_that_is_said_twice() -> None:
    source = MemoryTopics({"a": 3})
    book = image_of(source)
    await book.learn(required_topics("a"))
    del source.partitions["a"]
    await book.refresh(lambda: required_topics("a"))
    assert book.get("a") is not None
    await book.refresh(lambda: required_topics("a"))
    assert book.get("a") is None


async def test_a_topic_that_was_doubtful_and_is_there_again_was_never_gone() -> None:
    source = MemoryTopics({"a": 3})
    book = image_of(source)
    for _ in range(3):
        source.partitions = {"a": 3}
        await book.refresh(lambda: required_topics("a"))
        source.partitions = {}
        await book.refresh(lambda: required_topics("a"))
        assert book.get("a") is not None


async def test_a_topic_that_was_made_again_has_another_id_when_that_is_said_twice() -> None:
    source = MemoryTopics({"a": 3})
    book = image_of(source)
    await book.learn(required_topics("a"))
    before = source.topic_id("a")
    source.generation["a"] = 1
    await book.refresh(lambda: required_topics("a"))
    assert book.name_of(before) == "a"
    await book.refresh(lambda: required_topics("a"))
    assert book.name_of(before) is None
    assert book.get("a") == (source.topic_id("a"), 3)


async def test_partitions_come_at_once_and_never_go() -> None:
    source = MemoryTopics({"a": 3})
    book = image_of(source)
    for there, known in ((3, 3), (5, 5), (4, 5), (4, 5)):
        source.partitions["a"] = there
        await book.refresh(lambda: required_topics("a"))
        topic = book.get("a")
        assert topic is not None
        assert topic.partitions == known


async def test_while_pulsar_is_away_what_is_known_stays() -> None:
    source = MemoryTopics({"a": 3})
    book = image_of(source)
    await book.learn(required_topics("a", regexes=("a+",)))
    source.unavailable = True
    with pytest.raises(Unavailable):
        await book.refresh(lambda: required_topics("a", regexes=("a+",)))
    assert book.get("a") == (source.topic_id("a"), 3)
    assert book.matching("a+") == {"a"}


async def test_what_nobody_needs_is_forgotten() -> None:
    book = image_of(MemoryTopics({"a": 1, "b": 1}))
    await book.learn(required_topics("a", "b", regexes=("a|b", "b")))
    await book.refresh(lambda: required_topics(regexes=("b",)))
    assert not book.knows(required_topics("a"))
    assert not book.knows(required_topics(regexes=("a|b",)))
    assert book.knows(required_topics("b", regexes=("b",)))


async def test_one_topic_that_can_not_be_looked_up_does_not_hold_up_the_others() -> None:
    source = MemoryTopics({f"t{number:02}": 1 for number in range(30)})
    book = image_of(source)
    wanted = required_topics(*source.partitions)
    await book.learn(wanted)
    source.partitions["t29"] = 3
    source.broken.add("t03")
    with pytest.raises(Unavailable):
        await book.refresh(lambda: wanted)
    grown = book.get("t29")
    assert grown is not None
    assert grown.partitions == 3


async def test_what_was_looked_up_is_kept_when_something_else_fails() -> None:
    source = MemoryTopics({"a": 1, "b": 1}, broken={"b"})
    book = image_of(source)
    with pytest.raises(Unavailable):
        await book.learn(required_topics("a", "b"))
    assert book.knows(required_topics("a"))
    assert not book.knows(required_topics("b"))


async def test_a_topic_that_may_not_be_seen_is_not_there() -> None:
    book = image_of(MemoryTopics({"a": 1}, forbidden={"a"}))
    await book.learn(required_topics("a"))
    assert book.knows(required_topics("a"))
    assert book.get("a") is None


async def test_a_regular_expression_is_known_with_the_topics_that_it_matches() -> None:
    source = MemoryTopics({"a": 1}, broken={"a"})
    book = image_of(source)
    with pytest.raises(Unavailable):
        await book.learn(required_topics(regexes=("a",)))
    assert not book.knows(required_topics(regexes=("a",)))
    source.broken.clear()
    await book.learn(required_topics(regexes=("a",)))
    assert book.knows(required_topics(regexes=("a",)))


async def test_who_comes_while_topics_are_listed_is_not_forgotten() -> None:
    source = MemoryTopics({"a": 1, "b": 1})
    book = image_of(source)
    await book.learn(required_topics(regexes=("a",)))
    wanted = [required_topics(regexes=("a",))]

    async def comes(namespace: str) -> dict[str, str]:
        await book.learn(required_topics("b"))
        wanted.append(required_topics("b", regexes=("a",)))
        return {"a": "a", "b": "b"}

    source.listed = comes  # type: ignore[method-assign]
    await book.refresh(lambda: wanted[-1])
    assert book.knows(required_topics("b"))


async def test_the_version_is_another_one_when_something_has_changed() -> None:
    source = MemoryTopics({"a": 1})
    book = image_of(source)
    versions = [book.version]
    await book.learn(required_topics("a"))
    versions.append(book.version)
    source.partitions["a"] = 2
    await book.refresh(lambda: required_topics("a"))
    versions.append(book.version)
    await book.refresh(lambda: required_topics())
    versions.append(book.version)
    assert len(set(versions)) == 4


async def test_a_topic_that_is_lost_is_not_waited_for() -> None:
    source = MemoryTopics({"a": 3, "b": 2}, undescribed={"b"})
    book, wanted = image_of(source), required_topics("a", "b")
    with pytest.raises(Undescribed):
        await book.learn(wanted)
    source.lost.add("b")
    await book.learn(wanted)
    assert book.knows(wanted)
    assert (book.get("a"), book.get("b")) == ((source.topic_id("a"), 3), None)
    source.undescribed.clear()
    for _ in range(2):  # that it is not what was known is believed at the second time
        await book.refresh(lambda: wanted)
    assert book.get("b") == (source.topic_id("b"), 2)


async def test_one_that_is_known_and_loses_its_first_partition_stays_as_it_was() -> None:
    source = MemoryTopics({"a": 3})
    book = image_of(source)
    await book.learn(required_topics("a"))
    source.undescribed.add("a")
    source.lost.add("a")
    with pytest.raises(Undescribed):
        await book.refresh(lambda: required_topics("a"))
    assert book.get("a") == (source.topic_id("a"), 3)
