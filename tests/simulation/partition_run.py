"""What happens to one partition in a run, and what must hold of it in the end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kafka_sidecar.partition.fold.extent import Extent
from kafka_sidecar.partition.fold.fold import BEFORE_ALL
from kafka_sidecar.partition.log.basis import BASIS_PROPERTY, UNKNOWN_PRODUCER, Basis, KnownProducer
from kafka_sidecar.partition.log.entries import read_entry
from kafka_sidecar.partition.log.formats import KAFKA
from kafka_sidecar.partition.snapshots.snapshot_values import extent_in
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.error_code import ErrorCode
from tests.model.topic import is_marker
from tests.simulation.chance import Chance
from tests.simulation.checker import check, check_late
from tests.simulation.clients import (
    FIRST_PRODUCER,
    IN_FLIGHT,
    REQUEST_SECONDS,
    Connection,
    Consumer,
    Isolation,
    Network,
    ReadCommitted,
    ReadUncommitted,
    ends,
    forgetful_producer,
    idempotent_producer,
    plain_producer,
)
from tests.simulation.faults import Faults
from tests.simulation.history import History, Violation
from tests.simulation.loop import SimulatedLoop
from tests.simulation.node import Node
from tests.simulation.plan import PATIENCE_SECONDS, Client, ClientKind, FaultKind, Plan
from tests.simulation.reference import Reference, fold
from tests.simulation.sidecar import Sidecar
from tests.simulation.snapshot_topic import SnapshotLog
from tests.simulation.stored import is_unreadable, ledgers_that_begin_falsely
from tests.simulation.topic import SimulatedTopic
from tests.simulation.transactions import Coordinator, TransactionalProducer
from tests.support.batches import batch
from tests.support.partitions import append

# It begins when all others have ended.
LAST_PRODUCER: Final = 7_000_000
# At the log's start, until what was moved is known everywhere.
LOOKS: Final = 30
ISOLATION: Final[Mapping[ClientKind, Isolation]] = {
    ClientKind.CONSUMER: ReadUncommitted(),
    ClientKind.COMMITTED: ReadCommitted(),
}


class PartitionRun:
    def __init__(
        self,
        plan: Plan,
        number: int,
        loop: SimulatedLoop,
        chance: Chance,
        kept: SnapshotLog,
        sidecars: Sequence[Sidecar],
        connections: dict[tuple[str, str], Connection],
    ) -> None:
        """`plan`: what concerns this partition."""
        self.history = History()
        self.topic = SimulatedTopic(loop, chance, plan.bounds, f"t-partition-{number}")
        self._plan = plan
        self._loop = loop
        self._chance = chance
        self._kept = kept
        self._nodes = [self._node(sidecar) for sidecar in sidecars]
        self.network = Network(loop, self._nodes, chance, plan.bounds, connections)
        self._coordinator = Coordinator(self.network, self.history, chance, plan.bounds.failed_questions)
        self.faults = Faults(plan, loop, chance, self.topic, kept, self._nodes, self.network, self.history)
        self.history.lost_its_reason = self.faults.lost_its_reason
        self._write_before()

    def _node(self, sidecar: Sidecar) -> Node:
        return Node(sidecar, self.topic, lambda producers: self._coordinator.ended(producers))

    def _write_before(self) -> None:
        """In order, by a writer that learns now and then how far the log has come: up to five batches of a producer are
        on their way.
        """
        draw = self._chance.of("before")
        known: dict[int, tuple[Position, KnownProducer]] = {}
        for sequence in range(self._plan.bounds.written_before):
            for number in range(len(self._plan.of_kind(ClientKind.IDEMPOTENT))):
                value = b"%d/%d" % (FIRST_PRODUCER + number, sequence)
                if number not in known or known[number][1].last_sequence < sequence - IN_FLIGHT or draw.random() < 0.3:
                    last = self.topic.entries[-1].position if self.topic.entries else BEFORE_ALL
                    known[number] = last, KnownProducer(0, sequence - 1) if sequence else UNKNOWN_PRODUCER
                metadata = MessageMetadata(
                    producer_name=b"kafka-sidecar-before", sequence_id=len(self.topic.entries), publish_time=1
                )
                metadata.MergeFromString(KAFKA.fields)
                metadata.properties.add(key=BASIS_PROPERTY, value=Basis(known[number][0], [known[number][1]]).encode())
                self.topic.append(
                    metadata, 1, batch(value, producer_id=FIRST_PRODUCER + number, epoch=0, sequence=sequence)
                )
                self.history.acknowledge([value], self.topic.index, 0)
                if len(self.topic.entries) % 16 == 0:
                    self.topic.roll()

    # --- what happens

    def begin_consumers(self) -> Iterator[asyncio.Task[None]]:
        for one in self._plan.clients:
            if one.kind in ISOLATION:
                yield asyncio.create_task(self._consumer(one, ISOLATION[one.kind]).run())

    def begin_work(self) -> Iterator[asyncio.Task[None]]:
        """What ends by itself."""
        for number, one in enumerate(self._plan.clients):
            if one.batches:
                yield asyncio.create_task(self._producer(one, number), name=f"{one.name} of {self.topic.name}")
        yield asyncio.create_task(self.faults.strike(), name=f"the faults of {self.topic.name}")

    @property
    def quiet_seconds(self) -> float:
        return sum(fault.seconds for fault in self._plan.faults if fault.kind is FaultKind.QUIET)

    async def _producer(self, client: Client, number: int) -> None:
        match client.kind:
            case ClientKind.IDEMPOTENT:
                await idempotent_producer(self.network, client, number, self.history, self._chance)
            case ClientKind.TRANSACTIONAL:
                await TransactionalProducer(
                    self.network, self._coordinator, client, number, self.history, self._chance
                ).run()
            case ClientKind.FORGETFUL:
                await forgetful_producer(self.network, client, self.history, self._chance)
            case _:
                await plain_producer(self.network, client, self.history, self._chance)

    def _consumer(self, client: Client, isolation: Isolation) -> Consumer:
        return Consumer(self.network, client, self.history, self._chance, isolation)

    # --- the end

    async def settled(self) -> None:
        await asyncio.gather(self._coordinator.done(), *self.faults.deleting)

    @property
    def _log_start(self) -> int:
        present = self.topic.present
        if not present:
            return self.topic.index + 1
        first, moved = present[0], self.topic.start_moved_to
        assert first.last_index is not None
        start = first.last_index + 1 - self._count_of(first)
        return max(start, moved.offset) if moved is not None and moved.position >= first.position else start

    @property
    def _first_readable(self) -> int:
        """The offset of the first entry that readers are given. Where one begins that nobody can read, nobody knows."""
        first = next((one for one in self.topic.present if not is_marker(one)), None)
        if first is None:
            return self.topic.index + 1
        return (first.last_index or 0) + 1 - (1 if is_unreadable(first) else self._count_of(first))

    def _count_of(self, entry: RawEntry) -> int:
        counted = 1 if is_marker(entry) else self.topic.counted.get(entry.position)
        return read_entry(entry).offset_count if counted is None else counted

    @property
    def _end(self) -> int:
        """Behind the last record: markers may follow."""
        return max(((one.last_index or 0) + 1 for one in self.topic.entries if not is_marker(one)), default=0)

    async def read_all(self, fresh: Sidecar) -> None:
        """Through a sidecar that has seen nothing, and through all others: they must find the same."""
        self._nodes.append(self._node(fresh))
        for node in reversed(self._nodes):
            await self._check_start(node)
            for kind in ISOLATION if self._plan.of_kind(ClientKind.TRANSACTIONAL) else (ClientKind.CONSUMER,):
                await self._read_through(
                    node, self._consumer(Client(f"last-{kind}-{node.name}", kind), ISOLATION[kind])
                )

    async def _check_start(self, node: Node) -> None:
        """Every sidecar says where the log begins."""
        told: int | None = None
        if (
            max(self._first_readable, self._log_start) < self.history.low_watermark
        ):  # there may be markers before the first record
            raise Violation(
                f"the log begins at {self._log_start}, and DeleteRecords was told {self.history.low_watermark}"
            )
        for _ in range(LOOKS):
            opened = node.begin(node.current().opened())
            if await ends(opened, PATIENCE_SECONDS) and opened.result() is ErrorCode.NONE:
                asked = node.begin(node.current().confirmed_start())
                if await ends(asked, PATIENCE_SECONDS):
                    told = asked.result()
                    if self._log_start <= told <= max(self._first_readable, self._log_start):
                        return
            await asyncio.sleep(1.0)
        raise Violation(f"{node.name} says that the log begins at {told}, and it begins at {self._log_start}")

    async def _read_through(self, node: Node, reader: Consumer) -> None:
        reader.offset = self._log_start
        until = self._loop.time() + PATIENCE_SECONDS
        while reader.offset < self._end:
            await reader.read_through(node, 5.0)
            if self._loop.time() > until:
                raise Violation(f"through {node.name} nothing comes at offset {reader.offset} of {self._end}")
            await asyncio.sleep(0.1)

    async def go_on_in_peace(self, sidecars: Sequence[Sidecar]) -> None:
        """Each opens the partition, appends a batch, and closes it. Who opens it next goes on from its end, whatever
        was kept before.
        """
        if not self._plan.bounds.keeps:
            return
        for number, sidecar in enumerate(sidecars):
            node = self._node(sidecar)
            self._nodes.append(node)
            await self._append_one(node, LAST_PRODUCER, number)
            await asyncio.wait(node.run(node.current().close) or {asyncio.ensure_future(asyncio.sleep(0))})
        prefix = b"producer-states:%b\0" % self.topic.name.encode()
        extents = [
            extent for key in self._kept.values() if key.startswith(prefix) and (extent := extent_in(key)) is not None
        ]
        began = min((self._began(one) for one in extents), default=None)
        surest = max((one.last for one in extents if self._began(one) == began), default=None)
        if surest != self.topic.entries[-1].position and not ledgers_that_begin_falsely(self.topic.entries):
            raise Violation(
                f"what is kept of producers goes to {surest}, and the log to {self.topic.entries[-1].position}: "
                f"{extents}"
            )

    def _began(self, extent: Extent) -> Position:
        """An entry that nobody can read does not say whether it is the first that was ever written. Where it is, who
        begins with it knows as much as who saw the log empty.
        """
        first, *_ = self.topic.entries
        if extent.began is None or (self.topic.present[0] is first and extent.began <= first.position):
            return BEFORE_ALL
        return extent.began

    async def _append_one(self, node: Node, producer: int, sequence: int) -> None:
        value = b"%d/%d" % (producer, sequence)
        for _ in range(LOOKS):
            appended = node.begin(
                append(node.current(), batch(value, producer_id=producer, epoch=0, sequence=sequence), REQUEST_SECONDS)
            )
            if await ends(appended, PATIENCE_SECONDS) and appended.result().error is ErrorCode.NONE:
                return
            await asyncio.sleep(1.0)
        raise Violation(f"{node.name} does not take {value!r}")

    @property
    def reference(self) -> Reference:
        return fold(self.topic.entries, self.history.is_stray)

    def check(self) -> None:
        check(self.history, self.reference, self._log_start)
        check_late(self.history, [*self.faults.entries_before, *self.topic.entries])
