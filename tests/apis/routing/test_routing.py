"""Requests about groups that another sidecar coordinates: passed on, asked for in parts, and put together again."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar, cast

import pytest

from kafka_sidecar.apis.state.promise import settled
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.fleet.peers import PeerUnavailable
from kafka_sidecar.groups.classic.machine import ClassicGroup
from kafka_sidecar.groups.classic.members import Member
from kafka_sidecar.groups.records.subscription import read_parts, subscribed_topics, write_parts
from kafka_sidecar.groups.vocabulary import CONSUMER_PROTOCOL
from kafka_sidecar.model.sidecar import SidecarInfo
from kafka_sidecar.server.dispatch import Dispatcher
from kafka_sidecar.topics.names import TopicName
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.headers import response_header
from kafka_sidecar.wire.message import Message
from kafka_sidecar.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kafka_sidecar.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafka_sidecar.wire.messages.delete_topics import DeleteTopicsRequest
from kafka_sidecar.wire.messages.describe_groups import (
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafka_sidecar.wire.messages.fetch import FetchRequest
from kafka_sidecar.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafka_sidecar.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kafka_sidecar.wire.messages.metadata import MetadataRequest
from kafka_sidecar.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafka_sidecar.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from kafka_sidecar.wire.messages.produce import ProduceRequest
from kafka_sidecar.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from kafka_sidecar.wire.primitives import text
from tests.support.services import Sidecar

THERE = SidecarInfo("other", 2, "", "other:9000")
M = TypeVar("M", bound=Message)


class Pair:
    """Two sidecars. Groups whose names begin with `there` are the second one's."""

    def __init__(self, namespace_there: str = "public/default") -> None:
        self.here, self.there = Sidecar(), Sidecar(namespace=namespace_there)
        self.namespace_there = namespace_there
        self.passed_on: list[int] = []
        self.away = False
        self.all_are_new = True  # no sidecar of 0.2 is there
        for one in (self.here, self.there):
            one.admin.make("t")
        services = replace(self.here.services, groups=cast(Any, self), peers=cast(Any, self))
        clock = asyncio.get_running_loop().time
        self._dispatch = Dispatcher(clock)
        self.here.client.services = services

    # --- where groups are

    @property
    def coordinator(self) -> Any:
        return self.here.services.groups.coordinator

    @property
    def leaders(self) -> Pair:
        return self

    def ensure_candidate(self) -> None:
        pass

    def is_here(self, group_id: str) -> bool:
        return group_id.startswith("here")

    def is_loading(self, group_id: str) -> bool:
        return self.here.services.groups.leaders.is_loading(group_id)

    async def loaded(self, group_id: str, until: float | None) -> None:
        await self.here.services.groups.leaders.loaded(group_id, until)

    @property
    def are_shared(self) -> bool:
        return self.namespace_there != self.here.catalog.names.default_namespace and self.all_are_new

    async def know_whether_they_are_shared(self) -> bool:
        return self.are_shared

    async def leader(self, group_id: str) -> SidecarInfo | None:
        if group_id == "elected":
            return None
        if group_id.startswith("nowhere"):
            raise CoordinatorError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return THERE._replace(namespace=self.namespace_there)

    async def forward(self, address: str, name: str, frame: bytes, peer: str, load_wait_ms: int) -> bytes:
        assert (address, name) == (THERE.control, THERE.name)
        self.passed_on.append(struct.unpack_from(">h", frame)[0])
        if self.away:
            raise PeerUnavailable("no answer")
        handled = self._dispatch(
            self.there.client, memoryview(frame), forwarded=True, load_wait_seconds=load_wait_ms / 1000
        )
        answer = await settled(handled.answer)
        assert isinstance(answer, Message)
        return b"".join(handled.encode(answer))[4:]

    def pass_on(self, request: Message, version: int) -> None:
        """Whatever it is: as a sidecar that is broken, or somebody else at the control port."""
        frame = bytearray(
            struct.pack(">hhih", request.KEY, version, 77, 4) + b"test" + b"\0" * request.is_flexible(version)
        )
        request.write(version, frame)
        self._dispatch(self.there.client, memoryview(bytes(frame)), forwarded=True)

    # --- a client

    async def ask(self, request: Message, version: int, response: type[M]) -> M:
        """Over all that a request goes through, as bytes."""
        header = struct.pack(">hhih", request.KEY, version, 77, 4) + b"test" + b"\0" * request.is_flexible(version)
        frame = bytearray(header)
        request.write(version, frame)
        handled = self._dispatch(self.here.client, memoryview(bytes(frame)))
        async with asyncio.timeout(5):
            answer = await settled(handled.answer)
        assert isinstance(answer, Message | bytes)
        whole = b"".join(handled.encode(answer))
        head = response_header(response, version, 77)
        assert whole[4 : 4 + len(head)] == head, "the client's own correlation id"
        return response.read(version, memoryview(whole)[4 + len(head) :])


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    one = Pair()
    for sidecar in (one.here, one.there):
        await sidecar.lead()
    yield one
    for sidecar in (one.here, one.there):
        await sidecar.close()


