"""Clients of a fleet: producers, consumers, and those that commit offsets. Each speaks Kafka to whoever it is told
leads.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Final, NamedTuple

from kafka_sidecar.partition.fold.transactions import AbortedTransaction
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from kafka_sidecar.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafka_sidecar.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafka_sidecar.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from tests.simulation.fleets.kafka_client import REQUEST_SECONDS, RETRIABLE, RETRY_SECONDS, KafkaClient, Lost
from tests.simulation.fleets.network import Address
from tests.simulation.fleets.offsets import commit, committed
from tests.simulation.history import History, Violation
from tests.simulation.loop import EPOCH_SECONDS
from tests.support.batches import batch
from tests.support.records import committed_in, records_in

PRODUCE_VERSION: Final = 9
FETCH_VERSION: Final = 11
LIST_OFFSETS_VERSION: Final = 7
INIT_VERSION: Final = 4
GROUP: Final = 0
IN_FLIGHT: Final = 5
FETCH_BYTES: Final = 2_000
WAIT_MS: Final = 300
# Of producers' clocks.
SKEW_MS: Final = (-3_000, 3_000)
# What a connection brings that was cut, it brings by then.
LANDS_SECONDS: Final = 2.0
ALL: Final = -1
LATEST: Final = -1
EARLIEST: Final = -2
LOG_START: Final = 0
Answer = tuple[ErrorCode, int]


class Place(NamedTuple):
    topic: str
    partition: int


class Written(NamedTuple):
    values: list[bytes]
    data: bytes


class Search(NamedTuple):
    """For the first record of a time or later, and what was told."""

    time: int
    acknowledged: int  # offsets, when it was asked
    written: int  # when it was answered
    told: int  # an offset, −1 for none
    by: str


@dataclass(slots=True)
class TimedHistory(History):
    times: dict[bytes, int] = field(default_factory=dict)  # of records, by value
    searches: list[Search] = field(default_factory=list)

    def stamp(self, values: Sequence[bytes], draw: Random) -> int:
        """The time that the first of these records gets, by its producer's clock."""
        first = now_ms() + int(draw.uniform(*SKEW_MS))
        self.times.update((value, first + number) for number, value in enumerate(values))
        return first

    def check_searches(self, values: Mapping[int, bytes], markers: Mapping[int, int]) -> None:
        """Each answer is right for some moment between question and answer: a scan of the log up to there would have
        found it. Of a marker it may be the first copy or a later one that counts for nothing, so it is judged with all
        of them and without. `markers`: times.
        """
        records = sorted((offset, self.times.get(value, 0)) for offset, value in values.items())
        with_markers = sorted([*records, *markers.items()])
        for search in self.searches:
            allowed: set[float] = set()
            for there in (records, with_markers):
                first = next((offset for offset, time in there if time >= search.time), math.inf)
                allowed |= {first} if first < search.acknowledged else {first, -1} if first < search.written else {-1}
            if search.told not in allowed:
                raise Violation(f"{search} is wrong: it may be {allowed}")


def now_ms() -> int:
    """As brokers and sidecars have it, whose clocks are right."""
    return int((EPOCH_SECONDS + asyncio.get_running_loop().time()) * 1_000)


def produced(place: Place, data: bytes, transactional_id: str | None = None) -> ProduceRequest:
    topic = TopicProduceData(
        name=place.topic, partition_data=[PartitionProduceData(index=place.partition, records=data)]
    )
    return ProduceRequest(transactional_id=transactional_id, acks=ALL, timeout_ms=8_000, topic_data=[topic])


async def send(
    client: KafkaClient,
    at: Address,
    place: Place,
    batches: Sequence[bytes],
    transactional_id: str | None = None,
    version: int = PRODUCE_VERSION,
) -> list[Answer | None]:
    requests = [produced(place, data, transactional_id) for data in batches]
    answers = await client.ask_in_order(at, requests, ProduceResponse, version)
    told = [None if one is None else one.responses[0].partition_responses[0] for one in answers]
    return [None if one is None else (one.error_code, one.base_offset) for one in told]


