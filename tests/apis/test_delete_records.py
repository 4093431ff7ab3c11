"""DeleteRecords: the log start moves forward for everybody, and DescribeProducers and DescribeQuorum beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from kafka_sidecar.apis.a21_delete_records import delete_before
from kafka_sidecar.fleet.member import Member
from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.search.timestamp_search import TimestampAndOffset, by_time, greatest_timestamp
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kafka_sidecar.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kafka_sidecar.wire.messages.describe_quorum import DescribeQuorumRequest, PartitionData, TopicData
from tests.support.batches import batch, records_batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, fetch, open_partition, read_all
from tests.support.services import NAMESPACE, Sidecar

PARTITION = NAMESPACE + "t-partition-0"


@pytest_asyncio.fixture
async def sidecar() -> AsyncIterator[Sidecar]:
    """A topic of ten batches of two records."""
    one = Sidecar()
    one.admin.make("t")
    for number in range(10):
        await append(one.table.get(PARTITION), batch(b"a", b"b", timestamp=100 * number))
    yield one
    await one.close()


async def deleted(sidecar: Sidecar, before: int, topic: str = "t", index: int = 0) -> tuple[ErrorCode, int]:
    wanted = [DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=index, offset=before)])]
    answer = await sidecar.ask(DeleteRecordsRequest(topics=wanted, timeout_ms=5_000), 2)
    (result,) = answer.topics[0].partitions
    return result.error_code, result.low_watermark


async def offsets(partition: Partition) -> list[int]:
    return [offset for offset, _ in await read_all(partition, partition.log_start)]


@pytest.mark.parametrize(("before", "start"), [(4, 4), (5, 5), (20, 20), (-1, 20), (0, 0)])
async def test_what_is_before_an_offset_is_gone_for_everybody_and_after_a_restart(
    sidecar: Sidecar, before: int, start: int
) -> None:
    other = open_partition(sidecar.logs[PARTITION], "kafka-sidecar-other")
    await other.opened()
    assert await deleted(sidecar, before) == (ErrorCode.NONE, start)
    partition = sidecar.table.get(PARTITION)
    moved = sidecar.logs[PARTITION].start_moved_to
    if moved is not None:
        other.on_start_moved(moved)
    later = open_partition(sidecar.logs[PARTITION], "kafka-sidecar-later")
    for one in (partition, other, later):
        await one.opened()
        assert await one.confirmed_start() == start
        if start > 0:
            assert (await fetch(one, start - 1)).error is ErrorCode.OFFSET_OUT_OF_RANGE
        found = await offsets(one)
        assert found == list(range(start, 20)), "a batch is given whole, and clients take what is from the start on"
    other.close()
    later.close()


async def test_times_are_looked_for_behind_the_start(sidecar: Sidecar) -> None:
    await append(sidecar.table.get(PARTITION), batch(b"early", timestamp=5))
    await deleted(sidecar, 19)
    for partition in (sidecar.table.get(PARTITION), open_partition(sidecar.logs[PARTITION], "kafka-sidecar-later")):
        assert await by_time(partition, 0) == TimestampAndOffset(19, 901)
        assert await greatest_timestamp(partition) == TimestampAndOffset(19, 901)
        await partition.opened()
    await deleted(sidecar, 20)
    partition = sidecar.table.get(PARTITION)
    assert await by_time(partition, 0) == TimestampAndOffset(20, 5)
    assert await greatest_timestamp(partition) == TimestampAndOffset(20, 5)


async def test_of_a_batch_that_begins_before_the_start_only_what_is_left_counts(sidecar: Sidecar) -> None:
    partition = sidecar.table.get(PARTITION)
    data = records_batch([(None, b"x", 5_000), (None, b"y", 7), (None, b"z", 6)])
    await append(partition, data)
    assert await deleted(sidecar, 21) == (ErrorCode.NONE, 21)
    later = open_partition(sidecar.logs[PARTITION], "kafka-sidecar-later")
    for one in (partition, later):
        assert await greatest_timestamp(one) == TimestampAndOffset(21, 7)
        assert await greatest_timestamp(one) == TimestampAndOffset(21, 7)
        assert await by_time(one, 0) == TimestampAndOffset(21, 7)
        await one.opened()
    assert (await append(partition, batch(b"later", timestamp=9))).base_offset == 23
    assert await greatest_timestamp(partition) == TimestampAndOffset(23, 9)
    later.close()


async def test_the_end_that_is_deleted_to_is_that_of_the_question(sidecar: Sidecar) -> None:
    partition = sidecar.table.get(PARTITION)
    confirmed_start = partition.confirmed_start

    async def slow_start() -> int:
        start = await confirmed_start()
        await append(partition, batch(b"meanwhile"))
        return start

    partition.confirmed_start = slow_start  # type: ignore[method-assign]
    code, low = await deleted(sidecar, -1)
    assert code is ErrorCode.NONE
    partition.confirmed_start = confirmed_start  # type: ignore[method-assign]
    assert await deleted(sidecar, low + 1) == (ErrorCode.NONE, low + 1)


async def test_where_retention_takes_the_offset_meanwhile_the_start_is_what_is_left() -> None:
    """The broker's search then answers with the first entry that is left, which stands behind that offset."""
    log = MemoryLog()
    partition = open_partition(log)
    for number in range(6):
        await append(partition, batch(b"%d" % number))
        if number == 2:
            log.roll()
    find_index = log.find_index

    async def slow(index: int) -> Position | None:
        log.trim(3)
        return await find_index(index)

    class Moves:
        async def put(self, _: str, moved: MovedStart, /) -> None:
            log.start_moved_to = moved
            for one in (partition, behind):
                one.on_start_moved(moved)

    log.find_index = slow  # type: ignore[method-assign]
    behind = open_partition(log, "kafka-sidecar-behind", cache=1)
    await behind.opened()
    assert await delete_before(Moves(), partition, 1) == 3
    for one in (partition, behind, open_partition(log, "kafka-sidecar-later")):
        await one.opened()
        assert (await fetch(one, 1)).error is ErrorCode.OFFSET_OUT_OF_RANGE
        assert await one.confirmed_start() == 3
        one.close()


