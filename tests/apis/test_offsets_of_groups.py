"""OffsetCommit and OffsetFetch: whose offsets they are, and of which topic."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from typing import Any

import pytest

from kafka_sidecar.apis.a08_offset_commit import KNOWN_SECONDS
from kafka_sidecar.apis.common import topics as topics_of_requests
from kafka_sidecar.groups.records import OffsetCommitValue
from kafka_sidecar.pulsar.admin import DescribedTopic
from kafka_sidecar.topics import lost_topics
from kafka_sidecar.topics.failed_looks import PASSING_SECONDS
from kafka_sidecar.topics.names import TopicName
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.delete_groups import DeleteGroupsRequest
from kafka_sidecar.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafka_sidecar.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_sidecar.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.support.services import NAMESPACE, Sidecar, errors

NAME = TopicName("public", "default", "t")


def commit(sidecar: Sidecar, offset: int, *, topic: str = "t", partition: int = 0, group: str = "g") -> Any:
    return commit_all(sidecar, {topic: offset}, partition=partition, group=group)


def commit_all(sidecar: Sidecar, offsets: dict[str, int], *, partition: int = 0, group: str = "g") -> Any:
    topics = [
        OffsetCommitRequestTopic(
            name=name, partitions=[OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)]
        )
        for name, offset in offsets.items()
    ]
    return sidecar.begin(OffsetCommitRequest(group_id=group, topics=topics), 9)


async def committed(sidecar: Sidecar, offset: int, **how: Any) -> ErrorCode:
    async with asyncio.timeout(10):
        answer = await commit(sidecar, offset, **how)
    (error,) = errors(answer.topics[0].partitions)
    return error


async def fetched(sidecar: Sidecar, group: str = "g", topics: Any = "t") -> tuple[ErrorCode, dict[str, int]]:
    wanted = None if topics is None else [OffsetFetchRequestTopics(name=topics, partition_indexes=[0])]
    answer = await sidecar.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=wanted)]), 8)
    (found,) = answer.groups
    return found.error_code, {topic.name: topic.partitions[0].committed_offset for topic in found.topics}


async def test_what_was_committed_is_fetched(sidecar: Sidecar) -> None:
    sidecar.admin.make("t")
    assert await committed(sidecar, 7) is ErrorCode.NONE
    assert await fetched(sidecar) == (ErrorCode.NONE, {"t": 7})
    assert await fetched(sidecar, topics=None) == (ErrorCode.NONE, {"t": 7})


async def test_a_topic_that_is_not_there_is_refused(sidecar: Sidecar) -> None:
    sidecar.admin.make("t", 2)
    assert await committed(sidecar, 7, topic="missing") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await committed(sidecar, 7, partition=2) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert await committed(sidecar, 7, partition=1) is ErrorCode.NONE


async def test_a_commit_is_refused_for_a_moment_where_pulsar_can_not_say_which_topic_it_is_about(
    sidecar: Sidecar,
) -> None:
    """Without the topic's id the offset would count for the next topic of that name, which a simulation has found."""
    sidecar.admin.make("t")
    sidecar.admin.away = True
    assert await committed(sidecar, 7) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    sidecar.admin.away = False
    del sidecar.admin.there[NAMESPACE + "t"]  # a sidecar that this one does not hear of deletes it
    sidecar.admin.make("t")
    assert await fetched(sidecar) == (ErrorCode.NONE, {"t": -1})
    assert await committed(sidecar, 3) is ErrorCode.NONE
    sidecar.skew += KNOWN_SECONDS
    sidecar.admin.away = True
    assert await committed(sidecar, 4) is ErrorCode.NONE, "it is remembered"


@pytest.mark.parametrize("why", ["away", "lost", "hangs"])
async def test_a_commit_is_taken_without_an_id_where_pulsar_has_not_described_its_topic_for_long(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch, why: str
) -> None:
    monkeypatch.setattr(topics_of_requests, "LEARN_SECONDS", 0.05)
    sidecar.admin.make("t")
    sidecar.admin.away = why == "away"
    sidecar.admin.hold = asyncio.Event() if why == "hangs" else None
    if why == "lost":
        sidecar.admin.lost_partition.add(NAMESPACE + "t")
    assert await committed(sidecar, 7) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    sidecar.skew += PASSING_SECONDS
    assert await committed(sidecar, 7) is ErrorCode.NONE
    sidecar.skew += 24 * 3600
    assert await committed(sidecar, 8) is ErrorCode.NONE, "a group that commits once a day is not refused each time"
    if sidecar.admin.hold is not None:
        sidecar.admin.hold.set()