class Producer:
    """An idempotent one. It has up to five batches of a partition on their way, and sends those without an answer
    again, in order.
    """

    def __init__(
        self, client: KafkaClient, place: Place, history: TimedHistory, draw: Random, goes_on: Callable[[], bool]
    ) -> None:
        self._client = client
        self._place = place
        self._history = history
        self._draw = draw
        self._goes_on = goes_on

    async def run(self) -> None:
        producer_id = await self._new_id()
        window: list[Written] = []
        sequence = 0
        while self._goes_on() or window:
            while self._goes_on() and len(window) < IN_FLIGHT:
                values = [b"%d/%d" % (producer_id, sequence + number) for number in range(self._draw.randint(1, 3))]
                stamp = self._history.stamp(values, self._draw)
                window.append(
                    Written(
                        values, batch(*values, producer_id=producer_id, epoch=0, sequence=sequence, timestamp=stamp)
                    )
                )
                sequence += len(values)
            window = self._without_answer(window, await self._send(window))
            await asyncio.sleep(RETRY_SECONDS if window else self._draw.choice((0.0, 0.05, 0.5)))

    async def _new_id(self) -> int:
        while True:
            try:
                request = InitProducerIdRequest(producer_id=-1, producer_epoch=-1)
                told = await self._client.ask(self._client.any_address, request, InitProducerIdResponse, INIT_VERSION)
            except Lost:
                pass
            else:
                if told.error_code is ErrorCode.NONE:
                    return told.producer_id
                if told.error_code not in RETRIABLE:
                    raise Violation(f"{self._client.name} gets no producer id: {told.error_code.name}")
            await asyncio.sleep(RETRY_SECONDS)

    async def _send(self, window: Sequence[Written]) -> list[Answer | None]:
        try:
            leader = await self._client.leader(*self._place)
        except Lost:
            leader = None
        if leader is None:
            return [None] * len(window)
        self._history.counts["produce"] += len(window)
        return await send(self._client, leader, self._place, [written.data for written in window])

    def _without_answer(self, window: Sequence[Written], told: Sequence[Answer | None]) -> list[Written]:
        kept: list[Written] = []
        for written, answer in zip(window, told, strict=True):
            if answer is not None and answer[0] is ErrorCode.NONE:
                self._history.acknowledge(written.values, answer[1], 0)
                continue
            if answer is not None and answer[0] not in RETRIABLE and not kept:
                raise Violation(
                    f"{self._client.name}: the oldest batch without an answer, {written.values[0]!r}, is told "
                    f"{answer[0].name}"
                )
            kept.append(written)
        return kept


class PlainProducer:
    """Without a producer id: what has no answer is sent again as something new."""

    def __init__(
        self,
        client: KafkaClient,
        name: str,
        place: Place,
        history: TimedHistory,
        draw: Random,
        goes_on: Callable[[], bool],
    ) -> None:
        self._client = client
        self._name = name.encode()
        self._place = place
        self._history = history
        self._draw = draw
        self._goes_on = goes_on

    async def run(self) -> None:
        number = 0
        while self._goes_on():
            number += 1
            value = b"%s/%d" % (self._name, number)
            self._history.stamp([value], self._draw)
            while not await self._is_written(value):  # noqa: ASYNC110 - it is sent anew each time
                await asyncio.sleep(RETRY_SECONDS)
            await asyncio.sleep(self._draw.choice((0.01, 0.2, 1.0)))

    async def _is_written(self, value: bytes) -> bool:
        try:
            leader = await self._client.leader(*self._place)
        except Lost:
            return False
        if leader is None:
            return False
        self._history.counts["produce"] += 1
        (told,) = await send(self._client, leader, self._place, [batch(value, timestamp=self._history.times[value])])
        if told is not None and told[0] is ErrorCode.NONE:
            self._history.acknowledge([value], told[1], 0)
            return True
        if told is not None and told[0] not in RETRIABLE:
            raise Violation(f"{self._client.name} writes, and is told {told[0].name}")
        return False


