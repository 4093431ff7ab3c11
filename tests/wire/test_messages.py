"""Every message in every version, held against kio: what it writes is read, and written again the same to the byte."""

from __future__ import annotations

import datetime
import io
import os
import tracemalloc
from dataclasses import MISSING, fields, is_dataclass
from importlib import import_module
from typing import Any, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.schema.index import api_key_map
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i32Timedelta

from kafka_sidecar.apis import APIS
from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.wire.buffers import COPIED_BYTES, MAX_ELEMENTS
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.headers import RequestHeader, body_at
from kafka_sidecar.wire.message import Message
from kafka_sidecar.wire.messages.api_versions import ApiVersionsRequest
from kafka_sidecar.wire.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from kafka_sidecar.wire.messages.list_groups import ListedGroup, ListGroupsResponse
from kafka_sidecar.wire.messages.metadata import MetadataRequest
from kafka_sidecar.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka_sidecar.wire.varint import MAX_TAGS, unsigned_varint
from tools.messages import KEYS, made, our_name, split_type


def _messages() -> list[tuple[type[Message], int, type[Any]]]:
    """Ours, a version, and kio's."""
    found = []
    for key in KEYS:
        module = import_module(f"kafka_sidecar.wire.messages.{api_key_map[key]}")
        for load in (load_request_schema, load_response_schema):
            for version in range(32):
                try:
                    schema = load(key, version)
                except RuntimeError:
                    continue
                found.append((getattr(module, schema.__name__), version, schema))
    return found


# Of each of the 446 messages; `make soak` takes ten times as many.
SCALE = int(os.environ.get("EXAMPLES_SCALE", "1"))
EXAMPLES, CUTS = 6 * SCALE, 3 * SCALE
MESSAGES = _messages()
EACH = pytest.mark.parametrize(
    ("ours", "version", "schema"), MESSAGES, ids=[f"{ours.__name__}-{version}" for ours, version, _ in MESSAGES]
)

_PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "int8": st.integers(-128, 127),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "error_code": st.sampled_from(list(KioErrorCode)),
    "timedelta_i32": st.integers(0, 2**31 - 1).map(
        lambda value: i32Timedelta.parse(datetime.timedelta(milliseconds=value))
    ),
    "timedelta_i64": st.integers(0, 2**40).map(lambda value: datetime.timedelta(milliseconds=value)),
    "datetime_i64": st.integers(0, 4_000_000).map(lambda value: datetime.datetime.fromtimestamp(value, datetime.UTC)),
    "string": st.text(max_size=10),
    "bytes": st.binary(max_size=20),
    "records": st.binary(max_size=20),
    "uuid": st.uuids(),
}


_STRATEGIES: dict[Any, st.SearchStrategy[Any]] = {}


def _instances(entity: Any) -> st.SearchStrategy[Any]:
    """Each is made once: that takes longer than an example."""
    if entity not in _STRATEGIES:
        _STRATEGIES[entity] = _made(entity)
    return _STRATEGIES[entity]


def _made(entity: Any) -> st.SearchStrategy[Any]:
    hints = get_type_hints(entity)
    parts = {}
    for field in fields(entity):
        bare, array, optional = split_type(hints[field.name])
        kafka_type = field.metadata.get("kafka_type")
        value = _PRIMITIVES[kafka_type] if kafka_type else _instances(bare)
        if array:
            value = st.lists(value, max_size=3).map(tuple)
        if optional:
            value = st.none() | value
        if field.default is not MISSING:
            value = st.just(field.default) | value
        parts[field.name] = value
    return st.fixed_dictionaries(parts).map(lambda given_: entity(**given_))


def _written(instance: Any) -> bytes:
    out = io.BytesIO()
    entity_writer(type(instance))(out, instance)
    return out.getvalue()


def _same(theirs: Any, ours: Any) -> bool:
    if is_dataclass(theirs) and not isinstance(theirs, type):
        if ours is None:  # a tagged struct of which nothing is given
            return bool(theirs == type(theirs)())
        return all(
            _same(getattr(theirs, field.name), getattr(ours, our_name(field.name, field.metadata.get("kafka_type"))))
            for field in fields(theirs)
        )
    if isinstance(theirs, tuple):
        return len(theirs) == len(ours) and all(_same(one, other) for one, other in zip(theirs, ours, strict=True))
    if isinstance(theirs, datetime.timedelta):
        return bool(round(theirs.total_seconds() * 1000) == ours)
    if isinstance(theirs, datetime.datetime):
        return bool(round(theirs.timestamp() * 1000) == ours)
    if isinstance(ours, tuple):  # records in parts
        return bool(b"".join(ours) == theirs)
    return bool(theirs == ours) or (theirs is None and ours == -1)  # a time that is not given