async def test_an_offset_that_stands_under_another_topics_short_name_is_found_by_its_id(sidecar: Sidecar) -> None:
    """Releases before 0.3.0 stored it so, for a client of a sidecar with another namespace."""
    sidecar.admin.make("t")
    sidecar.admin.make("persistent://public/team/t")
    theirs = await sidecar.catalog.find(TopicName("public", "team", "t"))
    sidecar.shard.offsets["g"] = {("t", 0): OffsetCommitValue(7, -1, "", 0, -1, theirs.topic_id)}
    sidecar.shard.groups["g"] = sidecar.shard.new_group("g")
    assert await fetched(sidecar, topics="public/team/t") == (ErrorCode.NONE, {"public/team/t": 7})
    assert await fetched(sidecar) == (ErrorCode.NONE, {"t": -1})
    assert await fetched(sidecar, topics=None) == (ErrorCode.NONE, {"persistent://public/team/t": 7})
    assert await committed(sidecar, 9, topic="public/team/t") is ErrorCode.NONE
    assert await fetched(sidecar, topics="public/team/t") == (ErrorCode.NONE, {"public/team/t": 9})
    assert await fetched(sidecar, topics=None) == (ErrorCode.NONE, {"persistent://public/team/t": 9})


async def test_commits_of_a_topic_that_was_deleted_do_not_count_for_the_next_of_that_name(sidecar: Sidecar) -> None:
    """As when a sidecar is killed between deleting a topic and forgetting what was committed of it."""
    sidecar.admin.make("t")
    await committed(sidecar, 7)
    del sidecar.admin.there[NAMESPACE + "t"]
    sidecar.skew += KNOWN_SECONDS
    assert await fetched(sidecar) == (ErrorCode.NONE, {"t": 7}), "as in Kafka, while there is none"
    sidecar.admin.make("t")
    assert await fetched(sidecar) == (ErrorCode.NONE, {"t": -1})
    assert await fetched(sidecar, topics=None) == (ErrorCode.NONE, {})
    assert await committed(sidecar, 3) is ErrorCode.NONE
    assert await fetched(sidecar) == (ErrorCode.NONE, {"t": 3})


async def test_offsets_are_not_told_before_it_is_known_of_which_topic_they_are(sidecar: Sidecar) -> None:
    sidecar.admin.make("t")
    await committed(sidecar, 7)
    sidecar.skew += KNOWN_SECONDS
    sidecar.admin.away = True
    assert await fetched(sidecar) == (ErrorCode.NONE, {"t": 7}), "it is remembered"
    sidecar.catalog.forget(NAME)  # as after a restart
    assert (await fetched(sidecar))[0] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


async def test_a_topic_that_has_lost_a_partition_holds_up_the_offsets_of_others_for_half_a_minute_at_most(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lost_topics, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(lost_topics, "ROUND_SECONDS", 0.01)
    ids = set()
    for name in ("t", "half"):
        sidecar.admin.make(name)
        await committed(sidecar, 7, topic=name)
        ids.add((await sidecar.catalog.find(TopicName("public", "default", name))).topic_id)
        sidecar.catalog.forget(TopicName("public", "default", name))
    sidecar.admin.lost_partition.add(NAMESPACE + "half")
    assert (await fetched(sidecar, topics=None))[0] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, (
        "it may be described in a moment"
    )
    for _ in range(4):  # nobody asks meanwhile
        await asyncio.sleep(0.05)
        sidecar.skew += 10
    assert await fetched(sidecar, topics=None) == (ErrorCode.NONE, {"t": 7, "half": 7})
    by_id = await sidecar.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)]), 10)
    (found,) = by_id.groups
    assert (found.error_code, {topic.topic_id for topic in found.topics}) == (ErrorCode.NONE, ids)


async def test_an_offset_of_a_topic_that_was_deleted_is_not_told_while_the_next_one_can_not_be_described(
    sidecar: Sidecar,
) -> None:
    sidecar.admin.make("t")
    await committed(sidecar, 7)
    sidecar.admin.make("t")
    sidecar.catalog.forget(NAME)
    sidecar.admin.lost_partition.add(NAME.pulsar)
    assert (await fetched(sidecar))[0] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    sidecar.admin.lost_partition.clear()
    assert (await fetched(sidecar))[1] == {"t": -1}


