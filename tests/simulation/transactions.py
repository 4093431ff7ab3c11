"""Producers of transactions and their coordinator. The coordinator never fails: what it tells takes a while, and its
markers come late.

begin ─▶ batches, each after its number was asked for ─▶ end ─▶ a marker, until a sidecar says that it is there ─▶ begin
            │ a batch fails for too long: abort, and a new epoch          └─ now and then once more, much later
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass
from typing import Final

from kafka_sidecar.partition.follow.late_transactions import EndedTransactions
from kafka_sidecar.partition.write.verified_appends import Verification
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.wire.control_records import EndTransactionMarker, write_marker
from kafka_sidecar.wire.error_code import ErrorCode
from tests.simulation.chance import Chance
from tests.simulation.clients import (
    IN_FLIGHT,
    REQUEST_SECONDS,
    RETRY_SECONDS,
    Network,
    Sent,
    ends,
    produce,
    without_answer,
)
from tests.simulation.history import History
from tests.simulation.plan import Client
from tests.support.batches import batch

FIRST_PRODUCER: Final = 500
# Rounds without an answer, before a producer aborts: delivery.timeout.ms.
_PATIENCE: Final = (1, 4, 1_000)
# A coordinator that stood still sends its marker once more.
_LATE: Final = 0.2
_LATE_SECONDS: Final = 8.0
# Transactions of which no batch comes here: their producer dies before it writes, or writes elsewhere.
_EMPTY: Final = 0.15
_DONE: Final = (ErrorCode.NONE, ErrorCode.INVALID_TXN_STATE)


@dataclass(frozen=True, slots=True)
class _Ongoing:
    number: int
    epoch: int


class Coordinator:
    def __init__(self, network: Network, history: History, chance: Chance, fails: float) -> None:
        self._network = network
        self._history = history
        self._draw = chance.of("coordinator")
        self._answers = chance.of("ended transactions")
        self._fails = fails
        self._numbers: dict[int, int] = {}  # by producer: of the transaction that was begun last
        self._ongoing: dict[int, _Ongoing] = {}
        self._ended: dict[int, EndedTransactions] = {}  # with a marker in the log
        self._late: list[asyncio.Task[bool]] = []

    def begin(self, producer_id: int, epoch: int) -> None:
        number = self._numbers[producer_id] = self._numbers.get(producer_id, 0) + 1
        self._ongoing[producer_id] = _Ongoing(number, epoch)

    def verification(self, client: Client, producer_id: int, epoch: int) -> Verification:
        return Verification(
            lambda: self._number_of(client, producer_id, epoch), once_an_epoch=client.has_epochs_of_transactions
        )

    async def _number_of(self, client: Client, producer_id: int, epoch: int) -> int | ErrorCode:
        await self._network.way(client)
        ongoing = self._ongoing.get(producer_id)
        await self._network.way(client)
        if not self._network.is_calm and self._draw.random() < self._fails:
            raise Unavailable("scripted")
        if ongoing is None:
            return ErrorCode.INVALID_TXN_STATE
        return ongoing.number if ongoing.epoch == epoch else ErrorCode.INVALID_PRODUCER_EPOCH

    async def end(self, producer_id: int, epoch: int, values: list[bytes], *, committed: bool) -> None:
        """`epoch`: of the marker. It fences the producer where that is a new one."""
        number = self._ongoing.pop(producer_id).number
        self._history.decide(values, committed=committed)
        marker = write_marker(producer_id, epoch, EndTransactionMarker(committed, 0), 1_000)
        while not await self._write(marker, number):  # noqa: ASYNC110
            await asyncio.sleep(RETRY_SECONDS)
        self._ended[producer_id] = EndedTransactions(number, 1)
        self._history.counts["end transaction"] += 1
        if self._draw.random() < _LATE:
            late = self._write_later(marker, number, self._draw.uniform(0.0, _LATE_SECONDS))
            self._late.append(asyncio.get_running_loop().create_task(late, context=Context()))

    async def ended(self, producer_ids: Sequence[int]) -> Mapping[int, EndedTransactions]:
        await asyncio.sleep(self._answers.choice((0.0, 0.05, 5.0)))
        if not self._network.is_calm and self._answers.random() < self._fails:
            raise Unavailable("scripted")
        return {producer_id: self._ended[producer_id] for producer_id in producer_ids if producer_id in self._ended}

    async def _write(self, marker: bytes, number: int) -> bool:
        """Through any sidecar. False where it is not known whether it is there."""
        node = self._draw.choice(self._network.nodes)
        life, deadline = node.life, self._network.loop.time() + REQUEST_SECONDS
        written = node.begin(node.current().end_transaction(marker, number, deadline))
        return await ends(written, REQUEST_SECONDS + 2) and node.life == life and written.result() in _DONE

    async def _write_later(self, marker: bytes, number: int, seconds: float) -> bool:
        await asyncio.sleep(seconds)
        return await self._write(marker, number)

    async def done(self) -> None:
        await asyncio.gather(*self._late)


class TransactionalProducer:
    def __init__(
        self, network: Network, coordinator: Coordinator, client: Client, number: int, history: History, chance: Chance
    ) -> None:
        self._network = network
        self._coordinator = coordinator
        self._client = client
        self._history = history
        self._draw = chance.of(client.name)
        self._empties = chance.of(f"{client.name}/empties")
        self._id = FIRST_PRODUCER + number
        self._epoch = self._sequence = self._written = 0

    async def run(self) -> None:
        for _ in range(self._client.batches):
            await self._network.while_quiet()
            self._coordinator.begin(self._id, self._epoch)
            is_empty = self._empties.random() < _EMPTY
            has_died = is_empty and self._empties.random() < 0.5  # and another instance has its id
            values, has_failed = await self._write_batches(0 if is_empty else self._draw.randint(1, 6))
            is_fenced = has_died or (
                has_failed and self._draw.random() < 0.5
            )  # by the coordinator, before it begins anew itself
            new_epoch = self._client.has_epochs_of_transactions or is_fenced
            committed = not (has_failed or has_died) and self._draw.random() < 0.6
            await self._coordinator.end(self._id, self._epoch + new_epoch, values, committed=committed)
            if new_epoch or has_failed:
                self._epoch, self._sequence = (
                    self._epoch + new_epoch + (has_failed and not self._client.has_epochs_of_transactions),
                    0,
                )
            await asyncio.sleep(self._draw.choice((0.0, 0.002, 0.3)))

    async def _write_batches(self, left: int) -> tuple[list[bytes], bool]:
        """What was sent, and whether some of it has no answer for too long."""
        verification = self._coordinator.verification(self._client, self._id, self._epoch)
        sent: list[bytes] = []
        window: list[Sent] = []
        patience = self._draw.choice(_PATIENCE)
        while left or window:
            while left and len(window) < IN_FLIGHT:
                window.append(self._next())
                sent += window[-1].values
                left -= 1
            told = await produce(self._network, self._client, window, verification)
            self._history.counts["produce"] += len(window)
            kept = without_answer(self._client, window, told, self._history, self._history.generation)
            patience -= len(kept) == len(window)
            if patience == 0:
                return sent, True
            window = kept
            await asyncio.sleep(RETRY_SECONDS if kept else self._draw.choice((0.0, 0.002, 0.3)))
        return sent, False

    def _next(self) -> Sent:
        values = [b"t%d/%d" % (self._id, self._written + place) for place in range(self._draw.randint(1, 3))]
        data = batch(*values, producer_id=self._id, epoch=self._epoch, sequence=self._sequence, transactional=True)
        sent = Sent(values, data, self._sequence)
        self._sequence, self._written = self._sequence + len(values), self._written + len(values)
        return sent
