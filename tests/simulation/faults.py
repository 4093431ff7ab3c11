"""The faults of a plan strike, each at its time."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kafka_sidecar.apis.a21_delete_records import TO_THE_END, delete_before
from kafka_sidecar.partition.fold.extent import Extent
from kafka_sidecar.partition.log.formats import KAFKA, PULSAR
from kafka_sidecar.partition.log.log_config import LogConfig
from kafka_sidecar.partition.snapshots.snapshot_values import extent_in
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.wire.error_code import ErrorCode
from tests.model.topic import is_marker
from tests.simulation.chance import Chance
from tests.simulation.checker import WITHOUT_ID, check_told
from tests.simulation.clients import Network, ends
from tests.simulation.history import History, Violation
from tests.simulation.log_starts import LogStarts
from tests.simulation.loop import SimulatedLoop
from tests.simulation.natives import write_native
from tests.simulation.node import Node
from tests.simulation.plan import BUSY_SECONDS, PATIENCE_SECONDS, ClientKind, Fault, FaultKind, Plan
from tests.simulation.reference import fold
from tests.simulation.snapshot_topic import SnapshotLog
from tests.simulation.stored import Batch, batches_of, ledgers_that_begin_falsely, values_in
from tests.simulation.topic import SimulatedTopic

# When a new ledger begins while a sidecar is away, as shares of its time.
AWAY_ROLLS: Final = (0.05, 0.1, 0.2, 0.4)
AWAY_TRIMS: Final = 0.9
AWAY_ENDS: Final = 0.5  # its connections
# The same while producers stand still, and when sidecars close the partition before retention takes the ledger, and
# behind that.
AGES_ROLL: Final = 0.05
AGES_TRIM: Final = 0.75
AGES_CLOSE: Final = (0.02, 0.06, 0.2)
AGES_END: Final = (0.3, 0.8, 0.9)
# Until a sidecar hears that a topic was made anew, or that its configs have changed. The sidecar that did it knows at
# once.
HEARD_OF_SECONDS: Final = (0.0, 0.5, 5.0)
GZIP: Final = 1
CONFIGS: Final = (
    LogConfig(),
    LogConfig(PULSAR),
    LogConfig(PULSAR, compression=GZIP),
    LogConfig(KAFKA, compression=GZIP),
    LogConfig(KAFKA, log_append_time=True),
)


class Faults:
    def __init__(
        self,
        plan: Plan,
        loop: SimulatedLoop,
        chance: Chance,
        topic: SimulatedTopic,
        kept: SnapshotLog,
        nodes: list[Node],
        network: Network,
        history: History,
    ) -> None:
        self.struck: Counter[FaultKind] = Counter()
        self.deleting: list[asyncio.Task[None]] = []
        self.entries_before: list[RawEntry] = []  # of the topics that had the name before
        self._plan = plan
        self._loop = loop
        self._chance = chance
        self._topic = topic
        self._kept = kept
        self._nodes = nodes
        self._network = network
        self._history = history
        self._awaited: set[bytes] = (
            set()
        )  # values in ledgers that retention takes, of which a client may send the batch again
        self._natives = 0  # entries
        self._starts: list[int] = []  # where the log began after each time that retention took something

    async def strike(self) -> None:
        begun = self._loop.time()
        for fault in self._plan.faults:
            await asyncio.sleep(max(0.0, begun + fault.at - self._loop.time()))
            self._strike_one(fault)
            self.struck[fault.kind] += 1
            if fault.kind is FaultKind.QUIET:
                await asyncio.sleep(fault.seconds)
                begun += fault.seconds
        await asyncio.sleep(max(0.0, begun + BUSY_SECONDS - self._loop.time()))
        for node in self._nodes:  # else clients wait for one that stands still for longer than faults come
            node.sidecar.go_on()

    def _strike_one(self, fault: Fault) -> None:
        node = self._nodes[fault.node % len(self._nodes)]
        match fault.kind:
            case FaultKind.CUT:
                draw = self._chance.of("cut")
                for connection in list(self._topic.connections):
                    if draw.random() < 0.6:
                        connection.cut()
            case FaultKind.UNLOAD:
                self._topic.unload()
            case FaultKind.CRASH:
                self._topic.crash()
            case FaultKind.ROLL:
                self._topic.roll()
            case FaultKind.MARK:
                for _ in range(self._chance.of("markers").choice((1, 3, 20))):
                    self._topic.mark()
            case FaultKind.TRIM:
                self._trim()
            case FaultKind.KILL:
                node.sidecar.kill()
            case FaultKind.CLOSE:
                node.close_partition()
            case FaultKind.DELETE:
                self.deleting.append(asyncio.create_task(self._delete_records(node)))
            case FaultKind.CONFIG:
                self._change_configs()
            case FaultKind.NATIVE:
                self._write_natives()
            case FaultKind.REMAKE:
                self._remake(fault.seconds)
            case FaultKind.QUIET:
                self._network.quiet_until = self._loop.time() + fault.seconds
            case FaultKind.AGES:
                self._let_ages_pass(fault.seconds)
            case FaultKind.PAUSE:
                node.sidecar.stand_still()
                self._loop.call_later(fault.seconds, node.sidecar.go_on)
            case FaultKind.AWAY:
                node.sidecar.stand_still()
                self._loop.call_later(fault.seconds, node.sidecar.go_on)
                self._loop.call_later(AWAY_ENDS * fault.seconds, node.sidecar.lose_connections)
                for share in AWAY_ROLLS:
                    self._loop.call_later(share * fault.seconds, self._topic.roll)
                self._loop.call_later(AWAY_TRIMS * fault.seconds, self._trim_all)

    def _write_natives(self) -> None:
        draw = self._chance.of("natives")
        for _ in range(draw.choice((1, 1, 3))):
            self._natives += 1
            write_native(self._topic, draw, self._natives)

    def _let_ages_pass(self, seconds: float) -> None:
        """Of what producers have sent and not heard of, only what was kept tells."""
        draw, later = self._chance.of("ages"), self._loop.call_later
        self._network.still_until = self._loop.time() + seconds
        later(AGES_ROLL * seconds, self._topic.roll)
        later(AGES_TRIM * seconds, self._trim_all)
        for node in self._nodes:
            later(draw.choice(AGES_CLOSE) * seconds, node.close_partition)
            later(draw.choice(AGES_END) * seconds, draw.choice((node.sidecar.kill, node.close_partition)))

    def _remake(self, after_seconds: float) -> None:
        """The topic is deleted, and made anew after some seconds. Sidecars hear of it sooner or later."""
        check_told(self._history, fold(self._topic.entries, self._history.is_stray))
        self.entries_before += self._topic.entries
        self._starts.clear()
        self._awaited.clear()
        self._topic.make_anew()
        self._topic.is_missing = True
        self._loop.call_later(after_seconds, self._there_again)
        self._history.begin_generation()
        draw = self._chance.of("made anew")
        for node in self._nodes:
            self._loop.call_later(after_seconds + draw.choice(HEARD_OF_SECONDS), node.on_remade)

    def _change_configs(self) -> None:
        draw = self._chance.of("configs changed")
        self._topic.log_config = draw.choice(CONFIGS)
        for node in self._nodes:
            self._loop.call_later(draw.choice(HEARD_OF_SECONDS), node.on_config)

    def _there_again(self) -> None:
        self._topic.is_missing = False

    def _trim(self) -> None:
        """Retention takes a ledger whose producers are in what was kept, or of which no client will send a batch again.

        What was kept counts as long as nothing behind it is gone (ADR 21).
        """
        self._awaited = {
            value
            for value in (*self._awaited, *self._values_of_the_first_ledger())
            if not self._history.is_settled(value)
        }
        if self._all_have_begun and (not (self._awaited or self._would_begin_with_what_is_hidden()) or self._is_kept()):
            self._topic.trim()
            self._starts.append(self._topic.trimmed)

    def _is_kept(self) -> bool:
        """Whether what was kept of producers covers all of the first ledger, and who opens the log behind it sees that
        (ADR 21).
        """
        stats = self._topic.stats_now()
        falsely = ledgers_that_begin_falsely(self._topic.entries)
        if stats.first is None or any(one.ledger in falsely for one in stats.ledgers[1:2]):
            return False
        covered = Extent(stats.first, Position(stats.first.ledger, stats.ledgers[0].entries - 1))
        if self._plan.bounds.wastes_indexes:
            # An index that was wasted behind the ledger looks like entries that are gone with it.
            if len(stats.ledgers) == 1:
                return False
            covered = Extent(stats.first, Position(stats.ledgers[1].ledger, 0))
        prefix = b"producer-states:%b\0" % self._topic.name.encode()
        found = (extent_in(key) for key in self._kept.values() if key.startswith(prefix))
        return any(extent.covers(covered) for extent in found if extent is not None)

    def _would_begin_with_what_is_hidden(self) -> bool:
        """Whether the first batch that is left of a producer would be one that all folds hide, and that comes again
        (ADR 21).
        """
        counted = fold(self._topic.entries, self._history.is_stray).values
        present, firsts = self._topic.present, dict[int, Batch]()
        for entry in present:
            if entry.position.ledger != present[0].position.ledger and not is_marker(entry):
                for batch in batches_of(entry):
                    firsts.setdefault(batch.producer, batch)
        return any(
            producer >= 0 and batch.offset not in counted and not all(map(self._history.is_settled, values_in(batch)))
            for producer, batch in firsts.items()
        )

    def _trim_all(self) -> None:
        """As long as retention may take the first ledger."""
        before = -1
        while before != self._topic.trimmed:
            before = self._topic.trimmed
            self._trim()

    @property
    def _all_have_begun(self) -> bool:
        """Whether each producer has written. Who can't for as long as retention lasts begins in a log of which nobody
        knows the past.
        """
        begun = {value.split(b"/")[0] for value in self._history.acknowledged}
        having_ids = [*self._plan.of_kind(ClientKind.IDEMPOTENT), *self._plan.of_kind(ClientKind.TRANSACTIONAL)]
        return len([one for one in begun if not one.startswith(WITHOUT_ID)]) == len(having_ids)

    def _values_of_the_first_ledger(self) -> Iterator[bytes]:
        """Of batches that have a producer."""
        present = self._topic.present
        for entry in present:
            if entry.position.ledger == present[0].position.ledger:
                for batch in batches_of(entry):
                    yield from values_in(batch) if batch.producer >= 0 else ()

    async def _delete_records(self, node: Node) -> None:
        """DeleteRecords, as a client sends it: it may be told that it failed, and has been done."""
        draw = self._chance.of("deleted")
        acknowledged = [offset for offsets in self._history.acknowledged.values() for offset in offsets]
        before = draw.choice((TO_THE_END, draw.choice(acknowledged or [0]), max(acknowledged, default=0)))
        end, generation, opened_in = self._history.end, self._history.generation, node.opened_in
        life, asked_at, partition = node.life, self._loop.time(), node.current()
        deleting = node.begin(delete_before(LogStarts(self._topic, self._nodes), partition, before))
        await ends(deleting, PATIENCE_SECONDS)
        if not deleting.done():
            if node.owes_an_answer(life, asked_at):
                raise Violation(f"{node.name} does not say whether records before {before} were deleted")
            return
        if isinstance(deleting.exception(), PulsarError) or not generation == opened_in == self._history.generation:
            return
        low_watermark = deleting.result()
        if isinstance(low_watermark, ErrorCode):
            return
        if low_watermark < (end if before == TO_THE_END else before):
            raise Violation(f"records before {before} of {end} were deleted, and the log begins at {low_watermark}")
        self._history.low_watermark = max(self._history.low_watermark, low_watermark)

    def lost_its_reason(self, offset: int) -> bool:
        """Whether at some time nothing was left of what a producer wrote before the batch at an offset."""
        counted = fold(self._topic.entries, self._history.is_stray).values
        return any(_has_no_reason(self._topic.entries[start:], offset, counted) for start in self._starts)


def _has_no_reason(entries: Sequence[RawEntry], offset: int, counted: Mapping[int, bytes]) -> bool:
    """Whether the log holds a batch at this offset, and nothing that counts of its producer before it."""
    left = [batch for entry in entries if not is_marker(entry) for batch in batches_of(entry)]
    hidden = next((batch for batch in left if batch.offset <= offset < batch.offset + batch.count), None)
    if hidden is None or hidden.producer < 0:
        return False
    return not any(
        one.offset in counted for one in left if one.producer == hidden.producer and one.offset < hidden.offset
    )