class Consumer:
    """It reads a partition from its start, over and over, and asks now and then where the partition ends."""

    def __init__(
        self,
        client: KafkaClient,
        place: Place,
        history: TimedHistory,
        draw: Random,
        goes_on: Callable[[], bool],
        written_to: Callable[[], int],
        *,
        is_committed: bool,
    ) -> None:
        self._client = client
        self._place = place
        self._history = history
        self._draw = draw
        self._goes_on = goes_on
        self._written_to = written_to
        self._is_committed = is_committed
        self.offset = 0

    async def run(self) -> None:
        while self._goes_on():
            if self._draw.random() < 0.05:
                self.offset = self._draw.randint(0, self.offset)
            try:
                if self._draw.random() < 0.2:
                    await self.end()
                if self._draw.random() < 0.05:
                    await self.start()
                await self.fetch()
            except Lost:
                await asyncio.sleep(RETRY_SECONDS)
            await asyncio.sleep(self._draw.choice((0.0, 0.01, 0.3)))

    async def end(self) -> int | None:
        """What was acknowledged to anybody before it is asked is before the end. Raises Lost."""
        leader = await self._client.leader(*self._place)
        if leader is None:
            return None
        acknowledged = self._history.end
        told = await list_offset(self._client, leader, self._place, LATEST, is_committed=self._is_committed)
        if told.error_code in RETRIABLE:
            return None
        self._history.counts["end"] += 1
        if told.error_code is not ErrorCode.NONE:
            raise Violation(f"{self._client.name} asks where {self._place} ends, and is told {told.error_code.name}")
        by = f"{self._client.name} through {leader[0]}"
        if self._is_committed:
            self._history.check_stable(told.offset, LOG_START, by)
        elif told.offset < acknowledged:
            raise Violation(f"{self._place} ends at {told.offset} for {by}: {acknowledged} were acknowledged")
        if told.offset > self._written_to():
            raise Violation(f"{self._place} ends at {told.offset} for {by}: so much is not written")
        return told.offset

    async def start(self) -> None:
        """Nothing is ever taken from these logs. Raises Lost."""
        leader = await self._client.leader(*self._place)
        if leader is None:
            return
        told = await list_offset(self._client, leader, self._place, EARLIEST)
        if told.error_code not in RETRIABLE and (told.error_code, told.offset) != (ErrorCode.NONE, LOG_START):
            raise Violation(f"{self._place} begins at {told.offset} for {self._client.name}, {told.error_code.name}")
        self._history.counts["start"] += 1

    async def has_end(self) -> bool:
        """Whether it is told where the partition ends. Raises Lost."""
        return await self.end() is not None

    async def fetch(self) -> None:
        """Raises Lost."""
        leader = await self._client.leader(*self._place)
        if leader is None:
            await asyncio.sleep(RETRY_SECONDS)
            return
        partition = FetchPartition(
            partition=self._place.partition, fetch_offset=self.offset, partition_max_bytes=FETCH_BYTES
        )
        request = FetchRequest(
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            isolation_level=int(self._is_committed),
            topics=[FetchTopic(topic=self._place.topic, partitions=[partition])],
        )
        answer = await self._client.ask(leader, request, FetchResponse, FETCH_VERSION)
        if answer.error_code is not ErrorCode.NONE or not answer.responses:
            raise Violation(f"{self._client.name} fetches, and is told {answer.error_code.name}")
        told = answer.responses[0].partitions[0]
        if told.error_code in RETRIABLE:
            await asyncio.sleep(RETRY_SECONDS)
        elif told.error_code is not ErrorCode.NONE:
            raise Violation(
                f"{self._client.name} reads {self._place} at {self.offset}, and is told {told.error_code.name}"
            )
        else:
            self._check_ends(told, leader)
            if told.records:
                self._take(b"".join(told.records), told, leader)

    def _check_ends(self, told: PartitionData, leader: Address) -> None:
        by = f"{self._client.name} through {leader[0]}"
        if told.high_watermark < 0 and not any(told.records or ()):
            return  # the partition is being opened
        if (
            not told.log_start_offset
            == LOG_START
            <= told.last_stable_offset
            <= told.high_watermark
            <= self._written_to()
        ):
            bounds = f"{told.log_start_offset}, {told.last_stable_offset}, {told.high_watermark}"
            raise Violation(
                f"{self._place} has log start, stable end and end at {bounds} for {by}, and {self._written_to()} are "
                "written"
            )
        self._history.check_stable(told.last_stable_offset, LOG_START, by)

    def _take(self, records: bytes, told: PartitionData, leader: Address) -> None:
        self._history.counts["fetch"] += 1
        if self._is_committed:
            aborted = [AbortedTransaction(one.producer_id, one.first_offset) for one in told.aborted_transactions or ()]
            values = dict(committed_in([records], aborted))
        else:
            values = dict(records_in([records]))
        by = f"{self._client.name} through {leader[0]}"
        next_offset = _end_of(records)
        for offset in range(self.offset, next_offset):
            if self._is_committed:
                self._history.see_committed(offset, values.get(offset), by)
            else:
                self._history.see(offset, values.get(offset), by)
        self.offset = max(self.offset, next_offset)


