"""Offsets of transactions: which count when they have ended, whatever came between, and however often that is said."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.groups.pending_offsets import MOST_TOGETHER, PendingOffsets
from kafka_sidecar.groups.records import (
    OffsetCommitKey,
    OffsetCommitValue,
    PendingOffsetKey,
    PendingOffsetValue,
    Record,
    read_record,
    write_key,
)
from kafka_sidecar.groups.records import write_value as encode

AT = OffsetCommitKey("g", "t", 0)


def value(offset: int) -> OffsetCommitValue:
    return OffsetCommitValue(offset, -1, "m", 5, -1)


def pending(producer: int, number: int, offset: int) -> Record:
    return Record(PendingOffsetKey(producer, *AT), PendingOffsetValue(number, value(offset)))


class Log:
    """The records of a shard, and what is made of them."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.pending = PendingOffsets()
        self.committed: int | None = None

    def add(self, *records: Record) -> None:
        for record in records:
            self.records.append(record)
            self._apply(record)

    def _apply(self, record: Record) -> None:
        if isinstance(record.key, PendingOffsetKey):
            assert record.value is None or isinstance(record.value, PendingOffsetValue)
            self.pending.apply(record.key, record.value)
        else:
            assert isinstance(record.key, OffsetCommitKey)
            assert record.value is None or isinstance(record.value, OffsetCommitValue)
            self.pending.overtake(record.key)
            self.committed = None if record.value is None else record.value.offset

    def commit(self, offset: int) -> None:
        self.add(Record(AT, value(offset)))

    def reload(self) -> None:
        """As the next leader reads it: of each key the last."""
        last = {record.key: number for number, record in enumerate(self.records)}
        kept = [record for number, record in enumerate(self.records) if last[record.key] == number]
        self.pending, self.committed, self.records = PendingOffsets(), None, []
        self.add(*kept)


def test_records_come_back_as_they_were_written() -> None:
    record = pending(2**62, 9, 40)
    assert record.value is not None
    assert read_record(write_key(record.key), encode(record.value)) == record
    assert read_record(write_key(record.key), None) == Record(record.key, None)


def test_what_is_pending_counts_when_its_transaction_commits_and_not_before() -> None:
    log = Log()
    log.commit(1)
    log.add(pending(7, 3, 10))
    assert log.committed == 1
    assert log.pending.of_group("g") == {("t", 0)}
    assert not log.pending.of_group("h")
    log.add(*log.pending.completion(7, 3, committed=True).records)
    assert (log.committed, len(log.pending)) == (10, 0)
    assert not log.pending.of_group("g")
    log.add(*log.pending.completion(7, 3, committed=True).records)
    assert log.committed == 10


def test_an_abort_leaves_what_was_committed() -> None:
    log = Log()
    log.commit(1)
    log.add(pending(7, 3, 10))
    log.add(*log.pending.completion(7, 3, committed=False).records)
    assert (log.committed, len(log.pending)) == (1, 0)


def test_who_has_taken_over_and_gone_on_is_not_set_back() -> None:
    log = Log()
    log.add(pending(7, 3, 10))
    log.commit(20)
    log.reload()
    log.add(*log.pending.completion(7, 3, committed=True).records)
    assert log.committed == 20


def test_a_completion_that_a_crash_has_cut_is_done_again() -> None:
    log = Log()
    log.add(pending(7, 3, 10))
    records = log.pending.completion(7, 3, committed=True).records
    log.add(*records[:1])
    log.reload()
    log.commit(30)
    log.add(*log.pending.completion(7, 3, committed=True).records)
    assert (log.committed, len(log.pending)) == (30, 0), "the repeat does not set it back"


def test_of_two_transactions_the_one_that_committed_its_offset_later_counts() -> None:
    for order in ((7, 8), (8, 7)):
        log = Log()
        log.add(pending(7, 3, 10), pending(8, 1, 20))
        for producer in order:
            log.add(*log.pending.completion(producer, 3 if producer == 7 else 1, committed=True).records)
            log.reload()
        assert log.committed == 20


def test_a_transaction_ends_what_came_before_it_and_nothing_that_comes_later() -> None:
    log = Log()
    log.add(pending(7, 4, 10))
    assert log.pending.completion(7, 3, committed=True).records == []
    log.pending.end(7, 3)
    assert [log.pending.has_ended(7, number) for number in (2, 3, 4)] == [True, True, False]


def test_what_is_pending_of_an_earlier_transaction_goes_and_does_not_count() -> None:
    """It came behind its marker. That transaction may have been aborted."""
    log = Log()
    log.commit(1)
    log.add(pending(7, 3, 10))
    log.add(*log.pending.completion(7, 4, committed=True).records)
    assert (log.committed, len(log.pending)) == (1, 0)


def test_what_is_written_of_one_partition_is_written_together() -> None:
    """If the log had the offset, and not what is pending behind it, another transaction would lose its own."""
    pending_offsets, partitions = PendingOffsets(), range(2 * MOST_TOGETHER)
    for producer in (7, 8):
        for partition in partitions:
            at = OffsetCommitKey("g", "t", partition)
            pending_offsets.apply(PendingOffsetKey(producer, *at), PendingOffsetValue(1, value(producer)))
    parts = list(pending_offsets.completion(7, 1, committed=True).parts())
    assert max(map(len, parts)) <= MOST_TOGETHER
    written = [[record.key for record in part] for part in parts]
    for partition in partitions:
        at = OffsetCommitKey("g", "t", partition)
        (together,) = [keys for keys in written if at in keys]
        assert PendingOffsetKey(8, *at) in together


_steps = st.lists(
    st.tuples(
        st.sampled_from(("plain", "pending", "commit", "abort", "reload")), st.sampled_from((7, 8)), st.booleans()
    ),
    max_size=25,
)


@given(_steps)
def test_the_offset_is_that_of_kafkas_rule(steps: list[tuple[str, int, bool]]) -> None:
    """Kafka keeps for each offset where in the log it was written, and a pending one counts if that is behind."""
    log = Log()
    committed: tuple[int, int] | None = None  # where it was written, and the offset
    waiting: dict[int, tuple[int, int]] = {}
    numbers = {7: 1, 8: 1}
    for offset, (what, producer, again) in enumerate(steps):
        if what == "plain":
            log.commit(offset)
            committed = (offset, offset)
        elif what == "pending":
            log.add(pending(producer, numbers[producer], offset))
            waiting[producer] = (offset, offset)
        elif what == "reload":
            log.reload()
        else:
            for _ in range(1 + again):
                log.add(*log.pending.completion(producer, numbers[producer], what == "commit").records)
            mine = waiting.pop(producer, None)
            if what == "commit" and mine is not None and (committed is None or mine > committed):
                committed = mine
            numbers[producer] += 1
        assert log.committed == (None if committed is None else committed[1])
        assert bool(log.pending.of_group("g")) is bool(waiting)


def test_what_is_on_its_way_behind_a_pending_offset_overtakes_it() -> None:
    log = Log()
    log.add(pending(7, 1, 40))
    completion = log.pending.completion(7, 1, True, overtaken={AT})
    assert (completion.offsets, completion.partitions, completion.gone) == (
        [],
        set(),
        [Record(pending(7, 1, 40).key, None)],
    )
    assert log.pending.completion(7, 1, True).partitions == {AT}
