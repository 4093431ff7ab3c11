"""What is opened of a batch of Pulsar's."""

from __future__ import annotations

import struct

import pytest

from kafka_sidecar.errors import EntryUnreadable
from kafka_sidecar.pulsar import messages
from kafka_sidecar.pulsar.messages import metadata_size, read_messages, write_batch
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata, SingleMessageMetadata


def test_a_batch_of_more_messages_than_anybody_writes_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MAX_MESSAGES", 10)
    for count in (10, 11):
        payload = write_batch([(b"k", b"v")] * count, 1)
        metadata = MessageMetadata(producer_name=b"p", sequence_id=0, publish_time=1, num_messages_in_batch=count)
        metadata.uncompressed_size = len(payload)
        if count == 10:
            assert len(read_messages(metadata, memoryview(payload))) == 10
        else:
            with pytest.raises(EntryUnreadable, match="no more than 10"):
                read_messages(metadata, memoryview(payload))


def of_one(properties: int, messages: int = 1) -> tuple[MessageMetadata, memoryview]:
    single = SingleMessageMetadata(payload_size=0, event_time=2**60, partition_key=b"k")
    for number in range(properties):
        single.properties.add(key=b"%d" % number, value=b"v")
    head = single.SerializeToString()
    data = (len(head).to_bytes(4, "big") + head) * messages
    metadata = MessageMetadata(producer_name=b"p", sequence_id=0, publish_time=1, num_messages_in_batch=messages)
    metadata.uncompressed_size = len(data)
    return metadata, memoryview(data)


def test_a_message_of_more_properties_than_anybody_gives_it_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "LARGE_SINGLE", 10)
    monkeypatch.setattr(messages, "MAX_PROPERTIES_OF_ONE", 20)
    assert len(read_messages(*of_one(20))[0].properties) == 20
    with pytest.raises(EntryUnreadable, match="more than 20 properties"):
        read_messages(*of_one(21))


@pytest.mark.parametrize("tag", [3, 4, 6, 7])
def test_a_message_with_what_no_client_of_pulsar_writes_is_not_parsed(
    monkeypatch: pytest.MonkeyPatch, tag: int
) -> None:
    """protobuf passes over a group, and parses what stands behind it."""
    monkeypatch.setattr(messages, "LARGE_SINGLE", 10)
    metadata, data = of_one(1)
    (size,) = struct.unpack_from(">I", data)
    group = bytes([15 << 3 | tag])
    with pytest.raises(EntryUnreadable, match="not of Pulsar"):
        read_messages(metadata, memoryview(struct.pack(">I", size + 1) + group + bytes(data[4:])))


def test_the_size_of_the_metadata_of_messages_is_told_without_a_compression() -> None:
    _, data = of_one(3, messages=2)
    (size,) = struct.unpack_from(">I", data)
    assert metadata_size(data, 2, 2 * size) == 2 * size
    assert metadata_size(data, 2, 2 * size - 1) is None
    assert metadata_size(data[:-1], 3, 10 * size) == 2 * size, "up to where it is broken"


def test_a_batch_of_more_properties_than_anybody_writes_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MAX_PROPERTIES", 100)
    assert len(read_messages(*of_one(20, messages=5))) == 5
    with pytest.raises(EntryUnreadable, match="more than 100 properties"):
        read_messages(*of_one(21, messages=5))
