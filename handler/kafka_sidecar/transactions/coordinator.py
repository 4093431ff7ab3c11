"""The transaction coordinator: clients' requests, in terms of transactional ids and shards.

A request about an id is answered by the id's shard, or raises CoordinatorError.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafka_sidecar.config import TransactionsConfig
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.coordination.shards import Shards
from kafka_sidecar.coordination.term import Phase
from kafka_sidecar.coordination.term_log import TermLog
from kafka_sidecar.loop.ids import NewProducerId
from kafka_sidecar.loop.keyed_lock import KeyedLock
from kafka_sidecar.loop.pace import Pace
from kafka_sidecar.loop.supervised import SupervisedTask, every
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.transactions import machine
from kafka_sidecar.transactions.machine import Producer
from kafka_sidecar.transactions.markers import Markers
from kafka_sidecar.transactions.metadata import AT_REST, TopicPartition, TransactionMetadata, TransactionState
from kafka_sidecar.transactions.records import TransactionRecord
from kafka_sidecar.transactions.shard import Shard, ShardContext
from kafka_sidecar.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

# Intervals of two clean-up loops. The first is Kafka's transaction.abort.timed.out.transaction.cleanup.interval.ms (10
# s). For expired transactional ids Kafka's interval is one hour.
TIMED_OUT_SECONDS: Final = 10.0
EXPIRED_SECONDS: Final = 600.0
# A request waits up to 1 s for the markers of the producer's last transaction, which are stored within milliseconds.
# Otherwise the producer would have to retry.
COMPLETION_SECONDS: Final = 1.0
# InitProducerId waits up to 10 s until the transaction that the producer's predecessor left open is aborted.
ABORTED_SECONDS: Final = 10.0
# InitProducerId waits up to 1 s for a new coordinator, which loads a small log in 0.1 s. Kafka returns a retriable
# error instead; librdkafka retries 0.5 s later, sarama does not.
LOADING_SECONDS: Final = 1.0
# Limit of a transactional id, since it is the key of its record in `__transaction_state`.
ID_BYTES: Final = 30_000


class ProducerIdAndEpoch(NamedTuple):
    error: ErrorCode
    producer_id: int = -1
    epoch: int = -1


@dataclass(slots=True)
class _Together:
    """Partitions that are added in one record, and what became of that."""

    partitions: set[TopicPartition]
    is_certain: bool = True
    outcome: asyncio.Task[ErrorCode] = field(init=False)


class Coordinator:
    """`shards` is empty until the partitions of `__transaction_state` are known."""

    def __init__(
        self,
        config: TransactionsConfig,
        markers: Markers,
        clock: Callable[[], float],
        wall_clock: Callable[[], int],
        awake_clock: Callable[[], float],
        new_producer_id: NewProducerId,
        all_are_new: Callable[[], bool] = lambda: True,
    ) -> None:
        """`all_are_new`: whether no sidecar of 0.2 is known, whose clients' names may mean topics of another
        namespace.
        """
        self._all_are_new = all_are_new
        self.shards: Shards[Shard] = Shards(clock, awake_clock)
        self._config = config
        self._wall_clock = wall_clock
        self._new_producer_id = new_producer_id
        self._context = ShardContext(markers, wall_clock)
        self._adding: KeyedLock[str] = KeyedLock()
        self._to_add: dict[tuple[str, Producer], _Together] = {}  # partitions that wait to be added in one record

    def begin(self, logs: Sequence[tuple[str, Callable[[], TermLog[TransactionRecord]]]]) -> None:
        """From now on there are shards, one for each log, and `beat` is called once a second."""
        self.shards.begin([Shard(name, open_log, self._context) for name, open_log in logs])

    def beat(self) -> None:
        """Once a second."""
        self.shards.beat()
        leading = self.shards.all_leading
        metrics.TRANSACTIONAL_IDS.set(sum(len(shard.transactions) for shard in leading))
        metrics.OPEN_TRANSACTIONS.set(sum(len(shard.unfinished) for shard in leading))

    def tasks(self) -> Sequence[SupervisedTask]:
        return (
            every(TIMED_OUT_SECONDS, "timed_out_transactions", self._abort_timed_out),
            every(EXPIRED_SECONDS, "expired_transactional_ids", self._delete_expired),
        )

    def _shard(self, transactional_id: str) -> Shard:
        if not transactional_id or len(transactional_id.encode()) > ID_BYTES:
            raise CoordinatorError(ErrorCode.INVALID_REQUEST)
        return self.shards.led(transactional_id)

    # --- requests

    async def init_producer_id(self, transactional_id: str, timeout_ms: int, expected: Producer) -> ProducerIdAndEpoch:
        if transactional_id:
            await self.shards.of(transactional_id).term.loaded(asyncio.get_running_loop().time() + LOADING_SECONDS)
        if not 0 < timeout_ms <= self._config.max_timeout_ms:
            self._shard(transactional_id)
            return ProducerIdAndEpoch(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        answer = await self._begin_producer(transactional_id, timeout_ms, expected)
        if answer is None:
            # Kafka's coordinator returns CONCURRENT_TRANSACTIONS and expects a retry, which sarama does not do. So the
            # sidecar retries once itself.
            answer = await self._begin_producer(transactional_id, timeout_ms, expected)
        return answer or ProducerIdAndEpoch(ErrorCode.CONCURRENT_TRANSACTIONS)

    async def _begin_producer(
        self, transactional_id: str, timeout_ms: int, expected: Producer
    ) -> ProducerIdAndEpoch | None:
        """None where what was ongoing is aborted first."""
        shard = self._shard(transactional_id)
        # The producer's predecessor, or another InitProducerId, may still be changing the id or completing its
        # transaction.
        until = asyncio.get_running_loop().time() + ABORTED_SECONDS
        while transactional_id in shard.changing or shard.is_completing(transactional_id):
            left = until - asyncio.get_running_loop().time()
            if transactional_id in shard.changing:
                await shard.term.all_stored()
            elif left > 0:
                await shard.completed(transactional_id, left)
            else:
                break
            shard = self._shard(transactional_id)  # the shard's term may have ended meanwhile
        now = self._wall_clock()
        metadata = shard.transactions.get(transactional_id) or machine.new(
            transactional_id, self._new_producer_id(), timeout_ms, now
        )
        is_changing = transactional_id in shard.changing
        becomes = machine.init_producer_id(metadata, expected, timeout_ms, self._new_producer_id(), now, is_changing)
        if isinstance(becomes, ErrorCode):
            return ProducerIdAndEpoch(becomes)
        await shard.change(transactional_id, becomes)
        if becomes.state is not TransactionState.EMPTY:
            return None
        log.info(
            "transactional id %s has producer id %d, epoch %d",
            transactional_id,
            becomes.producer_id,
            becomes.producer_epoch,
        )
        return ProducerIdAndEpoch(ErrorCode.NONE, becomes.producer_id, becomes.producer_epoch)

    async def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: Set[TopicPartition],
        client_version: int,
        *,
        is_certain: bool = True,
    ) -> ErrorCode:
        """`is_certain`: that these are the partitions that the producer writes to."""
        shard = self._shard(transactional_id)
        await shard.completed(transactional_id, COMPLETION_SECONDS)
        shard = self._shard(transactional_id)  # the shard's term may have ended meanwhile
        becomes = machine.add_partitions(
            shard.transactions.get(transactional_id),
            producer,
            partitions,
            client_version,
            self._wall_clock(),
            transactional_id in shard.changing,
            is_certain=is_certain and self._all_are_new(),
        )
        if isinstance(becomes, ErrorCode):
            return becomes
        await shard.change(transactional_id, becomes)
        return ErrorCode.NONE

    async def verify(
        self,
        transactional_id: str,
        producer: Producer,
        partition: TopicPartition,
        *,
        adds: bool,
        is_certain: bool = True,
    ) -> int | ErrorCode:
        """The number of the transaction to which a batch belongs. `adds`: it also adds its partition (KIP-890)."""
        if adds:
            error = await self._add_with_others(transactional_id, producer, partition, is_certain=is_certain)
            if error is not ErrorCode.NONE:
                return error
        shard = self._shard(transactional_id)
        metadata = shard.transactions.get(transactional_id)
        error = machine.verify(metadata, producer, partition)
        if error is not ErrorCode.NONE or metadata is None:
            return error
        return metadata.number

    async def _add_with_others(
        self, transactional_id: str, producer: Producer, partition: TopicPartition, *, is_certain: bool
    ) -> ErrorCode:
        """Batches for many partitions come at once, maybe through several sidecars: what waits is stored together."""
        key = transactional_id, producer
        together = self._to_add.get(key)
        if together is None:
            together = self._to_add[key] = _Together(set())
            together.outcome = asyncio.create_task(self._add_together(key, together))
            together.outcome.add_done_callback(
                lambda task: task.cancelled() or task.exception()
            )  # marks the exception as retrieved, even if no request waits for it any more
        together.partitions.add(partition)
        together.is_certain &= is_certain
        return await asyncio.shield(together.outcome)

    async def _add_together(self, key: tuple[str, Producer], together: _Together) -> ErrorCode:
        transactional_id, producer = key
        async with self._adding.turn(transactional_id):
            await asyncio.sleep(0)  # the other batches of a Produce request mostly arrive in this event loop turn
            del self._to_add[key]
            return await self.add_partitions(
                transactional_id, producer, together.partitions, 2, is_certain=together.is_certain
            )

    async def end(
        self, transactional_id: str, producer: Producer, commit: bool, client_version: int
    ) -> ProducerIdAndEpoch:
        shard = self._shard(transactional_id)
        await shard.completed(transactional_id, COMPLETION_SECONDS)
        shard = self._shard(transactional_id)  # the shard's term may have ended meanwhile
        metadata = shard.transactions.get(transactional_id)
        is_changing = transactional_id in shard.changing
        becomes = machine.end(
            metadata, producer, commit, client_version, self._new_producer_id(), self._wall_clock(), is_changing
        )
        if becomes is ErrorCode.NONE:
            assert metadata is not None
            return ProducerIdAndEpoch(ErrorCode.NONE, metadata.producer_id, metadata.producer_epoch)
        if isinstance(becomes, ErrorCode):
            return ProducerIdAndEpoch(becomes)
        await shard.change(transactional_id, becomes)
        told = machine.complete(becomes, becomes.last_update_timestamp)
        return ProducerIdAndEpoch(ErrorCode.NONE, told.producer_id, told.producer_epoch)

    def describe(self, transactional_id: str) -> TransactionMetadata | None:
        return self._shard(transactional_id).transactions.get(transactional_id)

    def of_producers(self, producer_ids: Set[int]) -> dict[int, TransactionMetadata]:
        """The transactional ids of producers, as far as they are coordinated here. A producer id that is used up may be
        that of the last transaction.
        """
        found = (
            (producer_id, shard.of_producer(producer_id))
            for shard in self.shards.all_leading
            for producer_id in producer_ids
        )
        return {producer_id: metadata for producer_id, metadata in found if metadata is not None}

    def all_transactions(self) -> list[TransactionMetadata]:
        """Those of the ids that are coordinated here. Raises where a shard is still loading."""
        if any(shard.term.phase is Phase.LOADING for shard in self.shards):
            raise CoordinatorError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return [metadata for shard in self.shards.all_leading for metadata in shard.transactions.values()]

    # --- by the clock

    async def _abort_timed_out(self) -> None:
        for shard in self.shards.all_leading:
            for transactional_id in list(shard.unfinished):
                # Clock and state are read again for each id, since storing the last abort took a while.
                now = self._wall_clock()
                metadata = shard.transactions.get(transactional_id)
                if (
                    metadata is not None
                    and machine.is_timed_out(metadata, now)
                    and transactional_id not in shard.changing
                ):
                    log.info("the transaction of %s has timed out and is aborted", transactional_id)
                    await self._try_change(shard, transactional_id, machine.fence(metadata, now))

    async def _delete_expired(self) -> None:
        pace = Pace()
        for shard in self.shards.all_leading:
            for transactional_id in list(shard.transactions):
                await pace.maybe_yield()
                before = self._wall_clock() - self._config.id_expiration_ms
                metadata = shard.transactions.get(transactional_id)
                is_old = metadata is not None and metadata.last_update_timestamp <= before and metadata.state in AT_REST
                if is_old and transactional_id not in shard.changing:
                    await self._try_change(shard, transactional_id, None)

    async def _try_change(self, shard: Shard, transactional_id: str, becomes: TransactionMetadata | None) -> None:
        try:
            await shard.change(transactional_id, becomes)
        except CoordinatorError as error:
            log.info("%s: %s could not be stored: %s", shard.name, transactional_id, error.error.name)
