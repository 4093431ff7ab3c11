"""Every answer writer of every API in work, held against kio's own reader."""

from __future__ import annotations

import datetime
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kio.index import load_response_schema
from kio.serial import entity_reader

from handler.apis import APIS
from handler.errors import ProtocolError
from handler.wire.schema import encode_answer, read_request
from handler.wire.types import split_type

VERSIONS = [(api.key, version) for api in APIS for version in range(api.lowest, api.highest + 1)]

_PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "int8": st.integers(-128, 127),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "bool": st.booleans(),
    "error_code": st.sampled_from([0, 3, 35, 87]),
    "timedelta_i32": st.integers(0, 2**31 - 1),
    "datetime_i64": st.integers(0, 4_000_000_000_000),
    "string": st.text(max_size=10),
    "bytes": st.binary(max_size=20),
    "records": st.binary(max_size=20),
    "uuid": st.uuids(),
}


def _answers(entity: type[Any]) -> st.SearchStrategy[dict[str, Any]]:
    from typing import get_type_hints

    hints = get_type_hints(entity)
    parts = {}
    for field in fields(entity):
        bare, array, optional = split_type(hints[field.name])
        kafka_type = field.metadata.get("kafka_type")
        value: st.SearchStrategy[Any] = _PRIMITIVES[kafka_type] if kafka_type else _answers(bare)
        if array:
            value = st.lists(value, max_size=3)
        if optional and kafka_type not in ("uuid", "datetime_i64"):
            value = st.none() | value
        parts[field.name] = value
    return st.fixed_dictionaries(parts)


def _same(read: Any, given_: Any) -> bool:
    if is_dataclass(read):
        return all(_same(getattr(read, field.name), given_[field.name]) for field in fields(read))
    if isinstance(read, tuple):
        return len(read) == len(given_) and all(_same(one, other) for one, other in zip(read, given_, strict=True))
    if isinstance(read, datetime.timedelta):
        return bool(round(read.total_seconds() * 1000) == given_)
    if isinstance(read, datetime.datetime):
        return bool(abs(read.timestamp() * 1000 - given_) < 1)
    return bool(read == given_)


@pytest.mark.parametrize(("key", "version"), VERSIONS)
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_is_written_is_what_kio_reads(key: int, version: int, data: st.DataObject) -> None:
    schema = load_response_schema(key, version)
    answer = data.draw(_answers(schema))
    encoded = bytes(encode_answer(key, version, answer))
    read, size = entity_reader(schema)(encoded, 0)
    assert size == len(encoded)
    assert _same(read, answer)


@pytest.mark.parametrize(("key", "version"), VERSIONS)
def test_an_empty_answer_takes_the_defaults(key: int, version: int) -> None:
    encoded = bytes(encode_answer(key, version, {}))
    _, size = entity_reader(load_response_schema(key, version))(encoded, 0)
    assert size == len(encoded)


@given(st.sampled_from(VERSIONS), st.binary(max_size=300))
@settings(max_examples=500, deadline=None)
def test_any_bytes_are_a_request_or_a_protocol_error(api: tuple[int, int], body: bytes) -> None:
    try:
        read_request(*api, memoryview(body))
    except ProtocolError:
        pass


@pytest.mark.parametrize(("key", "version"), VERSIONS)
@given(count=st.sampled_from([b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f"]), lead=st.integers(0, 40))
@settings(max_examples=30, deadline=None)
def test_an_announced_count_takes_no_memory(key: int, version: int, count: bytes, lead: int) -> None:
    # The native reader would abort the process, so this test fails by not coming back.
    for filling in (b"\0", b"\1", b"\2"):
        try:
            read_request(key, version, memoryview(filling * lead + count * 8))
        except ProtocolError:
            pass


@pytest.mark.parametrize("version", [11, 12])
@given(parts=st.lists(st.binary(max_size=30), max_size=4))
def test_records_in_parts_are_written_as_one(version: int, parts: list[bytes]) -> None:
    def encoded(records: object) -> bytes:
        return bytes(encode_answer(1, version, {"responses": [{"topic": "t", "partitions": [{"records": records}]}]}))

    assert encoded(parts) == encoded(b"".join(parts))


UNKNOWN_TAG = b"\x01\xa0\x07\x03new"  # one tagged field, number 928, three bytes


def test_tagged_fields_of_a_newer_client_are_ignored() -> None:
    topic = b"\0" * 16 + b"\x02t" + UNKNOWN_TAG
    request = read_request(3, 12, memoryview(b"\x03" + topic + topic + b"\x01\x00" + UNKNOWN_TAG))
    assert [topic.name for topic in request.topics] == ["t", "t"]
    assert request.allow_auto_topic_creation
    assert not request.include_topic_authorized_operations


def test_tagged_fields_within_a_known_one_are_ignored_too() -> None:
    replica_state = (7).to_bytes(4, "big") + (9).to_bytes(8, "big") + UNKNOWN_TAG
    cluster_id = b"\x05real"
    tagged = b"\x03\x00\x05" + cluster_id + b"\x01" + bytes([len(replica_state)]) + replica_state + b"\x63\x01x"
    fixed = (500).to_bytes(4, "big") + (1).to_bytes(4, "big") + (10).to_bytes(4, "big") + b"\0" + bytes(4) + bytes(4)
    request = read_request(1, 17, memoryview(fixed + b"\x01\x01\x01" + tagged))
    assert request.cluster_id == "real"
    assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (7, 9)
