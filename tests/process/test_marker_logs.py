"""Markers in the logs of partitions: what is said of a partition that can't be opened."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kafka_sidecar.process.marker_logs import MarkerLogs
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.topics.names import TopicName, TopicNames
from kafka_sidecar.wire.control_records import EndTransactionMarker, write_marker
from kafka_sidecar.wire.error_code import ErrorCode

MARKER = write_marker(7, 0, EndTransactionMarker(True, 0), 1)


class Partition:
    def __init__(self, opened: ErrorCode) -> None:
        self._opened = opened
        self.is_written = False

    async def opened(self) -> ErrorCode:
        return self._opened

    async def end_transaction(self, marker: bytes, number: int, deadline: float) -> ErrorCode:
        self.is_written = True
        return ErrorCode.NONE


def logs(partition: Partition, *, is_there: bool = False) -> MarkerLogs:
    """`is_there`: by the admin API."""
    names = TopicNames("public/default", "public/__kafka")

    async def has_partition(name: TopicName, index: int) -> bool:
        assert (name.local, index) == ("t", 0)
        return is_there

    return MarkerLogs(
        names, cast(Any, {names.parse("t").partition(0): partition}), cast(Any, None), cast(Any, None), has_partition
    )


@pytest.mark.parametrize("opened", [ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
async def test_the_marker_is_written_where_the_partition_opens(opened: ErrorCode) -> None:
    partition = Partition(opened)
    assert await logs(partition).append_marker(("t", 0), MARKER, 1, 5.0) is opened
    assert partition.is_written is (opened is ErrorCode.NONE)


@pytest.mark.parametrize("opened", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR])
async def test_a_partition_that_can_not_be_opened_does_not_tell_whether_its_topic_is_there(opened: ErrorCode) -> None:
    partition = Partition(opened)
    with pytest.raises(Unavailable, match="t-0 can't be opened now"):
        await logs(partition).append_marker(("t", 0), MARKER, 1, 5.0)
    assert not partition.is_written


async def test_one_that_a_broker_does_not_know_is_there_if_the_admin_api_has_it() -> None:
    with pytest.raises(Unavailable, match="t-0 can't be opened now"):
        await logs(Partition(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), is_there=True).append_marker(
            ("t", 0), MARKER, 1, 5.0
        )