async def commit(pair: Pair, group: str, offset: int, topic: str = "t") -> ErrorCode:
    partition = OffsetCommitRequestPartition(committed_offset=offset)
    request = OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])])
    answer = await pair.ask(request, 9, OffsetCommitResponse)
    return answer.topics[0].partitions[0].error_code


async def test_a_request_about_one_group_is_passed_on_as_it_came(pair: Pair) -> None:
    assert await commit(pair, "there", 7) is ErrorCode.NONE
    assert await commit(pair, "here", 5) is ErrorCode.NONE
    assert pair.passed_on == [8]
    assert pair.there.shard.offsets["there"]["t", 0].offset == 7
    assert pair.here.shard.offsets["here"]["t", 0].offset == 5


async def test_where_nobody_coordinates_or_can_be_reached_clients_look_for_the_coordinator_again(pair: Pair) -> None:
    assert await commit(pair, "nowhere", 7) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    pair.away = True
    assert await commit(pair, "there", 7) is ErrorCode.NOT_COORDINATOR
    heartbeat = await pair.ask(HeartbeatRequest(group_id="there"), 4, HeartbeatResponse)
    assert heartbeat.error_code is ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("version", [8, 9])
async def test_many_groups_are_asked_for_where_they_are_and_answered_in_their_order(pair: Pair, version: int) -> None:
    for group, offset in (("here", 1), ("there", 2), ("there too", 3)):
        await commit(pair, group, offset)
    pair.passed_on.clear()
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    names = ["there too", "here", "nowhere", "there"]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=topics) for name in names])
    answer = await pair.ask(request, version, OffsetFetchResponse)
    assert [group.group_id for group in answer.groups] == names
    assert [group.topics[0].partitions[0].committed_offset if group.topics else None for group in answer.groups] == [
        3,
        1,
        None,
        2,
    ]
    assert answer.groups[2].error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert pair.passed_on == [9], "one question for both that are there"
    pair.away = True
    answer = await pair.ask(request, version, OffsetFetchResponse)
    assert [group.error_code for group in answer.groups] == [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.NONE,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    ]


@pytest.mark.parametrize("version", [0, 4, 6])
async def test_groups_are_described_wherever_they_are(pair: Pair, version: int) -> None:
    await commit(pair, "there", 2)
    answer = await pair.ask(DescribeGroupsRequest(groups=["here", "there"]), version, DescribeGroupsResponse)
    assert [(one.group_id, one.group_state) for one in answer.groups] == [("here", "Dead"), ("there", "Empty")]


async def test_groups_are_deleted_wherever_they_are(pair: Pair) -> None:
    for group in ("here", "there"):
        await commit(pair, group, 1)
    answer = await pair.ask(
        DeleteGroupsRequest(groups_names=["there", "here", "there is none"]), 2, DeleteGroupsResponse
    )
    assert [one.error_code for one in answer.results] == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND]
    assert not pair.there.shard.groups
    assert not pair.here.shard.groups


