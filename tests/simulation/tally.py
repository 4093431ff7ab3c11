"""How often what a run is for has happened: faults that struck, bounds that were reached, answers that were judged.

A row of zero is a run that shows nothing. `python -m tests.simulation.run 1 500 --tally`
"""

from __future__ import annotations

import asyncio
import functools
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Final, NamedTuple

from tests.simulation.replaced import replaced

PARTITION: Final = "kafka_sidecar.partition"
MODEL: Final = "tests.model"


class Row(NamedTuple):
    says: str
    method: str  # qualified name
    counts: Callable[[Any], bool] = lambda _: True  # by what it returns


ROWS: Final = (
    # faults of the model, beside those that the plan names
    Row("a SEND lands", f"{MODEL}.topic.Topic.land"),
    Row("a connection is cut", f"{MODEL}.connections.Connection.cut"),
    Row("a broker lets a name go behind what was sent", f"{MODEL}.connections.Writer.be_unknown"),
    Row("the second cluster stores a copy", f"{MODEL}.topic.Topic.append"),
    Row("a reader stands at what the broker has closed", "tests.simulation.conduct.DrawnConduct.forgets_reader", bool),
    # bounds and mechanisms
    Row("the tail is held before a gap", f"{PARTITION}.follow.tail_gap.TailGap.holds", bool),
    Row("the tail goes on over a gap", f"{PARTITION}.partition.Partition.read_tail_again"),
    Row("a fold learns of an earlier one", f"{PARTITION}.fold.fold.Fold.learn"),
    Row("a replay goes on from what was kept", f"{PARTITION}.follow.replay.Replay._resume_from_snapshot", bool),
    Row("a replay folds all that is left", f"{PARTITION}.follow.replay.Replay._fold_all_that_is_left", bool),
    Row("a replay reads a piece", f"{PARTITION}.follow.replay.Replay._read_piece"),
    Row("a batch comes behind a refused one", "kafka_sidecar.apis.state.refused_batches.RefusedBatches.before", bool),
    Row("an append has the log read further back", f"{PARTITION}.follow.replay.Replay.read_back"),
    Row("a batch can't be judged", f"{PARTITION}.fold.producers.ProducerTable.record_unsure"),
    Row("a writer's word is taken over", f"{PARTITION}.fold.producers.ProducerTable.adopt_basis"),
    Row("a producer falls asleep", f"{PARTITION}.fold.packed_states.PackedStates.add"),
    Row("a producer wakes up", f"{PARTITION}.fold.packed_states.PackedStates.pop", lambda state: state is not None),
    Row("a producer has expired", f"{PARTITION}.fold.producer_states.ProducerStates._has_expired", bool),
    Row("a new producer finds no room", f"{PARTITION}.fold.producers.ProducerTable.has_no_room_for", bool),
    Row("what was overtaken is numbered anew", f"{PARTITION}.write.in_flight.BatchesInFlight.renumber_overtaken"),
    Row("a reader of old data goes back", f"{PARTITION}.read.catch_up_reader.CatchUpReader._begin_of_what_judges"),
    Row("a reader of old data finds a gap", f"{PARTITION}.read.catch_up_reader.CatchUpReader._is_gap", bool),
    Row(
        "a fold goes on from transactions that were kept",
        f"{PARTITION}.snapshots.fold_snapshots.FoldSnapshots.restore",
        bool,
    ),
    Row("a batch waits for its transaction's number", f"{PARTITION}.write.verified_appends.VerifiedAppends._ask"),
    Row(
        "something comes behind its transaction's marker",
        f"{PARTITION}.fold.transactions.TransactionTable.has_ended",
        bool,
    ),
    Row("something is kept", "kafka_sidecar.internal_topics.snapshot_shard.SnapshotShard._keep"),
    Row("something is kept in parts", "kafka_sidecar.internal_topics.snapshot_shard.SnapshotShard._keep_in_parts"),
    Row(
        "what was kept in parts is found",
        "kafka_sidecar.internal_topics.snapshot_parts.Head.joined",
        lambda value: value is not None,
    ),
    Row(
        "what was kept in parts lacks one",
        "kafka_sidecar.internal_topics.snapshot_parts.Head.joined",
        lambda value: value is None,
    ),
    Row("producers wait until something is kept", f"{PARTITION}.snapshots.producer_snapshots.ProducerSnapshots._begin"),
    Row("a gap is asked about", f"{PARTITION}.snapshots.gap_check.GapCheck.begin"),
    Row("the tail reader's silence is looked into", f"{PARTITION}.follow.tail_watch.TailWatch._look_once"),
    Row("a reader of old data is silent", f"{PARTITION}.read.catch_up_reader.CatchUpReader._on_silence"),
    # what is judged
    Row("an offset is seen by a consumer", "tests.simulation.history.History.see"),
    Row("an offset is seen by a consumer of read_committed", "tests.simulation.history.History.see_committed"),
    Row("a transaction is ended", "tests.simulation.transactions.Coordinator.end"),
    Row("a batch is acknowledged", "tests.simulation.history.History.acknowledge"),
    Row("a log is held against the reference", "tests.simulation.checker._check_acknowledged"),
    Row("a consumer asks for the end", "tests.simulation.clients.Consumer._ask_end"),
    Row("a last stable offset is told", "tests.simulation.history.History.check_stable"),
    Row("a sidecar's bounds are looked at", "tests.simulation.sidecar.Sidecar.check_bounds"),
)


@contextmanager
def tallied() -> Iterator[Counter[str]]:
    """Counts while it lasts."""
    counts: Counter[str] = Counter({row.says: 0 for row in ROWS})
    with ExitStack() as stack:
        for row in ROWS:
            stack.enter_context(replaced(row.method, partial(_counted, row=row, counts=counts)))
        yield counts


def _counted(original: Any, row: Row, counts: Counter[str]) -> Any:
    if asyncio.iscoroutinefunction(original):

        @functools.wraps(original)
        async def counted_later(*args: Any, **named: Any) -> Any:
            result = await original(*args, **named)
            counts[row.says] += row.counts(result)
            return result

        return counted_later

    @functools.wraps(original)
    def counted(*args: Any, **named: Any) -> Any:
        result = original(*args, **named)
        counts[row.says] += row.counts(result)
        return result

    return counted
