"""`verify` accounts for every index: what is well is told as well, and each thing that can be wrong is found."""

from __future__ import annotations

import io
import json
from collections.abc import Callable

import pytest

from kafka_sidecar.commands.verify.audit import FINDINGS_OF_A_KIND, Kind, PartitionReport, Severity, severity_of
from kafka_sidecar.commands.verify.report import as_json, lines, summary
from kafka_sidecar.commands.verify.verify import Progress, audited
from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.partition.log.log_config import LogConfig
from kafka_sidecar.partition.log.port import LogReader
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.pulsar.events import ConsumerEvents
from kafka_sidecar.pulsar.messages import write_batch
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from tests.partition.read.test_chunked_messages import parts_of
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, open_partition

PLAIN = MessageMetadata(producer_name=b"native", sequence_id=0, publish_time=1)


async def report_of(log: MemoryLog, moved: MovedStart | None = None) -> PartitionReport:
    return await audited(log.named("verify"), "t-partition-0", moved, Progress(io.StringIO(), "t", lambda: 0.0))


def found(report: PartitionReport) -> dict[Kind, int]:
    return dict(report.counts)


async def test_a_log_of_all_kinds_that_is_well_has_no_findings() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    for sequence in range(100):
        await append(partition, batch(b"a", b"b", producer_id=7, epoch=0, sequence=2 * sequence, codec=sequence % 5))
        if sequence % 30 == 0:
            log.roll()
    partition.set_config(LogConfig(log_append_time=True))
    await append(partition, batch(b"timed"))
    partition.close()
    log.append(PLAIN, 1, b"native")
    report = await report_of(log)
    assert found(report) == {}
    assert dict(report.formats) == {"kafka": 101, "pulsar": 1}
    assert "102 entries (101 kafka, 1 pulsar)" in "".join(lines(report))
    assert (report.first_offset, report.next_offset, report.entries, report.batches) == (0, 202, 102, 102)
    assert summary([report]).endswith("every index is accounted for")
    assert json.loads(as_json([report]))["faults"] == 0


async def test_an_empty_log_is_well() -> None:
    report = await report_of(MemoryLog())
    assert (report.faults, report.first_offset) == (0, None)
    assert "no offsets" in "".join(lines(report))


def _repeat(log: MemoryLog) -> None:
    log.index -= 2


def _skip(log: MemoryLog) -> None:
    log.index += 3


def _fail_write(log: MemoryLog) -> None:
    log.index += 3
    log.roll()


def _mark(log: MemoryLog) -> None:
    for _ in range(3):
        log.mark()


def _no_index(log: MemoryLog) -> None:
    _replace_last(log, last_index=None)


def _unreadable(log: MemoryLog) -> None:
    log.append(MessageMetadata(producer_name=b"n", sequence_id=0, publish_time=1, compression=9), 1, b"?")


def _damage(log: MemoryLog) -> None:
    payload = bytearray(log.entries[-1].payload)
    payload[-1] ^= 1
    log.entries[-1].payload = memoryview(bytes(payload))


def _lose_ledger(log: MemoryLog) -> None:
    log.roll()
    for _ in range(4):
        log.hidden.add(log.write(batch(b"lost", b"lost")))
    log.roll()


def _lose_entries(log: MemoryLog) -> None:
    for _ in range(2):
        log.hidden.add(log.write(batch(b"lost", b"lost", b"lost")))


def _encrypt(log: MemoryLog) -> None:
    metadata = MessageMetadata()
    metadata.CopyFrom(PLAIN)
    metadata.encryption_keys.add(key=b"k", value=b"v")
    log.append(metadata, 1, b"secret")


def _lose_chunk(log: MemoryLog) -> None:
    for metadata, payload in parts_of(b"abcdef", 3)[1:]:
        log.append(metadata, 1, payload)


def _all_chunks(log: MemoryLog) -> None:
    for metadata, payload in parts_of(b"abcdef", 3):
        log.append(metadata, 1, payload)


def _resend(log: MemoryLog) -> None:
    again = log.entries[-1]
    log.append(again.message_metadata, 2, bytes(again.payload))


def _replace_last(log: MemoryLog, last_index: int | None) -> None:
    last = log.entries[-1]
    log.entries[-1] = RawEntry(last.position, last_index, last.broker_timestamp, last.metadata, last.payload)


