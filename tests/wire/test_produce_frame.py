"""Produce requests of the ordinary shape: found at their places, as the generated classes read and write them."""

from __future__ import annotations

import struct
import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.headers import response_header
from kafka_sidecar.wire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafka_sidecar.wire.produce_frame import (
    FLEXIBLE_SINCE,
    TOPIC_IDS_SINCE,
    produce_answer,
    read_produce_frame,
    topic_key,
)

VERSIONS = st.integers(3, 13)
NAMES = st.text("abcXYZ019._-/:", min_size=1, max_size=200)
IDS = st.uuids(version=5)
BATCHES = st.lists(st.tuples(st.integers(0, 2**31 - 1), st.binary(min_size=1, max_size=300)), min_size=1, max_size=5)


def framed(request: ProduceRequest, version: int, client_id: str | None = "client") -> memoryview:
    name = b"" if client_id is None else client_id.encode()
    out = bytearray(struct.pack(">hhih", 0, version, 7, -1 if client_id is None else len(name)) + name)
    if version >= FLEXIBLE_SINCE:
        out.append(0)
    request.write(version, out)
    return memoryview(bytes(out))


def request_of(
    version: int, topics: list[tuple[str, uuid.UUID, list[tuple[int, bytes]]]], **fields: Any
) -> ProduceRequest:
    parts = [
        TopicProduceData(
            name="" if version >= 13 else name,
            topic_id=topic_id if version >= 13 else None,
            partition_data=[PartitionProduceData(index=index, records=records) for index, records in batches],
        )
        for name, topic_id, batches in topics
    ]
    return ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=parts, **fields)


@given(
    VERSIONS,
    st.lists(
        st.tuples(NAMES, IDS, BATCHES), min_size=1, max_size=3, unique_by=(lambda one: one[0], lambda one: one[1])
    ),
)
def test_everything_is_found_where_it_stands(
    version: int, topics: list[tuple[str, uuid.UUID, list[tuple[int, bytes]]]]
) -> None:
    frame = framed(request_of(version, topics), version)
    found = read_produce_frame(frame)
    assert found is not None
    assert (found.version, found.correlation_id, found.acks, found.timeout_ms) == (version, 7, -1, 1_000)
    expected = [
        (topic_key(version, name, topic_id), index, records)
        for name, topic_id, batches in topics
        for index, records in batches
    ]
    assert [(key, index, bytes(frame[begin:end])) for key, index, begin, end in found.batches] == expected


@given(
    VERSIONS,
    st.lists(
        st.tuples(NAMES, IDS, BATCHES), min_size=1, max_size=3, unique_by=(lambda one: one[0], lambda one: one[1])
    ),
)
def test_the_answer_is_that_of_the_generated_class(
    version: int, topics: list[tuple[str, uuid.UUID, list[tuple[int, bytes]]]]
) -> None:
    found = read_produce_frame(framed(request_of(version, topics), version))
    assert found is not None
    results = [(number % 2 * 25, 100 + number, 3) for number in range(len(found.batches))]
    left = iter(results)
    responses = []
    for name, topic_id, batches in topics:
        partitions = []
        for index, _ in batches:
            error, base_offset, log_start = next(left)
            partitions.append(
                PartitionProduceResponse(
                    index=index, error_code=ErrorCode(error), base_offset=base_offset, log_start_offset=log_start
                )
            )
        responses.append(
            TopicProduceResponse(
                name="" if version >= 13 else name,
                topic_id=topic_id if version >= 13 else None,
                partition_responses=partitions,
            )
        )
    out = bytearray(response_header(ProduceResponse, version, 7))
    ProduceResponse(responses=responses).write(version, out)
    assert produce_answer(found, results) == struct.pack(">i", len(out)) + out


@pytest.mark.parametrize("version", [3, 8, 9, 12, 13])
def test_what_is_not_ordinary_is_left_to_the_generated_class(version: int) -> None:
    topic = ("t", uuid.UUID(int=5 << 76 | 1 << 63 | 9), [(0, b"records")])
    assert read_produce_frame(framed(request_of(version, [topic]), version)) is not None
    assert read_produce_frame(framed(request_of(version, [topic], transactional_id="x"), version)) is None
    assert read_produce_frame(framed(request_of(version, [topic, topic]), version)) is None, "the same topic twice"
    assert read_produce_frame(framed(request_of(version, [(*topic[:2], [])]), version)) is None
    null = request_of(version, [topic])
    null.topic_data[0].partition_data[0].records = None
    assert read_produce_frame(framed(null, version)) is None


@pytest.mark.parametrize("version", [8, 9, 13])
def test_there_is_a_bound_for_the_batches_of_all_topics_together(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_sidecar.wire.produce_frame.MAX_BATCHES", 10)

    def found(topics: int) -> bool:
        asked = [
            (f"t{number}", uuid.uuid5(uuid.NAMESPACE_DNS, str(number)), [(0, b"a"), (1, b"b")])
            for number in range(topics)
        ]
        return read_produce_frame(framed(request_of(version, asked), version)) is not None

    assert [found(topics) for topics in (1, 4, 6, 20)] == [True, True, False, False]


def is_text(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True


@given(VERSIONS, st.data())
def test_a_frame_that_is_cut_or_changed_is_read_alike_or_not_at_all(version: int, data: st.DataObject) -> None:
    frame = bytearray(
        framed(request_of(version, [("topic", uuid.UUID(int=77), [(0, b"0" * 70), (1, b"1" * 5)])]), version)
    )
    if data.draw(st.booleans()):
        del frame[data.draw(st.integers(8, len(frame) - 1)) :]
    else:
        frame[data.draw(st.integers(4, len(frame) - 1))] = data.draw(st.integers(0, 255))
    found = read_produce_frame(memoryview(bytes(frame)))
    if found is None:
        return
    client = max(0, struct.unpack_from(">h", frame, 8)[0])
    body = 10 + client + (found.version >= FLEXIBLE_SINCE)
    if any(not is_text(key) for key, _, _, _ in found.batches) and found.version < TOPIC_IDS_SINCE:
        return  # no topic is known by such a name, so the request is left to the generated class, which refuses it
    read = ProduceRequest.read(found.version, memoryview(bytes(frame))[body:])
    assert (read.acks, read.timeout_ms, read.transactional_id) == (found.acks, found.timeout_ms, None)
    parts = [
        (topic_key(found.version, topic.name, topic.topic_id), part)
        for topic in read.topic_data
        for part in topic.partition_data
    ]
    assert [(key, part.index, part.records) for key, part in parts] == [
        (key, index, bytes(frame[begin:end])) for key, index, begin, end in found.batches
    ]
