"""How a partition begins: where its fold starts, so that its end is known soon, and what is known when it has come
there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, NamedTuple, Protocol

from kafka_sidecar.partition.fold.fold import BEFORE_ALL, SWITCH_ON, Fold, IndexAlarm
from kafka_sidecar.partition.fold.transactions import TransactionTable
from kafka_sidecar.partition.follow.read_entries import NothingToRead, begins_with, first_entry
from kafka_sidecar.partition.follow.read_to_end import ReadToEnd, end_without_records
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.pulsar.entry import LogStats, Position
from kafka_sidecar.pulsar.raw_entries import NoEntryCame

# An opened partition begins to fold this far before its last entry. The next batches are judged by those that were in
# flight at the same time, and most consumers resume close to the log end.
ENTRIES_BEFORE_END: Final = 64
BYTES_BEFORE_END: Final = 1024 * 1024
# If a ledger delivers no entry within 5 s, the fold begins in a later ledger, where it may.
SILENT_SECONDS: Final = 5.0


class FoldSnapshots(Protocol):
    async def restore(
        self, log: EntryLog, transactions_behind: Position, may_have_lost: Callable[[], Awaitable[bool]]
    ) -> bool:
        """Give the fold what was kept of it. False where nothing was of use. `may_have_lost`: to retention,
        transactions.
        """
        ...

    def begins_without_transactions(self, up_to: Position) -> None:
        """Nobody has announced one that stands there or before."""
        ...

    async def recall_ended(self, log_: EntryLog) -> None:
        """Of a log that holds nothing, which transactions have ended. A batch of theirs may still come. May raise
        PulsarError.
        """
        ...


class Begun(NamedTuple):
    stats: LogStats
    log_start: int | None  # The first offset of the log; None if the fold began further on


async def begin_fold(
    log: EntryLog,
    fold: Fold,
    transactions: TransactionTable,
    to_end: ReadToEnd,
    kept: FoldSnapshots,
    announce: Callable[[], object] | None,
) -> Begun:
    """Fold a little before the last entry up to it. Raises PulsarError, IndexAlarm.

    What tells a retry is read when somebody appends to whom it matters. A log with transactions is folded from their
    beginning, or from where that was kept: all of them have to be known before anything is said of one.

    `announce`: others have written transactions here, and that may not be stored yet.
    """
    stats = await log.stats()
    if stats.last is None:
        # The topic was never written to, or is trimmed completely. The managed ledger's properties hold its last index,
        # which may include entries that were written after the first stats.
        last_index = await log.index_property()
        stats = await log.stats()
    # Read after the stats: each transaction is announced before its first batch is written, so the announcement covers
    # all transactions within the stats.
    transactions_behind = await log.transactions_from()
    if announce is not None and transactions_behind != BEFORE_ALL:
        announce()
        transactions_behind = BEFORE_ALL
    transactions.known_from = transactions_behind
    if transactions_behind is None:
        kept.begins_without_transactions(stats.last or BEFORE_ALL)
    if stats.last is None:
        fold.begin_empty(0 if last_index is None else last_index + 1)
        fold.begins_behind = stats.end or BEFORE_ALL
        if transactions_behind is not None:
            await kept.recall_ended(log)
    elif transactions_behind is None:
        _begin_before(stats, stats.last, fold)
    elif not await kept.restore(
        log, transactions_behind, partial(_may_have_lost, log, stats.first, transactions_behind)
    ):
        _begin_before(stats, stats.last, fold, transactions_behind.after())
    await _read_to_end_first(log, stats, fold, to_end, may_begin_later=transactions_behind is None)
    if fold.reached is None and not fold.knows_next_offset:
        await _begin_where_nothing_is_read(log, fold, to_end)
    if fold.passed_to is not None:
        await _check_entries_without_index(log, fold, fold.passed_to)
    transactions.recall_up_to(fold.next_offset)
    log_start = fold.seen_from if fold.begins_at_first else None
    fold.producers.knows_the_past = fold.has_all
    return Begun(stats, log_start)


async def _read_to_end_first(
    log: EntryLog, stats: LogStats, fold: Fold, to_end: ReadToEnd, *, may_begin_later: bool
) -> None:
    """Where nothing comes of the ledger before the last one, for its storage is slow or away, the fold begins with the
    last.
    """
    start, last = fold.replayed_from, stats.last
    if not may_begin_later or start is None or last is None or start.ledger == last.ledger:
        await to_end.run_first(last)
        return
    try:
        await to_end.run_first(last, SILENT_SECONDS)
    except NoEntryCame:
        last = (await log.stats()).last
        if fold.reached is None and last is not None and start.ledger != last.ledger:
            to_end.begin_at(Position(last.ledger, 0))
        await to_end.run_first(last)


async def _may_have_lost(log: EntryLog, first: Position | None, transactions_behind: Position) -> bool:
    """Whether retention may have taken transactions."""
    if first is None or transactions_behind >= first or await begins_with(log, first):
        return False
    try:
        # The index of an entry is that of its last record, so its base offset has to be compared.
        entry = await first_entry(log)
    except (NothingToRead, NoEntryCame):
        return True
    return entry is None or entry.base_offset > 0


def _begin_before(stats: LogStats, last: Position, fold: Fold, at_the_latest: Position | None = None) -> None:
    start = stats.before(last, ENTRIES_BEFORE_END, BYTES_BEFORE_END)
    if at_the_latest is not None and stats.first is not None:
        start = max(min(start, at_the_latest), stats.first)
    # Set even if the fold begins at the first entry, since a snapshot may know of trimmed entries before it.
    fold.replayed_from = start
    fold.begins_at_first = start == stats.first


async def _begin_where_nothing_is_read(log: EntryLog, fold: Fold, to_end: ReadToEnd) -> None:
    """All entries that are left are markers of Pulsar's own, which take an index and no reader is given."""
    end = await end_without_records(log, await log.stats())
    await to_end.run_first((await log.stats()).last)  # Other writers may have appended entries before the end was read
    if fold.reached is None and not fold.knows_next_offset:
        fold.replayed_from, fold.begins_at_first = None, True
        fold.begin_empty(end)


async def _check_entries_without_index(log: EntryLog, fold: Fold, passed_to: Position) -> None:
    """Entries without an index stand before all others, or the interceptor was switched off since, or indexes are no
    longer shown.
    """
    first = await log.first_indexed()
    if first is not None and first <= passed_to:
        raise IndexAlarm(
            f"the log has indexes from entry {first} on, but entry {passed_to} came without one: {SWITCH_ON}"
        )
    last_index = await log.index_property()
    if fold.knows_next_offset:  # Another writer has appended an entry in the meantime
        return
    known = -1 if last_index is None else last_index
    if first is None and known >= 0:
        raise IndexAlarm(f"the log had come to index {known}, but its last entries have none: {SWITCH_ON}")
    # If entries with an index are left, they are ones that the broker hands to no reader, such as Pulsar markers.
    fold.begin_empty(known + 1)