async def test_a_start_that_was_moved_is_told_though_nothing_comes_of_the_first_ledger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its storage is slow, or away. Where its first entry begins can't be told then."""
    monkeypatch.setattr("kafka_sidecar.pulsar.raw_entries.ENTRY_SECONDS", 0.02)
    monkeypatch.setattr("kafka_sidecar.partition.opening.SILENT_SECONDS", 0.05)
    log = MemoryLog()
    before = open_partition(log)
    for number in range(6):
        await append(before, batch(b"%d" % number))
        if number == 2:
            log.roll()
    before.close()
    log.roll()
    log.write(batch(b"6"))
    log.trim(3)
    log.start_moved_to = MovedStart(log.present[0].position, 3)
    log.silent.add(log.present[0].position.ledger)
    partition = open_partition(log)
    assert await partition.opened() is ErrorCode.NONE
    assert await partition.confirmed_start() == 3
    partition.close()


async def test_a_start_never_moves_back(sidecar: Sidecar) -> None:
    assert await deleted(sidecar, 10) == (ErrorCode.NONE, 10)
    assert await deleted(sidecar, 5) == (ErrorCode.NONE, 10)
    assert await sidecar.table.get(PARTITION).confirmed_start() == 10


@pytest.mark.parametrize(
    ("before", "topic", "index", "code"),
    [
        (21, "t", 0, ErrorCode.OFFSET_OUT_OF_RANGE),
        (-2, "t", 0, ErrorCode.OFFSET_OUT_OF_RANGE),
        (1, "missing", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (1, "t", 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (1, "a b", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        (1, "compacted", 0, ErrorCode.POLICY_VIOLATION),
    ],
)
async def test_what_can_not_be_deleted_is_refused(
    sidecar: Sidecar, before: int, topic: str, index: int, code: ErrorCode
) -> None:
    sidecar.admin.make("compacted")
    sidecar.admin.properties[NAMESPACE + "compacted"] = {"cleanup.policy": "compact"}
    assert await deleted(sidecar, before, topic, index) == (code, -1)


async def test_a_start_that_was_moved_in_a_topic_of_the_same_name_is_none_of_this_one() -> None:
    log = MemoryLog(ledger=7, start_moved_to=MovedStart(Position(3, 5), 100))
    partition = open_partition(log)
    for number in range(3):
        assert (await append(partition, batch(b"%d" % number))).base_offset == number
    assert await partition.confirmed_start() == 0
    assert await offsets(partition) == [0, 1, 2]
    partition.close()


async def test_no_start_is_told_of_a_partition_that_has_ended_meanwhile() -> None:
    log = MemoryLog()
    for number in range(100):
        log.write(batch(b"%d" % number))
    partition = open_partition(log)

    class Ends:
        async def put(self, _: str, moved: MovedStart, /) -> None:
            partition.close()
            log.start_moved_to = moved

    with pytest.raises(Unavailable, match="closed"):
        await delete_before(Ends(), partition, 60)
    reopened = open_partition(log, "kafka-sidecar-next")
    assert await reopened.opened() is ErrorCode.NONE
    assert await reopened.confirmed_start() == 60
    reopened.close()


async def test_retention_that_takes_more_than_was_deleted_counts() -> None:
    log = MemoryLog()
    writer = open_partition(log)
    for number in range(6):
        if number % 2 == 0:
            log.roll()
        await append(writer, batch(b"%d" % number))
    writer.close()
    log.start_moved_to = MovedStart(log.entries[1].position, 1)
    log.trim(4)
    partition = open_partition(log, "kafka-sidecar-later")
    await partition.opened()
    assert await partition.confirmed_start() == 4
    partition.close()


async def test_the_producers_of_a_partition_are_those_that_its_log_knows(sidecar: Sidecar) -> None:
    partition = sidecar.table.get(PARTITION)
    for sequence in range(100):
        await append(partition, batch(b"x", producer_id=7, epoch=2, sequence=sequence, timestamp=sequence))
    await append(partition, batch(b"x", producer_id=9, epoch=0, sequence=0, timestamp=55))
    for _ in range(100):
        await append(partition, batch(b"of no producer"))
    wanted = [TopicRequest(name="t", partition_indexes=[0, 7]), TopicRequest(name="missing", partition_indexes=[0])]
    sidecar.table.forget(PARTITION)  # what it knew of them: it is read back
    answer = await sidecar.ask(DescribeProducersRequest(topics=wanted), 0)
    known, unknown = answer.topics[0].partitions
    told = [
        (one.producer_id, one.producer_epoch, one.last_sequence, one.last_timestamp) for one in known.active_producers
    ]
    assert told == [(7, 2, 99, 99), (9, 0, 0, 55)]
    assert (unknown.error_code, answer.topics[1].partitions[0].error_code) == (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ) * 2


async def test_the_quorum_is_of_the_live_nodes_and_all_have_caught_up(sidecar: Sidecar) -> None:
    sidecar.fleet.change(Member(2, "other", 9093))
    wanted = [
        TopicData(topic_name="__cluster_metadata", partitions=[PartitionData(partition_index=0)]),
        TopicData(topic_name="t", partitions=[PartitionData(partition_index=0)]),
    ]
    answer = await sidecar.ask(DescribeQuorumRequest(topics=wanted), 2)
    (quorum,), (other,) = (topic.partitions for topic in answer.topics)
    assert [(one.replica_id, one.log_end_offset) for one in quorum.current_voters] == [(0, 0), (2, 0)], (
        "no offset is negative"
    )
    assert all(one.last_caught_up_timestamp > 0 for one in quorum.current_voters)
    assert (quorum.leader_id, quorum.high_watermark) == (0, 0)
    assert [(node.node_id, node.listeners[0].port) for node in answer.nodes] == [(0, 9092), (2, 9093)]
    assert other.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
