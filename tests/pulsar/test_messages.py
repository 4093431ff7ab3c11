"""What is opened of a batch of Pulsar's."""

from __future__ import annotations

import pytest

from handler.errors import EntryUnreadable
from handler.pulsar import messages
from handler.pulsar.messages import read_messages, write_batch
from handler.pulsar.pulsar_api_pb2 import MessageMetadata


def test_a_batch_of_more_messages_than_anybody_writes_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "MAX_MESSAGES", 10)
    for count in (10, 11):
        payload = write_batch([(b"k", b"v")] * count, 1)
        metadata = MessageMetadata(producer_name=b"p", sequence_id=0, publish_time=1, num_messages_in_batch=count)
        metadata.uncompressed_size = len(payload)
        if count == 10:
            assert len(read_messages(metadata, memoryview(payload))[0]) == 10
        else:
            with pytest.raises(EntryUnreadable, match="no more than 10"):
                read_messages(metadata, memoryview(payload))