@EACH
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_it_reads_and_writes_what_kio_does(
    ours: type[Message], version: int, schema: type[Any], data: st.DataObject
) -> None:
    theirs = data.draw(_instances(schema))
    body = _written(theirs)
    message = ours.read(version, memoryview(body))
    assert _same(theirs, message)
    out = bytearray()
    message.write(version, out)
    assert bytes(out) == body


@EACH
def test_a_message_of_which_nothing_is_given_is_one_that_kio_reads(
    ours: type[Message], version: int, schema: type[Any]
) -> None:
    out = bytearray()
    ours().write(version, out)
    _, size = entity_reader(schema)(bytes(out), 0)
    assert size == len(out)


def _is_read(ours: type[Message], version: int, body: memoryview) -> bool:
    try:
        ours.read(version, body)
    except ProtocolError:
        return False
    return True


@EACH
@settings(max_examples=CUTS, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_message_that_is_cut_anywhere_is_refused(
    ours: type[Message], version: int, schema: type[Any], data: st.DataObject
) -> None:
    body = _written(data.draw(_instances(schema)))
    whole = memoryview(body)
    assert not [end for end in range(len(body)) if _is_read(ours, version, whole[:end])]


@given(st.sampled_from(MESSAGES), st.binary(max_size=300))
@settings(max_examples=2_000)
def test_any_bytes_are_a_message_or_a_protocol_error(
    message: tuple[type[Message], int, type[Any]], body: bytes
) -> None:
    ours, version, _ = message
    try:
        read = ours.read(version, memoryview(body))
    except ProtocolError:
        return
    out = bytearray()
    read.write(version, out)
    again = ours.read(version, memoryview(out))
    assert again == read


@pytest.mark.parametrize("ours", [ours for ours, _, _ in MESSAGES if ours.__name__.endswith("Request")])
@given(count=st.sampled_from([b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f"]), lead=st.integers(0, 40), data=st.data())
@settings(max_examples=10)
def test_an_announced_count_takes_no_memory(ours: type[Message], count: bytes, lead: int, data: st.DataObject) -> None:
    version = data.draw(st.sampled_from([version for one, version, _ in MESSAGES if one is ours]))
    for filling in (b"\0", b"\1", b"\2"):
        tracemalloc.start()
        try:
            ours.read(version, memoryview(filling * lead + count * 8))
        except ProtocolError:
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert most < 8 * COPIED_BYTES


@given(parts=st.lists(st.binary(max_size=30), max_size=4))
@pytest.mark.parametrize("version", [11, 12])
def test_records_in_parts_are_written_as_one(version: int, parts: list[bytes]) -> None:
    def encoded(records: list[bytes]) -> bytes:
        out = bytearray()
        partition = PartitionData(records=records)
        FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[partition])]).write(version, out)
        return bytes(out)

    assert encoded(parts) == encoded([b"".join(parts)])


@given(
    sizes=st.lists(st.sampled_from([0, 10, COPIED_BYTES, COPIED_BYTES + 1, 3 * COPIED_BYTES]), min_size=1, max_size=4)
)
@pytest.mark.parametrize("version", [11, 12])
def test_large_records_leave_as_they_are_and_the_pieces_are_the_message(version: int, sizes: list[int]) -> None:
    records = [bytes([number]) * size for number, size in enumerate(sizes)]
    topics = [
        FetchableTopicResponse(topic="t", partitions=[PartitionData(records=[data], partition_index=1)])
        for data in records
    ]
    pieces = FetchResponse(responses=topics).write_pieces(version, bytearray(b"head"))
    assert bytes(pieces[0][:4]) == b"head"
    large = [data for data in records if len(data) > COPIED_BYTES]
    assert [piece for piece in pieces if any(piece is data for data in large)] == large, "they are not copied"
    read = FetchResponse.read(version, memoryview(b"".join(pieces))[4:])
    assert [b"".join(topic.partitions[0].records or ()) for topic in read.responses] == records


UNKNOWN_TAG = b"\x01\xa0\x07\x03new"  # one tagged field, number 928, three bytes


def test_tagged_fields_of_a_newer_client_are_ignored() -> None:
    topic = b"\0" * 16 + b"\x02t" + UNKNOWN_TAG
    request = MetadataRequest.read(12, memoryview(b"\x03" + topic + topic + b"\x01\x00" + UNKNOWN_TAG))
    assert request.topics is not None
    assert [topic.name for topic in request.topics] == ["t", "t"]
    assert request.allow_auto_topic_creation
    assert not request.include_topic_authorized_operations


def test_tagged_fields_within_a_known_one_are_ignored_too() -> None:
    replica_state = (7).to_bytes(4, "big") + (9).to_bytes(8, "big") + UNKNOWN_TAG
    cluster_id = b"\x05real"
    tagged = b"\x03\x00\x05" + cluster_id + b"\x01" + bytes([len(replica_state)]) + replica_state + b"\x63\x01x"
    fixed = (500).to_bytes(4, "big") + (1).to_bytes(4, "big") + (10).to_bytes(4, "big") + b"\0" + bytes(4) + bytes(4)
    request = FetchRequest.read(17, memoryview(fixed + b"\x01\x01\x01" + tagged))
    assert request.cluster_id == "real"
    assert request.replica_state is not None
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (7, 9)


def _tags(count: int) -> bytes:
    out = bytearray()
    unsigned_varint(out, count)
    return bytes(out) + b"\x7f\x00" * count


@pytest.mark.parametrize("ours", [ApiVersionsRequest, FetchRequest], ids=["knows no tags", "knows tags"])
def test_tagged_fields_take_no_memory(ours: type[Message]) -> None:
    """Two bytes each, and an object for each would be a hundred times as much."""
    body = b"\x02a\x02b" if ours is ApiVersionsRequest else bytes(12) + b"\0" + bytes(8) + b"\x01\x01\x01"
    version = 3 if ours is ApiVersionsRequest else 17
    assert ours.read(version, memoryview(body + _tags(MAX_TAGS)))
    with pytest.raises(ProtocolError, match="no more than"):
        ours.read(version, memoryview(body + _tags(MAX_TAGS + 1)))


def test_arrays_in_arrays_count_too() -> None:
    """A few bytes each, and all of them are decoded before anything else is done."""

    def request(topics: int, partitions: int) -> memoryview:
        data = [PartitionProduceData(index=0, records=None)] * partitions
        out = bytearray()
        ProduceRequest(
            acks=1, timeout_ms=1, topic_data=[TopicProduceData(name="t", partition_data=data)] * topics
        ).write(9, out)
        return memoryview(out)

    assert len(ProduceRequest.read(9, request(10, 1_000)).topic_data) == 10
    with pytest.raises(ProtocolError, match="no more than"):
        ProduceRequest.read(9, request(201, 1_000))


def test_of_a_fellow_sidecar_more_elements_are_taken_than_of_a_client() -> None:
    out = bytearray()
    ListGroupsResponse(groups=[ListedGroup(group_id="g")] * (MAX_ELEMENTS + 1)).write(5, out)
    with pytest.raises(ProtocolError, match="no more than"):
        ListGroupsResponse.read(5, memoryview(out))
    assert len(ListGroupsResponse.read(5, memoryview(out), max_elements=len(out)).groups) == MAX_ELEMENTS + 1


def test_an_error_code_that_is_not_known_is_an_unknown_error() -> None:
    assert ErrorCode(30_000) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_the_modules_are_those_that_make_messages_makes() -> None:
    for path, text in made().items():
        assert path.read_text() == text, f"{path.name} is not fresh: make messages"


def test_every_api_that_is_served_has_its_messages() -> None:
    assert {api.key for api in APIS} == set(KEYS)


def test_tagged_fields_of_a_header_are_bounded_too() -> None:
    header = RequestHeader(18, 3, 1, None, 0)
    assert body_at(memoryview(_tags(MAX_TAGS)), header, ApiVersionsRequest) == len(_tags(MAX_TAGS))
    with pytest.raises(ProtocolError, match="no more than"):
        body_at(memoryview(_tags(MAX_TAGS + 1)), header, ApiVersionsRequest)
