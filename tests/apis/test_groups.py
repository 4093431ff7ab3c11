"""The APIs of groups, from a member's first request to the deletion of its group."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from kafka_sidecar.apis import a16_list_groups
from kafka_sidecar.coordination.term import Phase
from kafka_sidecar.model.sidecar import SidecarInfo
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message
from kafka_sidecar.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kafka_sidecar.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from kafka_sidecar.wire.messages.delete_groups import DeleteGroupsRequest
from kafka_sidecar.wire.messages.describe_groups import DescribeGroupsRequest
from kafka_sidecar.wire.messages.heartbeat import HeartbeatRequest
from kafka_sidecar.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kafka_sidecar.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafka_sidecar.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from kafka_sidecar.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafka_sidecar.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.apis.test_offsets_of_groups import committed, fetched
from tests.support.services import Sidecar, errors

NONE = ErrorCode.NONE
SUBSCRIPTION = b"\0\0" + b"\0\0\0\1\0\1t" + b"\xff\xff\xff\xff"  # to topic t


def join(member_id: str = "", *, instance: str | None = None) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        group_instance_id=instance,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)],
    )


async def member(sidecar: Sidecar) -> JoinGroupResponse:
    """One that has joined, as the leader, and has its assignment."""
    first = await sidecar.ask(join(), 9)
    assert first.error_code is ErrorCode.MEMBER_ID_REQUIRED
    joined = await sidecar.ask(join(first.member_id), 9)
    assert (joined.error_code, joined.leader, joined.protocol_name) == (NONE, joined.member_id, "range")
    assert [(one.member_id, one.metadata) for one in joined.members] == [(joined.member_id, SUBSCRIPTION)]
    parts = [SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"part")]
    sync = SyncGroupRequest(
        group_id="g", generation_id=joined.generation_id, member_id=joined.member_id, assignments=parts
    )
    synced = await sidecar.ask(sync, 5)
    assert (synced.error_code, synced.assignment, synced.protocol_name) == (NONE, b"part", "range")
    assert isinstance(joined, JoinGroupResponse)
    return joined


async def test_a_heartbeat_does_not_fail_while_the_coordinator_loads(sidecar: Sidecar) -> None:
    """As with Kafka: clients do not expect an error of that kind here, and aiokafka's member does not get over it."""
    joined = await member(sidecar)
    heartbeat = HeartbeatRequest(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id)
    term = sidecar.services.groups.coordinator.shards.of("g").term
    term.phase = Phase.LOADING
    assert (await sidecar.ask(heartbeat, 4)).error_code is NONE
    term.phase = Phase.LEADING


async def test_a_member_joins_is_alive_and_leaves(sidecar: Sidecar) -> None:
    joined = await member(sidecar)
    heartbeat = HeartbeatRequest(group_id="g", generation_id=joined.generation_id, member_id=joined.member_id)
    assert (await sidecar.ask(heartbeat, 4)).error_code is NONE
    left = await sidecar.ask(LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=joined.member_id)]), 5)
    assert (left.error_code, errors(left.members)) == (NONE, [NONE])
    assert (await sidecar.ask(heartbeat, 4)).error_code is ErrorCode.UNKNOWN_MEMBER_ID


async def test_the_oldest_clients_join_without_an_id_and_leave_alone(sidecar: Sidecar) -> None:
    joined = await sidecar.ask(join(), 0)
    assert (joined.error_code, joined.leader) == (NONE, joined.member_id)
    assert (await sidecar.ask(LeaveGroupRequest(group_id="g", member_id=joined.member_id), 0)).error_code is NONE
    assert (
        await sidecar.ask(LeaveGroupRequest(group_id="g", member_id=joined.member_id), 0)
    ).error_code is ErrorCode.UNKNOWN_MEMBER_ID


async def test_a_group_is_described_listed_and_deleted_when_nobody_is_in_it(sidecar: Sidecar) -> None:
    sidecar.admin.make("t")
    joined = await member(sidecar)
    (described,) = (await sidecar.ask(DescribeGroupsRequest(groups=["g"]), 6)).groups
    assert (described.error_code, described.group_state, described.protocol_data) == (NONE, "Stable", "range")
    assert [(one.member_id, one.client_id, one.client_host, one.member_assignment) for one in described.members] == [
        (joined.member_id, "test", "/127.0.0.1", b"part")
    ]
    for filters, found in (({}, ["g"]), ({"states_filter": ["stable"]}, ["g"]), ({"types_filter": ["consumer"]}, [])):
        listed = await sidecar.ask(ListGroupsRequest(**filters), 5)
        assert [one.group_id for one in listed.groups] == found
    (refused,) = (await sidecar.ask(DeleteGroupsRequest(groups_names=["g"]), 2)).results
    assert refused.error_code is ErrorCode.NON_EMPTY_GROUP
    await sidecar.ask(LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=joined.member_id)]), 5)
    deleted = await sidecar.ask(DeleteGroupsRequest(groups_names=["g", "nobody's"]), 2)
    assert errors(deleted.results) == [NONE, ErrorCode.GROUP_ID_NOT_FOUND]
    assert (await sidecar.ask(ListGroupsRequest(), 5)).groups == []


