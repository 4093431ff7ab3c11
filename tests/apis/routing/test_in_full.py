"""Requests to a coordinator of another namespace: names in full there, and the client's own names in the answer."""

from __future__ import annotations

from kafka_sidecar.apis.routing.in_full import exchange
from kafka_sidecar.topics.names import TopicNames
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.headers import response_header
from kafka_sidecar.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponseTopics,
)

VERSION = 9
OWN, THEIRS = (TopicNames(f"public/{name}", "public/__kafka") for name in ("team", "default"))
FULL = "persistent://public/team/t"


def test_each_group_is_told_the_names_that_were_asked_for_it_also_behind_one_that_is_refused() -> None:
    names = {"refused": "t", "long": FULL, "short": "t"}
    groups = [
        OffsetFetchRequestGroup(group_id=group, topics=[OffsetFetchRequestTopics(name=name)])
        for group, name in names.items()
    ]
    passed_on = exchange(OffsetFetchRequest(groups=groups), VERSION, OWN, THEIRS)
    assert passed_on is not None
    asked = OffsetFetchRequest.read(VERSION, memoryview(passed_on.body))
    assert [topic.name for group in asked.groups for topic in group.topics or ()] == [FULL, FULL, FULL]
    answer = OffsetFetchResponse(
        groups=[
            OffsetFetchResponseGroup(group_id="refused", error_code=ErrorCode.UNKNOWN_MEMBER_ID),
            *(
                OffsetFetchResponseGroup(group_id=group, topics=[OffsetFetchResponseTopics(name=FULL)])
                for group in ("long", "short")
            ),
        ]
    )
    body = bytearray()
    answer.write(VERSION, body)
    head = response_header(OffsetFetchResponse, VERSION, 7)
    told = OffsetFetchResponse.read(VERSION, memoryview(passed_on.answer_in_own(head + bytes(body)))[len(head) :])
    assert {group.group_id: [topic.name for topic in group.topics] for group in told.groups} == {
        "refused": [],
        "long": [FULL],
        "short": ["t"],
    }
