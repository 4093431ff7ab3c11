"""Requests as aiokafka's connections send and read them."""

from __future__ import annotations

import io
import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest

import kafka_sidecar
from kafka_sidecar.kafka_client.client import NEWEST, OLDEST, Refused, _Request
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.headers import body_at, read_header, response_header
from kafka_sidecar.wire.message import Message
from kafka_sidecar.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from kafka_sidecar.wire.messages.fetch import FetchRequest, FetchResponse


def asked() -> set[type[Message]]:
    """All requests that pipelines and commands send."""
    found = set()
    rooms = [str(Path(kafka_sidecar.__path__[0]) / room) for room in ("pipelines", "kafka_client", "commands")]
    for module in pkgutil.walk_packages(rooms):
        source = Path(str(module.module_finder.path)) / f"{module.name.rpartition('.')[2]}.py"  # type: ignore[union-attr]
        text = source.read_text() if source.exists() else ""
        for name, requests in re.findall(r"from (kafka_sidecar\.wire\.messages\.\w+) import (\([^)]*\)|[^\n]*)", text):
            for one in re.findall(r"\w+Request\b", requests):
                found.add(getattr(import_module(name), one))
    return found


def test_each_message_that_is_asked_has_a_version() -> None:
    messages = asked()
    assert {"DescribeGroupsRequest", "EndTxnRequest"} <= {one.__name__ for one in messages}
    assert {one.__name__ for one in messages if one.KEY not in NEWEST} == set()
    assert all(NEWEST[key] >= version for key, version in OLDEST.items())


@pytest.mark.parametrize(("newest", "version"), [(3, 3), (9, 4), (0, 0)])
def test_a_group_is_described_in_a_version_that_both_sides_know(newest: int, version: int) -> None:
    request = _Request(DescribeGroupsRequest(groups=["g"]), DescribeGroupsResponse).prepare({15: (0, newest)})
    frame = memoryview(request.build_request_header(7, "me").encode() + request.encode())
    header = read_header(frame)
    assert (header.api_key, header.api_version, header.correlation_id, header.client_id) == (15, version, 7, "me")
    assert DescribeGroupsRequest.read(version, frame[body_at(frame, header, DescribeGroupsRequest) :]).groups == ["g"]
    answer = bytearray(response_header(DescribeGroupsResponse, version, 7))
    DescribeGroupsResponse(groups=[DescribedGroup(group_id="g", group_state="Stable")]).write(version, answer)
    read = io.BytesIO(answer)
    assert request.parse_response_header(read).correlation_id == 7
    assert request.RESPONSE_TYPE.decode(read).groups[0].group_state == "Stable"


def test_a_cluster_that_is_too_old_is_refused() -> None:
    for versions in ({}, {1: (0, 3)}, {1: (13, 17)}):
        with pytest.raises(Refused, match="does not take FetchRequest") as refused:
            _Request(FetchRequest(), FetchResponse).prepare(versions)
        assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