@pytest.mark.parametrize(("is_external", "listed"), [(False, []), (True, ["theirs"])])
async def test_groups_of_a_sidecar_that_a_client_does_not_find_are_listed_here(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch, is_external: bool, listed: list[str]
) -> None:
    """It has no address for clients of the external listener; all others ask it themselves."""
    inside = SidecarInfo("other", 2, "other:9092", "other:9000")

    async def others() -> list[SidecarInfo]:
        return [inside]

    async def ask(*of: Any) -> ListGroupsResponse:
        return ListGroupsResponse(groups=[ListedGroup(group_id="theirs")])

    monkeypatch.setattr(sidecar.services.groups.leaders, "all", others)
    monkeypatch.setattr(
        sidecar.services.groups.leaders, "is_reachable", lambda one, outside: not outside, raising=False
    )
    monkeypatch.setattr(a16_list_groups, "ask_peer", ask)
    sidecar.client.is_external = is_external
    assert [one.group_id for one in (await sidecar.ask(ListGroupsRequest(), 5)).groups] == listed


@pytest.mark.parametrize(("version", "error"), [(5, NONE), (6, ErrorCode.GROUP_ID_NOT_FOUND)])
async def test_a_group_that_is_not_there_is_dead(sidecar: Sidecar, version: int, error: ErrorCode) -> None:
    (described,) = (await sidecar.ask(DescribeGroupsRequest(groups=["none"]), version)).groups
    assert (described.error_code, described.group_state) == (error, "Dead")


async def test_offsets_are_deleted_but_for_topics_that_members_subscribe_to(sidecar: Sidecar) -> None:
    for name in ("t", "u"):
        sidecar.admin.make(name)
        assert await committed(sidecar, 7, topic=name) is NONE
    topics = [OffsetDeleteRequestTopic(name=name, partitions=[OffsetDeleteRequestPartition()]) for name in ("t", "u")]
    joined = await member(sidecar)
    deleted = await sidecar.ask(OffsetDeleteRequest(group_id="g", topics=topics), 0)
    assert [errors(one.partitions) for one in deleted.topics] == [[ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC], [NONE]]
    assert await fetched(sidecar, topics=None) == (NONE, {"t": 7})
    assert joined.member_id


async def test_a_consumer_of_the_new_protocol_joins_is_described_and_leaves(sidecar: Sidecar) -> None:
    sidecar.admin.make("t", 2)
    member_id = str(uuid.uuid4())
    joining = ConsumerGroupHeartbeatRequest(
        group_id="c",
        member_id=member_id,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    joined = await sidecar.ask(joining, 1)
    assert (joined.error_code, joined.member_id, joined.member_epoch) == (NONE, member_id, 1)
    (assigned,) = joined.assignment.topic_partitions
    assert list(assigned.partitions) == [0, 1]
    owned = TopicPartitions(topic_id=assigned.topic_id, partitions=[0, 1])
    again = ConsumerGroupHeartbeatRequest(group_id="c", member_id=member_id, member_epoch=1, topic_partitions=[owned])
    assert (await sidecar.ask(again, 1)).assignment is None, "nothing has changed"
    (described,) = (await sidecar.ask(ConsumerGroupDescribeRequest(group_ids=["c"]), 1)).groups
    assert (described.group_state, described.group_epoch, described.assignor_name) == ("Stable", 1, "uniform")
    (one,) = described.members
    assert [(part.topic_name, list(part.partitions)) for part in one.assignment.topic_partitions] == [("t", [0, 1])]
    leaving = ConsumerGroupHeartbeatRequest(group_id="c", member_id=member_id, member_epoch=-1)
    assert (await sidecar.ask(leaving, 1)).member_epoch == -1
    (empty,) = (await sidecar.ask(ConsumerGroupDescribeRequest(group_ids=["c"]), 1)).groups
    assert (empty.group_state, list(empty.members)) == ("Empty", [])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"group_id": ""}, "GroupId can't be empty."),
        ({"member_id": ""}, "MemberId can't be empty."),
        ({"instance_id": ""}, "InstanceId can't be empty."),
        ({"rack_id": ""}, "RackId can't be empty."),
        ({"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        ({"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (
            {"subscribed_topic_names": None},
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        ({"member_epoch": -2}, "InstanceId can't be null."),
        ({"member_epoch": -3}, "MemberEpoch is invalid."),
    ],
)
async def test_a_heartbeat_that_makes_no_sense_is_refused_in_kafkas_words(
    sidecar: Sidecar, changes: dict[str, object], message: str
) -> None:
    fields: dict[str, object] = {
        "group_id": "c",
        "member_id": "m",
        "rebalance_timeout_ms": 60_000,
        "subscribed_topic_names": ["t"],
        "topic_partitions": [],
    }
    refused = await sidecar.ask(ConsumerGroupHeartbeatRequest(**(fields | changes)), 1)  # type: ignore[arg-type]
    assert (refused.error_code, refused.error_message) == (ErrorCode.INVALID_REQUEST, message)


async def test_an_assignor_that_brokers_do_not_have_is_refused(sidecar: Sidecar) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id="c",
        member_id="m",
        rebalance_timeout_ms=1,
        subscribed_topic_names=["t"],
        topic_partitions=[],
        server_assignor="sticky",
    )
    assert (await sidecar.ask(request, 1)).error_code is ErrorCode.UNSUPPORTED_ASSIGNOR


ABOUT_ONE_GROUP: list[tuple[Message, int]] = [
    (join(), 9),
    (SyncGroupRequest(group_id="g"), 5),
    (HeartbeatRequest(group_id="g"), 4),
    (LeaveGroupRequest(group_id="g"), 5),
    (OffsetDeleteRequest(group_id="g"), 0),
    (ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1), 1),
]


@pytest.mark.parametrize(
    ("request_", "version"), ABOUT_ONE_GROUP, ids=[type(one).__name__ for one, _ in ABOUT_ONE_GROUP]
)
async def test_who_does_not_lead_says_so(sidecar: Sidecar, request_: Message, version: int) -> None:
    sidecar.shard.term.depose("the election chose another")
    assert (await sidecar.ask(request_, version)).error_code is ErrorCode.NOT_COORDINATOR