async def test_a_sidecar_that_is_elected_while_a_commit_waits_looks_the_topics_up_all_the_same(pair: Pair) -> None:
    partitions = [OffsetCommitRequestPartition(partition_index=index, committed_offset=1) for index in (0, 5)]
    topics = [OffsetCommitRequestTopic(name=name, partitions=partitions) for name in ("t", "missing")]
    answer = await pair.ask(OffsetCommitRequest(group_id="elected", topics=topics), 9, OffsetCommitResponse)
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [[one.error_code for one in topic.partitions] for topic in answer.topics] == [
        [ErrorCode.NONE, missing],
        [missing, missing],
    ]
    stored = pair.here.shard.offsets["elected"]["t", 0]
    assert stored.topic_id == (await pair.here.catalog.find(TopicName("public", "default", "t"))).topic_id


async def test_an_error_of_ours_is_an_answer_to_that_request(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("nobody thought of this")

    monkeypatch.setattr(pair.coordinator, "heartbeat", fails)
    answer = await pair.ask(HeartbeatRequest(group_id="here"), 4, HeartbeatResponse)
    assert answer.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert pair.here.client.aborted == 0


@pytest.mark.parametrize(
    "request_",
    [ProduceRequest(), FetchRequest(), MetadataRequest(), DeleteTopicsRequest()],
    ids=lambda one: type(one).__name__,
)
async def test_only_what_a_coordinator_answers_is_taken_from_another_sidecar(pair: Pair, request_: Message) -> None:
    with pytest.raises(ProtocolError, match=f"API {request_.KEY} is not passed on"):
        pair.pass_on(request_, 4)


# --- a coordinator whose short names mean other topics

TEAM = "public/team"


@pytest.fixture
async def neighbours() -> AsyncIterator[Pair]:
    """Clients name topics of public/default. The one that coordinates has public/team for its own, with a topic of the
    same name.
    """
    one = Pair(TEAM)
    for sidecar in (one.here, one.there):
        sidecar.admin.make(f"persistent://{TEAM}/t")
        await sidecar.lead()
    yield one
    for sidecar in (one.here, one.there):
        await sidecar.close()


async def fetched(pair: Pair, group: str, topic: str | None) -> dict[str, int]:
    topics = None if topic is None else [OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)])
    answer = await pair.ask(request, 9, OffsetFetchResponse)
    assert answer.groups[0].error_code is ErrorCode.NONE
    return {topic.name: topic.partitions[0].committed_offset for topic in answer.groups[0].topics}


async def test_an_offset_is_of_the_topic_that_its_client_means(neighbours: Pair) -> None:
    assert await commit(neighbours, "there", 7) is ErrorCode.NONE
    assert list(neighbours.there.shard.offsets["there"]) == [("persistent://public/default/t", 0)]
    assert await fetched(neighbours, "there", "t") == {"t": 7}
    assert await fetched(neighbours, "there", None) == {"t": 7}


async def test_a_client_gets_the_names_that_it_has_asked_for(neighbours: Pair) -> None:
    assert await commit(neighbours, "there", 7, topic="public/team/t") is ErrorCode.NONE
    assert list(neighbours.there.shard.offsets["there"]) == [("t", 0)]
    assert await fetched(neighbours, "there", "public/team/t") == {"public/team/t": 7}
    assert await fetched(neighbours, "there", None) == {"persistent://public/team/t": 7}
    assert await fetched(neighbours, "there", "t") == {"t": -1}


async def test_what_no_topic_is_called_stays_as_it_is(neighbours: Pair) -> None:
    assert await commit(neighbours, "there", 7, topic="no/topic") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def test_a_topic_that_is_asked_for_by_several_names_is_answered_by_each(neighbours: Pair) -> None:
    names = ["t", "public/default/t", "persistent://public/default/t"]
    topics = [
        OffsetCommitRequestTopic(name=name, partitions=[OffsetCommitRequestPartition(committed_offset=7)])
        for name in names
    ]
    answer = await neighbours.ask(OffsetCommitRequest(group_id="there", topics=topics), 9, OffsetCommitResponse)
    assert [topic.name for topic in answer.topics] == names


@pytest.mark.parametrize("regex", ["a(", "*t"])
async def test_an_expression_that_can_not_be_read_is_refused_in_the_words_of_its_client(
    neighbours: Pair, regex: str
) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id="there",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1_000,
        subscribed_topic_regex=regex,
        topic_partitions=[],
    )
    answer = await neighbours.ask(request, 1, ConsumerGroupHeartbeatResponse)
    assert answer.error_code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert f"`{regex}`" in (answer.error_message or "")


