"""A transactional producer: it writes, commits offsets, and ends the transaction.

Before KIP-890 it adds partitions and groups first, and keeps its epoch. Since then its batches and offsets add them,
and each transaction has an epoch of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Final, NamedTuple, TypeVar

from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message
from kafka_sidecar.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from kafka_sidecar.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from kafka_sidecar.wire.messages.end_txn import EndTxnRequest, EndTxnResponse
from kafka_sidecar.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafka_sidecar.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic, OffsetFetchResponse
from kafka_sidecar.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from tests.simulation.fleets.clients import GROUP, IN_FLIGHT, INIT_VERSION, Place, TimedHistory, Written, send
from tests.simulation.fleets.kafka_client import RETRIABLE, RETRY_SECONDS, KafkaClient, Lost
from tests.simulation.fleets.offsets import FETCH_VERSION
from tests.simulation.history import Violation
from tests.support.batches import batch

TRANSACTION: Final = 1
ADD_VERSION: Final = 3  # of AddPartitionsToTxn and AddOffsetsToTxn
# Nobody but the producer ends its transactions.
TIMEOUT_MS: Final = 900_000
# Of a topic that its coordinator can't look up. Producers add it again.
NOT_KNOWN_NOW: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED)
R = TypeVar("R", bound=Message)


class Versions(NamedTuple):
    """Of the requests that a producer sends."""

    produce: int
    commit_offsets: int
    end: int
    adds_first: bool


BEFORE_KIP_890: Final = Versions(9, 3, 3, adds_first=True)
SINCE_KIP_890: Final = Versions(12, 5, 5, adds_first=False)


class TransactionalProducer:
    def __init__(
        self,
        client: KafkaClient,
        name: str,
        places: Sequence[Place],
        histories: Mapping[Place, TimedHistory],
        draw: Random,
        goes_on: Callable[[], bool],
        versions: Versions,
    ) -> None:
        self._client = client
        self._versions = versions
        self._name = name
        self._group = f"group of {name}"
        self._places = places
        self._histories = histories
        self._draw = draw
        self._goes_on = goes_on
        self._producer_id = self._epoch = -1
        self._sequences: dict[Place, int] = {}
        self._transactions = 0
        self._committed = -1  # the number of the last transaction that has committed an offset
        self._open: dict[Place, list[bytes]] = {}  # values of the transaction that goes on

    async def run(self) -> None:
        await self._begin()
        while self._goes_on():
            places = self._draw.sample(self._places, self._draw.randint(1, min(2, len(self._places))))
            dies = self._draw.random() < 0.1
            await self._write(places, dies=dies)
            if dies:
                self._decide(committed=False)
                await self._begin()
            else:
                await self._end(committed=self._draw.random() < 0.7)
            await self._check_committed()
            await asyncio.sleep(self._draw.choice((0.0, 0.1, 1.0)))

    # --- the parts of a transaction

    async def _begin(self) -> None:
        """A new epoch: what its predecessor has left open is aborted."""
        request = InitProducerIdRequest(
            transactional_id=self._name, transaction_timeout_ms=TIMEOUT_MS, producer_id=-1, producer_epoch=-1
        )
        told = await self._coordinated(
            TRANSACTION, request, InitProducerIdResponse, INIT_VERSION, lambda answer: answer.error_code
        )
        if told.producer_id == self._producer_id and told.producer_epoch <= self._epoch:
            raise Violation(f"{self._name} had epoch {self._epoch}, and gets {told.producer_epoch}")
        self._producer_id, self._epoch = told.producer_id, told.producer_epoch
        self._sequences.clear()

    async def _write(self, places: Sequence[Place], *, dies: bool) -> None:
        self._transactions += 1
        if self._versions.adds_first:
            await self._add(places)
        for place in places:
            count = self._draw.randint(1, IN_FLIGHT)
            batches = [self._batch(place, number) for number in range(count)]
            self._open[place] = [value for written in batches for value in written.values]
            await self._send_all(place, batches[: self._draw.randint(0, count)] if dies else batches)
        if not dies:
            await self._commit_offset()

    def _batch(self, place: Place, number: int) -> Written:
        sequence = self._sequences.get(place, 0)
        self._sequences[place] = sequence + 1
        value = b"t%s.%d/%d" % (self._name.encode(), self._transactions, number)
        stamp = self._histories[place].stamp([value], self._draw)
        data = batch(
            value,
            producer_id=self._producer_id,
            epoch=self._epoch,
            sequence=sequence,
            transactional=True,
            timestamp=stamp,
        )
        return Written([value], data)

    async def _add(self, places: Sequence[Place]) -> None:
        topics: dict[str, list[int]] = {}
        for place in places:
            topics.setdefault(place.topic, []).append(place.partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._name,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=numbers) for topic, numbers in topics.items()
            ],
        )

        def error_of(answer: AddPartitionsToTxnResponse) -> ErrorCode:
            results = [one for topic in answer.results_by_topic_v3_and_below for one in topic.results_by_partition]
            errors = [one.partition_error_code for one in results if one.partition_error_code is not ErrorCode.NONE]
            return errors[0] if errors else ErrorCode.NONE

        await self._coordinated(TRANSACTION, request, AddPartitionsToTxnResponse, ADD_VERSION, error_of)

    async def _send_all(self, place: Place, batches: Sequence[Written]) -> None:
        history, window = self._histories[place], list(batches)
        while window:
            try:
                leader = await self._client.leader(*place)
            except Lost:
                leader = None
            if leader is not None:
                history.counts["produce"] += len(window)
                told = await send(
                    self._client,
                    leader,
                    place,
                    [written.data for written in window],
                    self._name,
                    self._versions.produce,
                )
                kept: list[Written] = []
                for written, answer in zip(window, told, strict=True):
                    if answer is not None and answer[0] is ErrorCode.NONE:
                        history.acknowledge(written.values, answer[1], 0)
                    elif answer is not None and answer[0] not in RETRIABLE and not kept:
                        raise Violation(
                            f"{self._name}: the oldest batch without an answer, {written.values[0]!r}, is told "
                            f"{answer[0].name}"
                        )
                    else:
                        kept.append(written)
                window = kept
            if window:
                await asyncio.sleep(RETRY_SECONDS)

    async def _commit_offset(self) -> None:
        if self._versions.adds_first:
            added = AddOffsetsToTxnRequest(
                transactional_id=self._name,
                producer_id=self._producer_id,
                producer_epoch=self._epoch,
                group_id=self._group,
            )
            await self._coordinated(
                TRANSACTION, added, AddOffsetsToTxnResponse, ADD_VERSION, lambda answer: answer.error_code
            )
        place = self._places[0]
        partition = TxnOffsetCommitRequestPartition(
            partition_index=place.partition, committed_offset=self._transactions
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self._name,
            group_id=self._group,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            topics=[TxnOffsetCommitRequestTopic(name=place.topic, partitions=[partition])],
        )

        def error_of(answer: TxnOffsetCommitResponse) -> ErrorCode:
            return answer.topics[0].partitions[0].error_code

        await self._coordinated(GROUP, request, TxnOffsetCommitResponse, self._versions.commit_offsets, error_of)

    def _decide(self, *, committed: bool) -> None:
        for place, values in self._open.items():
            self._histories[place].decide(values, committed=committed)
        self._open.clear()

    async def _end(self, *, committed: bool) -> None:
        self._decide(committed=committed)
        request = EndTxnRequest(
            transactional_id=self._name, producer_id=self._producer_id, producer_epoch=self._epoch, committed=committed
        )
        told = await self._coordinated(
            TRANSACTION, request, EndTxnResponse, self._versions.end, lambda answer: answer.error_code
        )
        if not self._versions.adds_first:
            if (told.producer_id, told.producer_epoch) == (self._producer_id, self._epoch):
                raise Violation(f"{self._name} has ended a transaction, and goes on with epoch {self._epoch}")
            self._producer_id, self._epoch = told.producer_id, told.producer_epoch
            self._sequences.clear()
        self._histories[self._places[0]].counts["end transaction"] += 1
        if committed:
            self._committed = self._transactions

    async def _check_committed(self) -> None:
        """Offsets go with their transaction."""
        place = self._places[0]
        topics = [OffsetFetchRequestTopic(name=place.topic, partition_indexes=[place.partition])]
        request = OffsetFetchRequest(group_id=self._group, topics=topics, require_stable=True)

        def error_of(answer: OffsetFetchResponse) -> ErrorCode:
            return answer.error_code if not answer.topics else answer.topics[0].partitions[0].error_code

        answer = await self._coordinated(GROUP, request, OffsetFetchResponse, FETCH_VERSION, error_of)
        told = answer.topics[0].partitions[0].committed_offset
        if told != self._committed:
            raise Violation(f"{self._group} has committed {self._committed} in a transaction, and is told {told}")

    # --- what is asked of a coordinator

    async def _coordinated(
        self, kind: int, request: Message, response: type[R], version: int, error_of: Callable[[R], ErrorCode]
    ) -> R:
        key = self._name if kind == TRANSACTION else self._group
        while True:
            try:
                coordinator = await self._client.coordinator(key, kind)
                if coordinator is not None:
                    answer = await self._client.ask(coordinator, request, response, version)
                    error = error_of(answer)
                    if error is ErrorCode.NONE:
                        return answer
                    if error not in (*RETRIABLE, *NOT_KNOWN_NOW):
                        raise Violation(f"{self._name} is told {error.name} to a {type(request).__name__}")
            except Lost:
                pass
            await asyncio.sleep(RETRY_SECONDS)