async def test_a_commit_that_waits_for_its_topic_is_not_overtaken_by_a_later_one(sidecar: Sidecar) -> None:
    sidecar.admin.make("t")
    sidecar.admin.make("u")
    await sidecar.catalog.find(TopicName("public", "default", "u"))
    sidecar.admin.hold = asyncio.Event()
    first = asyncio.ensure_future(commit(sidecar, 1))
    await asyncio.sleep(0.01)
    later = [asyncio.ensure_future(commit(sidecar, 2)), asyncio.ensure_future(commit(sidecar, 5, topic="u"))]
    leaving = asyncio.ensure_future(
        sidecar.begin(LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")]), 5)
    )
    await asyncio.sleep(0.01)
    assert not any(task.done() for task in (first, *later, leaving))
    assert (await committed(sidecar, 9, topic="u", group="other")) is ErrorCode.NONE, "other groups do not wait"
    sidecar.admin.hold.set()
    await asyncio.gather(first, *later, leaving)
    assert await fetched(sidecar, topics=None) == (ErrorCode.NONE, {"t": 2, "u": 5})


async def test_a_commit_that_needs_no_look_does_not_overtake_one_of_the_same_read_that_does(sidecar: Sidecar) -> None:
    for name in ("a", "b"):
        sidecar.admin.make(name)
    await sidecar.catalog.find(TopicName("public", "default", "b"))

    # As of one read of a connection: both are begun before either goes on.
    await asyncio.gather(commit_all(sidecar, {"a": 10, "b": 10}), commit_all(sidecar, {"b": 20}))
    assert await fetched(sidecar, topics=None) == (ErrorCode.NONE, {"a": 10, "b": 20})


async def test_topics_that_are_known_cost_a_commit_no_question(sidecar: Sidecar) -> None:
    sidecar.admin.make("t")
    await committed(sidecar, 1)
    calls = sidecar.admin.calls
    for offset in range(2, 10):
        await committed(sidecar, offset)
    assert sidecar.admin.calls == calls


async def test_the_mirror_hears_which_partitions_a_deleted_group_had_committed(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, Sequence[str]]] = []
    monkeypatch.setattr(sidecar.services.mirror, "deleted", lambda *deletion: told.append(deletion))
    sidecar.admin.make("t", 2)
    for partition in range(2):
        await committed(sidecar, 7, partition=partition)
    answer = await sidecar.ask(DeleteGroupsRequest(groups_names=["g", "nobody's"]), 2)
    assert [one.error_code for one in answer.results] == [ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND]
    assert told == [("g", [NAME.partition(0), NAME.partition(1)])]


@pytest.mark.parametrize("again", [False, True])
async def test_a_deleted_topic_takes_its_commits_with_it_and_not_those_of_its_successor(
    sidecar: Sidecar, again: bool
) -> None:
    sidecar.admin.make("t")
    await committed(sidecar, 7)
    old = (await sidecar.catalog.find(NAME)).topic_id
    if again:
        sidecar.catalog.gone(NAME)
        sidecar.admin.make("t")
        await committed(sidecar, 8)
    sidecar.services.groups.coordinator.forget_topics({"t": old})
    await sidecar.services.groups.coordinator.forget_offsets({"t": old})
    await asyncio.sleep(0.01)
    assert (await fetched(sidecar))[1] == {"t": 8 if again else -1}


@pytest.mark.parametrize("version", [1, 5, 7])
async def test_where_nothing_is_committed_the_metadata_is_empty_and_not_null(sidecar: Sidecar, version: int) -> None:
    sidecar.admin.make("t")
    request = OffsetFetchRequest(group_id="g", topics=[OffsetFetchRequestTopic(name="t", partition_indexes=[0])])
    (found,) = (await sidecar.ask(request, version)).topics[0].partitions
    assert (found.committed_offset, found.metadata) == (-1, "")


async def test_an_id_that_nobody_has_asked_about_yet_is_looked_up_for_offsets(sidecar: Sidecar) -> None:
    """As on a coordinator that has just been started: Java takes UNKNOWN_TOPIC_ID for final."""
    sidecar.admin.make("t")
    await committed(sidecar, 7)
    topic_id = (await sidecar.catalog.find(NAME)).topic_id

    async def by_id(wanted: uuid.UUID) -> tuple[ErrorCode, list[tuple[ErrorCode, int]]]:
        topics = [OffsetFetchRequestTopics(topic_id=wanted, partition_indexes=[0])]
        answer = await sidecar.ask(
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)]), 10
        )
        (group,) = answer.groups
        return group.error_code, [
            (one.error_code, one.committed_offset) for topic in group.topics for one in topic.partitions
        ]

    sidecar.catalog.forget(NAME)
    sidecar.admin.away = True
    assert await by_id(topic_id) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [])
    sidecar.admin.away = False
    assert await by_id(topic_id) == (ErrorCode.NONE, [(ErrorCode.NONE, 7)])
    assert await by_id(uuid.uuid4()) == (ErrorCode.NONE, [(ErrorCode.UNKNOWN_TOPIC_ID, -1)])


async def test_a_look_at_a_topic_that_was_deleted_meanwhile_does_not_bring_it_back(sidecar: Sidecar) -> None:
    sidecar.admin.make("t")
    old = (await sidecar.catalog.find(NAME)).topic_id
    describe, may_answer = sidecar.admin.describe, asyncio.Event()

    async def slow(topic: str) -> DescribedTopic:
        found = await describe(topic)
        await may_answer.wait()
        return found

    sidecar.admin.describe = slow  # type: ignore[method-assign]
    looking = asyncio.ensure_future(sidecar.catalog.find(NAME, fresh=True))
    await asyncio.sleep(0.01)
    sidecar.catalog.gone(NAME)
    sidecar.admin.make("t")
    may_answer.set()
    assert (await looking).topic_id != old
