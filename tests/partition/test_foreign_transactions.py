"""Transactions that others than sidecars wrote."""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.partition.fold.fold import BEFORE_ALL
from kafka_sidecar.partition.follow.failures import EntryFailures
from kafka_sidecar.partition.log.formats import KAFKA
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.control_records import EndTransactionMarker, write_marker
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.fake_broker import until
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, open_partition
from tests.support.transactions import ABORTED, Coordinator, committed_values, end, write


def write_as_kop(log: MemoryLog, data: bytes) -> None:
    metadata = MessageMetadata(producer_name=b"kop", sequence_id=0, publish_time=1)
    metadata.MergeFromString(KAFKA.fields)
    log.append(metadata, 1, data)


async def test_what_was_learnt_of_producers_says_nothing_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who read them first could not announce them, and kept what it knew of producers."""
    log, states = MemoryLog(), MemoryStates()
    first = open_partition(log, "kafka-sidecar-a", states=states)
    assert (await append(first, batch(b"0", producer_id=7, epoch=0, sequence=0))).error is ErrorCode.NONE

    async def fails(_: object) -> None:
        raise Unavailable("no broker takes it now")

    with monkeypatch.context() as patch:
        patch.setattr(log, "begin_transactions", fails)
        write_as_kop(log, batch(b"aborted", producer_id=99, epoch=0, sequence=0, transactional=True))
        write_as_kop(log, write_marker(99, 0, EndTransactionMarker(False, 0), 1_000))
        assert await committed_values(first) == [b"0"]
    await asyncio.gather(*first.close())
    for _ in range(200):
        log.write(batch(b"plain"))
    second = open_partition(log, "kafka-sidecar-b", states=states)
    assert (await append(second, batch(b"1", producer_id=7, epoch=0, sequence=1))).error is ErrorCode.NONE
    second.read_committed(0, 100_000, at_least_one=True, since=0)
    await until(lambda: second.ended)
    third = open_partition(log, "kafka-sidecar-c", states=states)
    shown = await committed_values(third)
    assert [value for value in shown if value != b"plain"] == [b"0", b"1"]
    third.close()


@pytest.mark.parametrize("begins_early", [True, False])
async def test_their_second_marker_fences_as_the_first_one_did(begins_early: bool) -> None:
    """Others number nothing that they write, so it is no copy of the first."""
    log, coordinator = MemoryLog(), Coordinator()
    for _ in range(200):
        log.write(batch(b"before"))
    announcing = open_partition(log, "kafka-sidecar-announcing")
    assert (await write(announcing, coordinator, b"aborted", sequence=0, producer=9)).error is ErrorCode.NONE
    assert (await end(announcing, ABORTED, producer=9)).error is ErrorCode.NONE
    early = open_partition(log, "kafka-sidecar-early")
    assert (await append(early, batch(b"0", producer_id=1, epoch=0, sequence=0))).error is ErrorCode.NONE
    for epoch in (3, 4):
        write_as_kop(log, write_marker(7, epoch, EndTransactionMarker(False, 0), 1_000))
    fencing = early if begins_early else open_partition(log, "kafka-sidecar-late")
    assert await fencing.opened() is ErrorCode.NONE
    await fencing.confirmed_end()
    assert (
        await append(fencing, batch(b"of before", producer_id=7, epoch=3, sequence=0))
    ).error is ErrorCode.INVALID_PRODUCER_EPOCH
    for partition in {announcing, early, fencing}:
        partition.close()


async def test_what_could_not_be_announced_is_known_when_the_partition_is_opened_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it would end at the same entry, again and again."""
    log, states, failures = MemoryLog(), MemoryStates(), EntryFailures()
    log.write(batch(b"0"))
    for _ in range(200):
        log.write(batch(b"plain"))
    refused = 0

    async def fails(_: object) -> None:
        nonlocal refused
        refused += 1
        raise Unavailable("no broker takes it now")

    with monkeypatch.context() as patch:
        patch.setattr(log, "begin_transactions", fails)
        first = open_partition(log, "kafka-sidecar-a", states=states, failures=failures)
        await first.opened()
        write_as_kop(log, batch(b"aborted", producer_id=99, epoch=0, sequence=0, transactional=True))
        write_as_kop(log, write_marker(99, 0, EndTransactionMarker(False, 0), 1_000))
        first.read(first.end_offset, 1_000, at_least_one=True, since=0)
        await until(lambda: first.ended)
        second = open_partition(log, "kafka-sidecar-b", states=states, failures=failures)
        assert [value for value in await committed_values(second) if value != b"plain"] == [b"0"]
        assert (await append(second, batch(b"1", producer_id=7, epoch=0, sequence=0))).error is ErrorCode.NONE
        assert second.ended is None
        await asyncio.gather(*second.close())
    assert refused == 2
    third = open_partition(log, "kafka-sidecar-c", states=states, failures=failures)
    await third.opened()
    await until(lambda: log.transactions_behind == BEFORE_ALL)
    third.close()