# --- what members of classic groups say to each other


def said(*topics: str) -> bytes:
    """A subscription."""
    return struct.pack(">hi", 0, len(topics)) + b"".join(map(text, topics)) + b"\xff\xff\xff\xff"


async def joined(
    pair: Pair, group: str, *topics: str, member_id: str = "", protocol_type: str = CONSUMER_PROTOCOL
) -> JoinGroupResponse:
    protocols = [JoinGroupRequestProtocol(name="range", metadata=said(*topics))]
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=member_id,
        protocol_type=protocol_type,
        protocols=protocols,
    )
    answer = await pair.ask(request, 3, JoinGroupResponse)
    assert answer.error_code is ErrorCode.NONE
    return answer


async def synced(pair: Pair, group: str, member: JoinGroupResponse, parts: Mapping[str, bytes]) -> bytes:
    assignments = [
        SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
        for member_id, assignment in parts.items()
    ]
    request = SyncGroupRequest(
        group_id=group, generation_id=member.generation_id, member_id=member.member_id, assignments=assignments
    )
    answer = await pair.ask(request, 3, SyncGroupResponse)
    assert answer.error_code is ErrorCode.NONE
    return answer.assignment


def member_of(sidecar: Sidecar, group: str) -> Member:
    """The only one of a classic group, as its coordinator has it."""
    found = sidecar.services.groups.coordinator.describe(group)
    assert isinstance(found, ClassicGroup)
    (member,) = found.members.values()
    return member


async def described(pair: Pair, group: str) -> DescribedGroupMember:
    answer = await pair.ask(DescribeGroupsRequest(groups=[group]), 5, DescribeGroupsResponse)
    return answer.groups[0].members[0]


@pytest.mark.parametrize("group", ["here", "there"])
@pytest.mark.parametrize(
    "name", ["t", "public/default/t", "persistent://public/default/t", "persistent://public/team/t"]
)
async def test_members_name_topics_in_full_to_each_other_and_find_the_names_that_they_have_used(
    neighbours: Pair, group: str, name: str
) -> None:
    full = neighbours.here.catalog.names.parse(name).pulsar
    member = await joined(neighbours, group, name)
    assert [one.metadata for one in member.members] == [said(name)]
    parts = write_parts({name: frozenset({0})}, 0)
    assert await synced(neighbours, group, member, {member.member_id: parts}) == parts
    stored = member_of(neighbours.here if group == "here" else neighbours.there, group)
    assert stored.metadata("range") == said(full)
    assert list(read_parts(stored.assignment).partitions) == [full]
    listed = neighbours.here.catalog.names.canonical(name)
    told = await described(neighbours, group)
    assert (told.member_metadata, list(read_parts(told.member_assignment).partitions)) == (said(listed), [listed])


@pytest.mark.parametrize("group", ["here", "there"])
async def test_a_group_is_described_in_own_names_by_a_sidecar_that_does_not_know_that_groups_are_shared(
    neighbours: Pair, group: str
) -> None:
    member = await joined(neighbours, group, "t")
    parts = write_parts({"t": frozenset({0})}, 0)
    await synced(neighbours, group, member, {member.member_id: parts})
    neighbours.all_are_new = False
    told = await described(neighbours, group)
    assert (told.member_metadata, list(read_parts(told.member_assignment).partitions)) == (said("t"), ["t"])


@pytest.mark.parametrize("group", ["here", "there"])
async def test_they_do_not_while_a_sidecar_of_0_2_is_there(neighbours: Pair, group: str) -> None:
    """It would not know what is meant."""
    neighbours.all_are_new = False
    member = await joined(neighbours, group, "t")
    parts = write_parts({"t": frozenset({0})}, 0)
    assert await synced(neighbours, group, member, {member.member_id: parts}) == parts
    stored = member_of(neighbours.here if group == "here" else neighbours.there, group)
    assert (stored.metadata("range"), stored.assignment) == (said("t"), parts)
    neighbours.all_are_new = True
    assert await synced(neighbours, group, member, {member.member_id: parts}) == parts, (
        "what was said in short is told as it was"
    )