class Searcher:
    """It asks for the first record of a time, or of a later one."""

    def __init__(
        self,
        client: KafkaClient,
        place: Place,
        history: TimedHistory,
        draw: Random,
        goes_on: Callable[[], bool],
        written_to: Callable[[], int],
    ) -> None:
        self._client = client
        self._place = place
        self._history = history
        self._draw = draw
        self._goes_on = goes_on
        self._written_to = written_to

    async def run(self) -> None:
        while self._goes_on():
            with suppress(Lost):
                await self.search()
            await asyncio.sleep(self._draw.choice((0.01, 0.3, 1.0)))

    async def search(self) -> bool:
        """Whether it was answered. Raises Lost."""
        leader = await self._client.leader(*self._place)
        if leader is None:
            return False
        time = now_ms() + self._draw.choice((-20_000, -3_000, -500, 0, 2_000))
        acknowledged = self._history.end
        told = await list_offset(self._client, leader, self._place, time)
        if told.error_code is ErrorCode.NONE:
            self._history.counts["search"] += 1
            by = f"{self._client.name} through {leader[0]}"
            self._history.searches.append(Search(time, acknowledged, self._written_to(), told.offset, by))
            return True
        if told.error_code not in RETRIABLE:
            raise Violation(f"{self._client.name} asks {self._place} for a time, and is told {told.error_code.name}")
        return False


async def list_offset(
    client: KafkaClient, at: Address, place: Place, timestamp: int, *, is_committed: bool = False
) -> ListOffsetsPartitionResponse:
    """Raises Lost."""
    partition = ListOffsetsPartition(partition_index=place.partition, timestamp=timestamp)
    topics = [ListOffsetsTopic(name=place.topic, partitions=[partition])]
    request = ListOffsetsRequest(replica_id=-1, isolation_level=int(is_committed), topics=topics)
    return (await client.ask(at, request, ListOffsetsResponse, LIST_OFFSETS_VERSION)).topics[0].partitions[0]


def _end_of(records: bytes) -> int:
    """Behind the last whole batch."""
    at = end = 0
    while at + 61 <= len(records):
        size = 12 + int.from_bytes(records[at + 8 : at + 12], "big")
        if at + size > len(records):
            break
        end = int.from_bytes(records[at : at + 8], "big") + int.from_bytes(records[at + 23 : at + 27], "big") + 1
        at += size
    return end


class Committer:
    """It commits greater and greater offsets of a group that has no members, and asks for them.

    A connection that is cut may bring its last request a moment later, behind one that went over another. No broker can
    tell.
    """

    def __init__(
        self,
        client: KafkaClient,
        group: str,
        place: Place,
        history: TimedHistory,
        draw: Random,
        goes_on: Callable[[], bool],
    ) -> None:
        self._client = client
        self._group = group
        self._place = place
        self._history = history
        self._draw = draw
        self._goes_on = goes_on
        self._tried = self._acknowledged = -1
        self._cut: dict[
            int, float
        ] = {}  # the commits whose connection was cut, and when: each may have landed behind the acknowledged one

    async def run(self) -> None:
        while self._goes_on():
            try:
                if self._draw.random() < 0.4:
                    await self.look()
                else:
                    await self._commit()
            except Lost:
                pass
            await asyncio.sleep(self._draw.choice((0.01, 0.2, 1.0)))

    async def _commit(self) -> None:
        coordinator = await self._client.coordinator(self._group, GROUP)
        if coordinator is None:
            return
        self._tried += 1
        offset = self._tried
        loop = asyncio.get_running_loop()
        begun = loop.time()
        try:
            error = await commit(self._client, coordinator, self._group, *self._place, offset)
        except Lost:
            if loop.time() < begun + REQUEST_SECONDS:
                self._cut[offset] = loop.time()
            raise
        if error is ErrorCode.NONE:
            self._history.counts["commit"] += 1
            self._acknowledged = offset
            self._cut = {one: at for one, at in self._cut.items() if at > begun - LANDS_SECONDS}
        elif error not in RETRIABLE:
            raise Violation(f"{self._client.name} commits, and is told {error.name}")

    async def look(self) -> bool:
        """Whether it was told. Raises Lost."""
        coordinator = await self._client.coordinator(self._group, GROUP)
        if coordinator is None:
            return False
        acknowledged = self._acknowledged
        error, told = await committed(self._client, coordinator, self._group, *self._place)
        if error in RETRIABLE:
            return False
        if error is not ErrorCode.NONE:
            raise Violation(f"{self._client.name} asks what {self._group} has committed, and is told {error.name}")
        self._history.counts["committed"] += 1
        if not acknowledged <= told <= self._tried and told not in self._cut:
            raise Violation(
                f"{self._group} has committed {acknowledged} to {self._tried} of {self._place}, and is given {told}"
            )
        return True
