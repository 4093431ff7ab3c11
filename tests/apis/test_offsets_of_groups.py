"""OffsetCommit and OffsetFetch: whose offsets they are, and of which topic."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace as Some
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from handler.apis import BY_KEY
from handler.apis.a08_offset_commit import KNOWN_SECONDS
from handler.apis.api import Call
from handler.apis.groups import settled
from handler.topics.names import TopicName
from tests.support.services import NAMESPACE, Sidecar

NAME = TopicName("public", "default", "t")


def commit(sidecar: Sidecar, offset: int, *, topic: str = "t", partition: int = 0, group: str = "g") -> Any:
    wanted = Some(partition_index=partition, committed_offset=offset, committed_leader_epoch=-1, committed_metadata="")
    return sidecar.begin(
        8, 9, group_id=group, member_id="", group_instance_id=None, generation_id_or_member_epoch=-1,
        topics=[Some(name=topic, partitions=[wanted])],
    )  # fmt: skip


async def committed(sidecar: Sidecar, offset: int, **how: Any) -> ErrorCode:
    async with asyncio.timeout(10):
        answer = await commit(sidecar, offset, **how)
    return ErrorCode(answer["topics"][0]["partitions"][0]["error_code"])


async def fetched(sidecar: Sidecar, group: str = "g", topics: Any = "t") -> tuple[ErrorCode, dict[str, int]]:
    asked = None if topics is None else [Some(name=topics, partition_indexes=[0])]
    answer = await sidecar.ask(9, 8, groups=[Some(group_id=group, member_id=None, member_epoch=-1, topics=asked)], require_stable=False)
    (found,) = answer["groups"]
    offsets = {topic["name"]: topic["partitions"][0]["committed_offset"] for topic in found["topics"]}
    return ErrorCode(found["error_code"]), offsets


async def test_what_was_committed_is_fetched(sidecar: Sidecar) -> None:
    sidecar.admin.make("t")
    assert await committed(sidecar, 7) is ErrorCode.none
    assert await fetched(sidecar) == (ErrorCode.none, {"t": 7})
    assert await fetched(sidecar, topics=None) == (ErrorCode.none, {"t": 7})


async def test_a_topic_that_is_not_there_is_refused(sidecar: Sidecar) -> None:
    sidecar.admin.make("t", 2)
    assert await committed(sidecar, 7, topic="missing") is ErrorCode.unknown_topic_or_partition
    assert await committed(sidecar, 7, partition=2) is ErrorCode.unknown_topic_or_partition
    assert await committed(sidecar, 7, partition=1) is ErrorCode.none


async def test_while_it_is_not_known_whether_a_topic_is_there_the_commit_is_taken(sidecar: Sidecar) -> None:
    sidecar.admin.away = True
    assert await committed(sidecar, 7) is ErrorCode.none
    assert await fetched(sidecar) == (ErrorCode.none, {"t": 7})


async def test_commits_of_a_topic_that_was_deleted_do_not_count_for_the_next_of_that_name(sidecar: Sidecar) -> None:
    """As when a sidecar is killed between deleting a topic and forgetting what was committed of it."""
    sidecar.admin.make("t")
    await committed(sidecar, 7)
    del sidecar.admin.topics[NAMESPACE + "t"]
    sidecar.skew += KNOWN_SECONDS
    assert await fetched(sidecar) == (ErrorCode.none, {"t": 7}), "as in Kafka, while there is none"
    sidecar.admin.make("t")
    assert await fetched(sidecar) == (ErrorCode.none, {"t": -1})
    assert await fetched(sidecar, topics=None) == (ErrorCode.none, {})
    assert await committed(sidecar, 3) is ErrorCode.none
    assert await fetched(sidecar) == (ErrorCode.none, {"t": 3})


async def test_offsets_are_not_told_before_it_is_known_of_which_topic_they_are(sidecar: Sidecar) -> None:
    sidecar.admin.make("t")
    await committed(sidecar, 7)
    sidecar.skew += KNOWN_SECONDS
    sidecar.admin.away = True
    assert await fetched(sidecar) == (ErrorCode.none, {"t": 7}), "it is remembered"
    sidecar.catalog.forget(NAME)  # as after a restart
    assert (await fetched(sidecar))[0] is ErrorCode.coordinator_load_in_progress


async def test_a_topic_that_has_lost_a_partition_does_not_hold_up_the_offsets_of_others(sidecar: Sidecar) -> None:
    for name in ("t", "half"):
        sidecar.admin.make(name)
        await committed(sidecar, 7, topic=name)
        sidecar.catalog.forget(TopicName("public", "default", name))
    sidecar.admin.lost_partition.add(NAMESPACE + "half")
    assert await fetched(sidecar, topics=None) == (ErrorCode.none, {"t": 7, "half": 7})


async def test_a_commit_that_waits_for_its_topic_is_not_overtaken_by_a_later_one(sidecar: Sidecar) -> None:
    sidecar.admin.make("t")
    sidecar.admin.make("u")
    await sidecar.catalog.find(TopicName("public", "default", "u"))
    sidecar.admin.hold = asyncio.Event()
    first = asyncio.ensure_future(commit(sidecar, 1))
    await asyncio.sleep(0.01)
    later = [asyncio.ensure_future(commit(sidecar, 2)), asyncio.ensure_future(commit(sidecar, 5, topic="u"))]
    leaving = asyncio.ensure_future(sidecar.begin(13, 5, group_id="g", members=[Some(member_id="m", group_instance_id=None)]))
    await asyncio.sleep(0.01)
    assert not any(task.done() for task in (first, *later, leaving))
    assert (await committed(sidecar, 9, topic="u", group="other")) is ErrorCode.none, "other groups do not wait"
    sidecar.admin.hold.set()
    await asyncio.gather(first, *later, leaving)
    assert await fetched(sidecar, topics=None) == (ErrorCode.none, {"t": 2, "u": 5})


async def test_a_commit_that_needs_no_look_does_not_overtake_one_of_the_same_read_that_does(sidecar: Sidecar) -> None:
    for name in ("a", "b"):
        sidecar.admin.make(name)
    await sidecar.catalog.find(TopicName("public", "default", "b"))

    def both(offset: int, *names: str) -> Any:
        wanted = [
            Some(name=name, partitions=[Some(partition_index=0, committed_offset=offset, committed_leader_epoch=-1, committed_metadata="")])
            for name in names
        ]
        return BY_KEY[8].handle(
            sidecar.services,
            Call(
                8, 9,
                Some(group_id="g", member_id="", group_instance_id=None, generation_id_or_member_epoch=-1, topics=wanted),
                "test", sidecar.client, memoryview(b""),
            ),
        )  # fmt: skip

    # As a connection does it: both are begun before either goes on.
    answers = [both(10, "a", "b"), both(20, "b")]
    for answer in answers:
        await settled(answer)
    assert await fetched(sidecar, topics=None) == (ErrorCode.none, {"a": 10, "b": 20})


async def test_topics_that_are_known_cost_a_commit_no_question(sidecar: Sidecar) -> None:
    sidecar.admin.make("t")
    await committed(sidecar, 1)
    calls = sidecar.admin.calls
    for offset in range(2, 10):
        await committed(sidecar, offset)
    assert sidecar.admin.calls == calls


@pytest.mark.parametrize("again", [False, True])
async def test_a_deleted_topic_takes_its_commits_with_it_and_not_those_of_its_successor(sidecar: Sidecar, again: bool) -> None:
    sidecar.admin.make("t")
    await committed(sidecar, 7)
    old = (await sidecar.catalog.find(NAME)).topic_id
    if again:
        sidecar.catalog.gone(NAME)
        sidecar.admin.make("t")
        await committed(sidecar, 8)
    sidecar.services.groups.coordinator.forget_topics({"t": old})
    await asyncio.sleep(0.01)
    assert (await fetched(sidecar))[1] == {"t": 8 if again else -1}
