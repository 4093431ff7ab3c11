"""What is put together of primitive types is read as it was; anything else is a RecordUnreadable."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.wire.buffers import FlexibleReader, Reader
from kafka_sidecar.wire.primitives import (
    NO_TAGS,
    RecordUnreadable,
    array,
    compact_array,
    compact_data,
    compact_text,
    data,
    reading,
    tagged,
    text,
    varint,
    versioned,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)
TEXTS = st.lists(TEXT, max_size=200)


@given(st.none() | TEXT, st.binary(max_size=300), TEXTS)
def test_values_with_lengths_of_a_fixed_size(one: str | None, content: bytes, several: list[str]) -> None:
    reader = Reader(memoryview(text(one) + data(content) + array(map(text, several)) + b"rest"))
    assert (reader.nullable_string(), reader.bytes_(), reader.string_array()) == (one, content, several)
    assert reader.rest() == b"rest"


@given(st.none() | TEXT, st.binary(max_size=300), TEXTS)
def test_compact_values(one: str | None, content: bytes, several: list[str]) -> None:
    reader = FlexibleReader(
        memoryview(compact_text(one) + compact_data(content) + compact_array(map(compact_text, several)) + NO_TAGS)
    )
    assert (reader.nullable_string(), reader.bytes_(), reader.string_array()) == (one, content, several)
    assert list(reader.tagged_fields()) == []
    assert reader.rest() == b""


@given(st.integers(0, 20_000), st.binary(max_size=300))
def test_a_tagged_field(tag: int, content: bytes) -> None:
    ((found, field),) = FlexibleReader(memoryview(tagged(tag, content))).tagged_fields()
    assert (found, field.rest()) == (tag, content)


@pytest.mark.parametrize(("value", "written"), [(0, "00"), (127, "7f"), (128, "8001"), (2**31 - 1, "ffffffff07")])
def test_a_varint(value: int, written: str) -> None:
    assert varint(value) == bytes.fromhex(written)


def test_the_version_says_how_the_rest_is_read() -> None:
    assert [type(versioned(struct.pack(">h", version), 4)[1]) for version in (3, 4)] == [Reader, FlexibleReader]


@pytest.mark.parametrize(
    "value", ["", "00", "0001", "000100", "00010005aa", "00010001ff"], ids=lambda value: value or "nothing"
)
def test_what_ends_too_early_or_is_no_text_is_unreadable(value: str) -> None:
    with pytest.raises(RecordUnreadable, match="the key can't be read: "), reading("the key"):
        versioned(bytes.fromhex(value), 9)[1].string()


def test_what_goes_wrong_elsewhere_keeps_its_own_error() -> None:
    with pytest.raises(ZeroDivisionError), reading("the key"):
        raise ZeroDivisionError