@pytest.mark.parametrize("group", ["here", "there"])
async def test_who_has_said_short_names_is_given_short_names(neighbours: Pair, group: str) -> None:
    """A member that has joined at a sidecar of 0.2, of which nobody here knows. The leader is here."""
    leader = await joined(neighbours, group, "t")
    neighbours.all_are_new = False
    joining = asyncio.ensure_future(joined(neighbours, group, "t"))
    await asyncio.sleep(0.01)
    neighbours.all_are_new = True
    leader, older = await joined(neighbours, group, "t", member_id=leader.member_id), await joining
    assert {one.metadata for one in leader.members} == {said("t")}
    parts = {one.member_id: write_parts({"t": frozenset({number})}, 0) for number, one in enumerate((leader, older))}
    assert await synced(neighbours, group, leader, parts) == parts[leader.member_id]
    found = (neighbours.here if group == "here" else neighbours.there).services.groups.coordinator.describe(group)
    assert isinstance(found, ClassicGroup)
    names = {member_id: list(read_parts(member.assignment).partitions) for member_id, member in found.members.items()}
    assert names == {leader.member_id: ["persistent://public/default/t"], older.member_id: ["t"]}


@pytest.mark.parametrize("leader_knows", [False, True])
@pytest.mark.parametrize("group", ["here", "there"])
async def test_members_of_one_team_agree_though_one_sidecar_does_not_know_that_groups_are_shared(
    neighbours: Pair, group: str, leader_knows: bool
) -> None:
    neighbours.all_are_new = leader_knows
    leader = await joined(neighbours, group, "t")
    neighbours.all_are_new = not leader_knows
    joining = asyncio.ensure_future(joined(neighbours, group, "public/default/t"))
    await asyncio.sleep(0.05)
    neighbours.all_are_new = leader_knows
    leader, follower = await joined(neighbours, group, "t", member_id=leader.member_id), await joining
    assert leader.members[0].metadata == said("t")
    assert [subscribed_topics(one.metadata)[0] for one in leader.members] == ["t", "t"]
    parts = {one.member_id: write_parts({"t": frozenset({number})}, 0) for number, one in enumerate((leader, follower))}
    assert await synced(neighbours, group, leader, parts) == parts[leader.member_id]
    neighbours.all_are_new = not leader_knows
    told = await synced(neighbours, group, follower, {})
    assert read_parts(told).partitions == {"public/default/t": frozenset({1})}


@pytest.mark.parametrize("group", ["here", "there"])
async def test_what_is_no_topic_leaves_the_names_of_topics_as_they_are(neighbours: Pair, group: str) -> None:
    leader = await joined(neighbours, group, "t", "t-partition-3", "not a name")
    parts = write_parts({"t": frozenset({0})}, 0)
    assert await synced(neighbours, group, leader, {leader.member_id: parts}) == parts
    stored = member_of(neighbours.here if group == "here" else neighbours.there, group)
    assert list(read_parts(stored.assignment).partitions) == ["persistent://public/default/t"]


@pytest.mark.parametrize("group", ["there"])
async def test_an_answer_that_can_not_be_read_is_a_retriable_error(
    neighbours: Pair, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nonsense(*_: object) -> bytes:
        return b"\0\0\0\x4d\xff"

    monkeypatch.setattr(neighbours, "forward", nonsense)
    joining = JoinGroupRequest(group_id=group, protocol_type=CONSUMER_PROTOCOL, protocols=[])
    assert (await neighbours.ask(joining, 3, JoinGroupResponse)).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (
        await neighbours.ask(SyncGroupRequest(group_id=group), 3, SyncGroupResponse)
    ).error_code is ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_bytes_of_other_protocols_stay_as_they_are(neighbours: Pair) -> None:
    member = await joined(neighbours, "there", "t", protocol_type="connect")
    assert member_of(neighbours.there, "there").metadata("range") == said("t")
    assert [one.metadata for one in member.members] == [said("t")]


async def test_a_name_that_is_too_long_for_a_topic_stays_as_it_is(neighbours: Pair) -> None:
    name = "x" * 32_000 + "/y/z"
    member = await joined(neighbours, "there", name)
    assert [one.metadata for one in member.members] == [said(name)]
