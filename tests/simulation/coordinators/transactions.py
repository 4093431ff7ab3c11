"""Transactions: the coordinator's own, and what its log says of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kafka_sidecar.config import TransactionsConfig
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.loop.ids import NewId, NewProducerId
from kafka_sidecar.model.sidecar import SidecarInfo
from kafka_sidecar.pulsar.ports import Admin, Client
from kafka_sidecar.topics.names import TopicNames
from kafka_sidecar.transactions.markers import Logs
from kafka_sidecar.transactions.metadata import PREPARED, TransactionMetadata, TransactionState
from kafka_sidecar.transactions.records import TransactionRecords
from kafka_sidecar.transactions.service import TransactionRuntime, transaction_runtime
from kafka_sidecar.transactions.shard import Shard
from tests.simulation.coordinators.logs import JudgedTopic, State
from tests.simulation.coordinators.written_partitions import Marker, Transaction
from tests.simulation.history import Violation
from tests.simulation.loop import SimulatedLoop
from tests.support.memory_topics import MemoryTopics

TOPIC: Final = "__transaction_state"
_RECORDS: Final = TransactionRecords()


def runtime_of(
    client: Client,
    admin: Admin,
    namespace: str,
    shards: int,
    own: SidecarInfo,
    names: TopicNames,
    loop: SimulatedLoop,
    clock: Clock,
    new_id: NewId,
    new_producer_id: NewProducerId,
    logs: Logs,
    on_led: Callable[[str, Any, State], None],
) -> TransactionRuntime:
    config = TransactionsConfig(state_partitions=shards)
    runtime = transaction_runtime(
        client,
        admin,
        config,
        namespace,
        logs,
        own,
        names,
        loop.time,
        clock,
        new_id,
        new_producer_id,
        MemoryTopics().id_of,
    )
    begin = runtime.coordinator.begin

    def begin_and_watch(logs: Any) -> None:
        begin(logs)
        for shard in runtime.coordinator.shards:
            _watch(shard, on_led)

    runtime.coordinator.begin = begin_and_watch  # type: ignore[method-assign]
    return runtime


def _watch(shard: Shard, on_led: Callable[[str, Any, State], None]) -> None:
    leads = shard.on_leading

    async def on_leading(seconds: float) -> None:
        on_led(shard.name, shard.term, {name: _told(metadata) for name, metadata in shard.transactions.items()})
        await leads(seconds)

    shard.on_leading = on_leading  # type: ignore[method-assign]


def read(key: bytes, value: bytes | None) -> tuple[str, str | None] | None:
    record = _RECORDS.read(key, value)
    if record is None:
        return None
    return record.transactional_id, None if record.metadata is None else _told(record.metadata)


def _told(metadata: TransactionMetadata) -> str:
    return ":".join(map(str, (*_of(metadata), metadata.producer_epoch, metadata.state.name, len(metadata.partitions))))


def _of(metadata: TransactionMetadata) -> Transaction:
    return Transaction(metadata.producer_id, metadata.number)


class Decisions:
    """How each transaction ends, by the log of its coordinator."""

    def __init__(self, judged: JudgedTopic, shards: int) -> None:
        self._judged = judged
        self._looked_at = [0] * shards
        self._committed: dict[Transaction, bool] = {}
        self._begun: dict[str, int] = {}  # by id: the number of its last transaction

    def look(self) -> None:
        for number, begin in enumerate(self._looked_at if self._judged.is_there else ()):
            log = self._judged.log(number)
            self._looked_at[number] = log.count
            for transactional_id, value in log.written[begin:]:
                if value is not None:
                    self._note(transactional_id, value)

    def _note(self, transactional_id: str, value: str) -> None:
        producer_id, number, _, state, partitions = value.split(":")
        of = Transaction(int(producer_id), int(number))
        if of.number < self._begun.get(transactional_id, 0):
            raise Violation(
                f"{transactional_id} has begun transaction {self._begun[transactional_id]}, and then {number}"
            )
        self._begun[transactional_id] = of.number
        # Version 2 aborts also where nothing has been added. There the number is still that of the transaction before.
        if TransactionState[state] in PREPARED and int(partitions):
            committed = TransactionState[state] is TransactionState.PREPARE_COMMIT
            if self._committed.setdefault(of, committed) is not committed:
                raise Violation(f"transaction {number} of {transactional_id} is committed and aborted")

    def is_committed(self, of: Transaction) -> bool | None:
        """None where it is not decided."""
        self.look()
        return self._committed.get(of)

    def check_marker(self, marker: Marker) -> None:
        """It lands: its transaction was prepared before."""
        decided = self.is_committed(marker.of)
        if decided is not marker.committed:
            raise Violation(f"{marker} has landed, and its transaction is {decided}")
