"""Produce by hand reads what kio reads and writes what the compiled writers write."""

from __future__ import annotations

import datetime
import uuid
from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.index import load_request_schema
from kio.serial import entity_writer
from kio.static.primitive import i16, i32, i32Timedelta

from handler.errors import ProtocolError
from handler.wire.produce import ProduceRequest, produce_answer_writer, read_produce
from handler.wire.schema import encode_answer, read_request

VERSIONS = range(3, 14)
I32 = st.integers(-(2**31), 2**31 - 1)
I64 = st.integers(-(2**63), 2**63 - 1)
RECORDS = st.none() | st.binary(max_size=300)


def _request(version: int, draw: Any) -> bytes:
    schema: Any = load_request_schema(0, version)
    hints = schema.__annotations__
    assert "topic_data" in hints
    import sys

    module = sys.modules[schema.__module__]
    topics = []
    for _ in range(draw(st.integers(0, 3))):
        partitions = tuple(module.PartitionProduceData(index=i32(draw(I32)), records=draw(RECORDS)) for _ in range(draw(st.integers(0, 3))))
        name = {"topic_id": draw(st.uuids())} if version >= 13 else {"name": draw(st.text(max_size=12))}
        topics.append(module.TopicProduceData(**name, partition_data=partitions))
    request = schema(
        transactional_id=draw(st.none() | st.text(max_size=9)),
        acks=i16(draw(st.sampled_from([-1, 0, 1]))),
        timeout=i32Timedelta.parse(datetime.timedelta(milliseconds=draw(st.integers(0, 2**31 - 1)))),
        topic_data=tuple(topics),
    )
    out = BytesIO()
    entity_writer(schema)(out, request)
    return out.getvalue()


@pytest.mark.parametrize("version", VERSIONS)
@given(data=st.data())
def test_it_reads_what_kio_reads(version: int, data: st.DataObject) -> None:
    body = memoryview(_request(version, data.draw))
    ours, theirs = read_produce(body, version), read_request(0, version, body)
    assert ours.transactional_id == theirs.transactional_id
    assert ours.acks == theirs.acks
    assert ours.timeout_ms == round(theirs.timeout.total_seconds() * 1000)
    assert [
        (topic.topic_id if version >= 13 else topic.name, [tuple(part) for part in topic.partition_data]) for topic in ours.topic_data
    ] == [
        (topic.topic_id if version >= 13 else topic.name, [(part.index, part.records) for part in topic.partition_data])
        for topic in theirs.topic_data
    ]


@pytest.mark.parametrize("version", VERSIONS)
@given(data=st.data())
def test_a_request_cut_anywhere_is_refused(version: int, data: st.DataObject) -> None:
    body = _request(version, data.draw)
    cut = data.draw(st.integers(0, len(body) - 1))
    with pytest.raises(ProtocolError):
        read_produce(memoryview(body)[:cut], version)


@pytest.mark.parametrize("version", VERSIONS)
@given(body=st.binary(max_size=200))
def test_garbage_is_read_or_refused(version: int, body: bytes) -> None:
    try:
        assert isinstance(read_produce(memoryview(body), version), ProduceRequest)
    except ProtocolError:
        pass


def test_tagged_fields_that_nobody_knows_are_stepped_over() -> None:
    tagged = b"\x01\x05\x02hi"
    body = b"\x00" + b"\xff\xff" + b"\0\0\0\x07" + b"\x02" + uuid.UUID(int=5).bytes + b"\x02" + b"\0\0\0\x03" + b"\x02r" + tagged * 3
    request = read_produce(memoryview(body), 13)
    assert request.topic_data[0].partition_data == [(3, b"r")]


PARTITION = st.fixed_dictionaries(
    {
        "index": I32,
        "error_code": st.sampled_from([0, 3, 45, 87]),
        "base_offset": I64,
        "log_append_time": st.integers(-1, 4_000_000_000_000),
        "log_start_offset": I64,
    }
)
TOPIC = st.fixed_dictionaries(
    {"name": st.text(max_size=200), "topic_id": st.uuids(), "partition_responses": st.lists(PARTITION, max_size=3)}
)


@pytest.mark.parametrize("version", VERSIONS)
@given(topics=st.lists(TOPIC, max_size=3))
def test_it_writes_what_the_compiled_writer_writes(version: int, topics: list[dict[str, Any]]) -> None:
    answer = {"responses": topics, "throttle_time": 0}
    out = bytearray()
    produce_answer_writer(version)(out, answer)
    assert out == encode_answer(0, version, answer)
