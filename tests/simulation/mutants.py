"""Planted faults: each replaces one method, and the simulation must find it. `python -m tests.simulation.mutants [NAME
…]`.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from kafka_sidecar.partition.fold.producers import ACCEPTED
from kafka_sidecar.partition.log.formats import KAFKA
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.wire.error_code import ErrorCode
from tests.simulation.plan import drawn
from tests.simulation.planted import Mutant, search
from tests.simulation.run import run_plan

SECONDS: Final = 120.0  # a minute of two processors


def _accepts_duplicates(check: Any) -> Any:
    def changed(self: Any, batch: Any) -> Any:
        verdict = check(self, batch)
        return verdict._replace(duplicate=False, base_offset=-1) if verdict.duplicate else verdict

    return changed


def _knows_numbers_for_good(number_of: Any) -> Any:
    def changed(self: Any, append: Any, verify: Any) -> Any:
        known = self._known.get(append.producer_id)
        return number_of(self, append, verify) if known is None else known.number

    return changed


def _takes_old_epochs(check: Any) -> Any:
    def changed(self: Any, batch: Any) -> Any:
        verdict = check(self, batch)
        return ACCEPTED if verdict.error is ErrorCode.INVALID_PRODUCER_EPOCH else verdict

    return changed


def _renumbers_all_backwards(renumber: Any) -> Any:
    def changed(self: Any, reached: int) -> None:
        renumber(self, reached)
        self.entries = dict(zip(self.entries, reversed(self.entries.values()), strict=True))

    return changed


FOLD: Final = "kafka_sidecar.partition.fold.fold.Fold"
PRODUCERS: Final = "kafka_sidecar.partition.fold.producers.ProducerTable"
TRANSACTIONS: Final = "kafka_sidecar.partition.fold.transactions.TransactionTable"
IN_FLIGHT: Final = "kafka_sidecar.partition.write.in_flight.BatchesInFlight"

MUTANTS: Final = {
    "unsure-is-sure": Mutant(
        "a state that not every fold comes to is taken for one", f"{PRODUCERS}.is_judged", lambda _: lambda *_: True
    ),
    "basis-is-ignored": Mutant(
        "what the writer knew is not taken over", f"{PRODUCERS}.adopt_basis", lambda _: lambda *_: None
    ),
    "the-past-is-nothing": Mutant(
        "nothing is learnt of the past", "kafka_sidecar.partition.follow.replay.Replay._learn", lambda _: _at_once
    ),
    "unjudged-is-new": Mutant(
        "a verdict is told from what is known, however little it is",
        f"{PRODUCERS}.precheck",
        lambda _: lambda self, batch, **_: self.check(batch),
    ),
    "gaps-are-nothing": Mutant(
        "what retention took unread changes nothing", f"{FOLD}.is_gap", lambda _: lambda *_: False
    ),
    "duplicates-are-new": Mutant(
        "a batch that is known is accepted once more", f"{PRODUCERS}.check", _accepts_duplicates
    ),
    "sent-again-is-new": Mutant(
        "an entry that was sent again is judged as another", f"{FOLD}._note_batches", lambda _: lambda *_: 0
    ),
    "not-renumbered": Mutant(
        "what was overtaken keeps its sequence", f"{IN_FLIGHT}.renumber_overtaken", lambda _: lambda *_: None
    ),
    "renumbered-backwards": Mutant(
        "what is sent again is numbered wrongly", f"{IN_FLIGHT}.renumber_overtaken", _renumbers_all_backwards
    ),
    "retries-are-new": Mutant(
        "a retry does not share its first try's outcome", f"{IN_FLIGHT}.retry_target", lambda _: lambda *_: None
    ),
    "nothing-is-behind": Mutant(
        "what was sent behind a refused batch is taken",
        "kafka_sidecar.apis.state.refused_batches.RefusedBatches.before",
        lambda _: lambda *_: None,
    ),
    "hidden-is-out-of-order": Mutant(
        "a batch behind one that the broker refused alone is told OUT_OF_ORDER",
        f"{IN_FLIGHT}.is_missing_before",
        lambda _: lambda *_: False,
    ),
    "end-is-old": Mutant(
        "an end that was confirmed earlier refuses a fetch",
        "kafka_sidecar.partition.follow.log_end.LogEnd.is_confirmed_since",
        lambda _: lambda *_: True,
    ),
    "sends-before-it-reads": Mutant(
        "what is in flight is sent again before the log is read to its end",
        "kafka_sidecar.partition.write.appender.Appender.confirm_end",
        lambda _: _at_once,
    ),
    "late-is-in-time": Mutant(
        "what comes behind its transaction's marker counts", f"{TRANSACTIONS}.has_ended", lambda _: lambda *_: False
    ),
    "open-is-stable": Mutant(
        "consumers of read_committed are given what is not decided",
        f"{TRANSACTIONS}.last_stable_offset",
        lambda _: lambda self, next_offset: next_offset,
    ),
    "aborted-is-nothing": Mutant(
        "an aborted transaction is not named", f"{TRANSACTIONS}.aborted_between", lambda _: lambda *_: []
    ),
    "known-for-good": Mutant(
        "the number of a transaction is asked for once",
        "kafka_sidecar.partition.write.verified_appends.VerifiedAppends._number_of",
        _knows_numbers_for_good,
    ),
    "silent-tails-stay": Mutant(
        "a tail reader that stands at what the broker has closed is left there",
        "kafka_sidecar.partition.follow.tail_watch.TailWatch.tick",
        lambda _: lambda *_: None,
    ),
    "silent-readers-stay": Mutant(
        "the same of a reader of old data",
        "kafka_sidecar.partition.read.catch_up_reader.CatchUpReader._on_silence",
        lambda _: lambda *_: None,
    ),
    "names-old-ends": Mutant(
        "what a reader names as the last entry counts, whatever it has brought",
        "kafka_sidecar.partition.follow.read_to_end.ReadToEnd._last",
        lambda _: _last_of_the_reader,
    ),
    "another-log-is-the-same": Mutant(
        "an entry of a log that is deleted may stand in the one that has its name",
        "kafka_sidecar.pulsar.entry.LogStats.may_hold",
        lambda _: lambda *_: True,
    ),
    "another-log-is-an-alarm": Mutant(
        "a log that begins anew is an alarm, also where its topic was made anew",
        "kafka_sidecar.partition.follow.alarms._judge",
        lambda _: _calls_someone,
    ),
    "formats-are-of-topics": Mutant(
        "entries are read in the format that topics have at first",
        "kafka_sidecar.partition.log.entries._format_of",
        lambda _: lambda *_: KAFKA,
    ),
    "all-is-covered": Mutant(
        "what is stored covers all else",
        "kafka_sidecar.partition.fold.extent.Extent.covers",
        lambda _: lambda *_: True,
    ),
    "old-epochs-are-taken": Mutant(
        "a producer's older epoch may write behind a newer one", f"{PRODUCERS}.check", _takes_old_epochs
    ),
    "markers-fence-nobody": Mutant(
        "a marker does not say which epoch its producer has", f"{PRODUCERS}.fence", lambda _: lambda *_: None
    ),
    "copies-are-new": Mutant(
        "what was replicated twice counts twice",
        f"{PRODUCERS}.check_replicated",
        lambda _: lambda *_: ACCEPTED,
    ),
    "caches-keep-all": Mutant(
        "a cache lets nothing go",
        "kafka_sidecar.partition.read.fetch_cache.FetchCache._evict",
        lambda _: lambda *_, **__: None,
    ),
    "silence-is-an-answer": Mutant(
        "a broker that says nothing has nothing",
        "kafka_sidecar.partition.follow.read_entries.holds_records",
        lambda _: _holds_nothing,
    ),
}


async def _calls_someone(*_: Any) -> None:
    metrics.INDEX_ALARMS.inc()


async def _holds_nothing(*_: Any) -> bool:
    return False


async def _last_of_the_reader(self: Any, *, is_first: bool) -> Any:
    return await self._tail.last_position()


async def _at_once(_: Any) -> None: ...


def found_by(seed: int) -> str | None:
    return run_plan(drawn(seed)).violation


if __name__ == "__main__":
    sys.exit(search(sys.argv[1:], "tests.simulation.mutants", MUTANTS, found_by, SECONDS))