@pytest.mark.parametrize(
    ("happen", "kind", "count", "severity"),
    [
        (_repeat, Kind.REPEATED, 2, Severity.FAULT),
        (_skip, Kind.GAP, 3, Severity.WARNING),
        (_fail_write, Kind.FAILED_WRITE, 3, Severity.NOTE),
        (_mark, Kind.KEPT_BACK, 3, Severity.NOTE),
        (_no_index, Kind.NO_INDEX, 1, Severity.FAULT),
        (_unreadable, Kind.UNREADABLE, 1, Severity.FAULT),
        (_damage, Kind.CHECKSUM, 1, Severity.FAULT),
        (_lose_ledger, Kind.LOST, 8, Severity.FAULT),
        (_lose_entries, Kind.LOST, 6, Severity.FAULT),
        (_encrypt, Kind.ENCRYPTED, 1, Severity.NOTE),
        (_lose_chunk, Kind.INCOMPLETE, 1, Severity.WARNING),
        (_resend, Kind.HIDDEN, 1, Severity.NOTE),
    ],
    ids=lambda one: one.__name__ if callable(one) and not isinstance(one, type) else None,
)
async def test_what_is_wrong_is_found_and_nothing_else(
    happen: Callable[[MemoryLog], None], kind: Kind, count: int, severity: Severity
) -> None:
    log = MemoryLog()
    for _ in range(3):
        log.write(batch(b"a", b"b"))
    happen(log)
    for _ in range(3):
        log.write(batch(b"a", b"b"))
    report = await report_of(log)
    offsets_of_no_index = {Kind.GAP: 2} if happen is _no_index else {}  # those of the entry itself, which nobody knows
    assert found(report) == {kind: count} | offsets_of_no_index
    assert severity_of(kind) is severity
    assert bool(report.faults) == (severity is Severity.FAULT)
    text = "\n".join(lines(report))
    assert f"{count} {kind.value}" in text
    (finding,) = [
        one for one in json.loads(as_json([report]))["partitions"][0]["findings"] if one["kind"] == kind.name.lower()
    ]
    assert finding["severity"] == severity.value


async def test_chunks_that_are_all_there_are_no_finding() -> None:
    log = MemoryLog()
    _all_chunks(log)
    assert found(await report_of(log)) == {}


async def test_a_log_that_begins_before_the_interceptor_was_on_says_where_it_is_served_from() -> None:
    log = MemoryLog()
    for _ in range(3):
        log.append(PLAIN, 1, b"old")
        _replace_last(log, last_index=None)
    log.index = -1
    everything = await report_of(log)
    assert found(everything) == {Kind.BEFORE_INDEX: 3}
    log.write(batch(b"new"))
    report = await report_of(log)
    assert (found(report), report.first_offset, report.faults) == ({Kind.BEFORE_INDEX: 3}, 0, 0)


async def test_a_log_that_had_indexes_and_has_none_any_more_is_a_fault() -> None:
    log = MemoryLog()
    log.write(batch(b"a"))
    _replace_last(log, last_index=None)
    log.note_index()
    assert found(await report_of(log)) == {Kind.NO_INDEX: 1}


async def test_an_index_that_is_too_small_for_its_batch_is_a_fault() -> None:
    log = MemoryLog()
    log.write(batch(b"a", b"b", b"c"))
    _replace_last(log, last_index=0)
    assert found(await report_of(log)) == {Kind.REPEATED: 2}


async def test_a_log_that_can_not_be_read_is_a_fault_and_nothing_else_is_said_of_it() -> None:
    log = MemoryLog()
    log.write(batch(b"a"))

    async def reader(start: Position | None, events: ConsumerEvents) -> LogReader:
        raise Unavailable("no broker")

    view = log.named("verify")
    view.reader = reader  # type: ignore[method-assign]
    report = await audited(view, "t-partition-0", None, Progress(io.StringIO(), "t", lambda: 0.0))
    assert found(report) == {Kind.UNREAD: 1}
    assert "no broker" in "\n".join(lines(report))


async def test_unexplained_gaps_are_not_called_accounted_for() -> None:
    log = MemoryLog()
    log.write(batch(b"a"))
    _skip(log)
    log.write(batch(b"b"))
    assert "3 offsets that nobody can account for" in summary([await report_of(log)])


async def test_what_retention_and_clients_have_removed_is_told() -> None:
    log = MemoryLog()
    for _ in range(6):
        log.write(batch(b"a", b"b"))
    log.trim(2)
    report = await report_of(log, MovedStart(log.entries[3].position, 7))
    assert found(report) == {Kind.TRIMMED: 4, Kind.MOVED_START: 3}
    assert report.first_offset == 4


async def test_of_many_findings_some_are_told_and_all_are_counted() -> None:
    log = MemoryLog()
    for _ in range(100):
        _unreadable(log)
    report = await report_of(log)
    assert (report.counts[Kind.UNREADABLE], len(report.findings)) == (100, FINDINGS_OF_A_KIND)
    assert "and more" in "\n".join(lines(report))


async def test_progress_is_shown_on_a_terminal_and_gone_at_the_end() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    log = MemoryLog()
    for _ in range(1_000):
        log.append(MessageMetadata.FromString(PLAIN.SerializeToString()), 1, b"x" * 100)
    terminal = Terminal()
    now = iter(range(1_000_000))
    await audited(log.named("verify"), "t", None, Progress(terminal, "t", lambda: float(next(now))))
    shown = terminal.getvalue()
    assert "13%" in shown
    assert "MiB/s" in shown
    assert shown.endswith("\r\x1b[K")


async def test_a_native_batch_that_says_more_records_than_the_broker_counted_is_unreadable() -> None:
    log = MemoryLog()
    log.write(batch(b"before"))
    messages = write_batch([(b"", b"m%d" % number) for number in range(3)], 0)
    log.append(
        MessageMetadata(producer_name=b"native", sequence_id=0, publish_time=1, num_messages_in_batch=3), 1, messages
    )
    log.write(batch(b"behind"))
    assert found(await report_of(log)) == {Kind.UNREADABLE: 1}
