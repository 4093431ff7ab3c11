"""One source partition's way into the target: batches, the runs of their offsets and the progress, valid together.

After any failure this object is done: another one begins with a producer of its own, and reads the progress. Nothing is
ever sent a second time by one producer, so no late request can land in a later transaction.
"""

from __future__ import annotations

import asyncio
from typing import Final

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from kafka_sidecar.errors import CommandFailed
from kafka_sidecar.kafka_client.client import GROUP, TRANSIENT, KafkaClient, Refused, check, until_it_succeeds
from kafka_sidecar.kafka_client.topics import LATEST, offsets
from kafka_sidecar.pipelines.copying.copied_batches import CopiedBatch, Span, with_producer
from kafka_sidecar.pipelines.copying.delivery import (
    START_SECONDS,
    Acknowledgements,
    Delivery,
    ProducerId,
    Progress,
    Route,
    Transactions,
    read_progress,
)
from kafka_sidecar.pipelines.copying.offset_runs import Copied, Run, encode, encode_key, joined
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic, OffsetFetchResponse
from kafka_sidecar.wire.messages.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from kafka_sidecar.wire.records import NO_PRODUCER_ID, NO_SEQUENCE, next_sequence

ABORT_SECONDS: Final = 5.0
PRODUCE_TIMEOUT_MS: Final = 30_000
_MOST_RUNS_BYTES: Final = 1 << 24


def foreign_records(route: Route, target_end: int) -> str:
    return (
        f"partition {route.partition} of topic {route.target_topic} has {target_end} offsets in the target that were "
        "not written under this name: take another --name or --prefix, or say --into-existing to add to it"
    )


class _Sequences:
    """Of one producer in one partition: what its next batch begins with."""

    def __init__(self, producer: ProducerId) -> None:
        self._next = 0 if producer.is_given else NO_SEQUENCE

    def take(self, records: int) -> int:
        taken = self._next
        if taken != NO_SEQUENCE:
            self._next = next_sequence(taken, records)
        return taken


class Target:
    def __init__(
        self, kafka: KafkaClient, route: Route, delivery: Delivery, producer: ProducerId, leader: int, runs_leader: int
    ) -> None:
        self._kafka = kafka
        self._route = route
        self._delivery = delivery
        self._producer = producer
        self._leader = leader
        self._runs_leader = runs_leader
        self._group_coordinator = -1
        self._sequences, self._runs_sequences = _Sequences(producer), _Sequences(producer)
        self._slots = asyncio.Semaphore(delivery.in_flight)
        self._sent: list[tuple[asyncio.Task[int], tuple[Span, ...]]] = []
        self._failure: BaseException | None = None
        # True while the outcome of a commit is unknown: then the transaction must not be aborted.
        self._may_be_late = False

    @classmethod
    async def open(cls, kafka: KafkaClient, route: Route, exactly_once: bool = True) -> Target:
        leader = await kafka.leader(route.target_topic, route.partition)
        runs_leader = await kafka.leader(route.mirror.runs_topic, 0)
        delivery: Delivery = Transactions(kafka, route) if exactly_once else Acknowledgements(kafka, route, leader)
        producer = await delivery.start()
        return cls(kafka, route, delivery, producer, leader, runs_leader)

    async def progress(self) -> Progress | None:
        """What is committed, now that the transaction of an earlier writer has ended."""
        return await until_it_succeeds(self._ask_progress, START_SECONDS)

    async def _ask_progress(self) -> Progress | None:
        route = self._route
        self._group_coordinator = await self._kafka.coordinator(route.mirror.group, GROUP)
        topics = [OffsetFetchRequestTopic(name=route.target_topic, partition_indexes=[route.partition])]
        # Without require_stable (KIP-447) OffsetFetch may return an offset from before the transaction that
        # InitProducerId has just ended.
        request = OffsetFetchRequest(group_id=route.mirror.group, topics=topics, require_stable=True)
        answer = await self._kafka.ask(self._group_coordinator, request, OffsetFetchResponse)
        check(answer.error_code, f"the offsets of group {route.mirror.group}")
        for topic in answer.topics:
            for one in topic.partitions:
                if topic.name == route.target_topic and one.partition_index == route.partition:
                    check(one.error_code, f"the offset of group {route.mirror.group}")
                    return read_progress(one.committed_offset, one.metadata)
        raise Refused(
            ErrorCode.UNKNOWN_SERVER_ERROR, f"the answer about group {route.mirror.group} lacks what was asked for"
        )

    async def go_on(self, known: Progress | None, first: int, into_existing: bool) -> tuple[Progress, int]:
        """Where to go on, and where the target ends now. CommandFailed where that is not what was written.

        `known` is from the record of runs: what is committed may have expired. `first` is where a partition begins that
        is new.
        """
        route = self._route
        at = (route.target_topic, route.partition)
        target_end = (await offsets(self._kafka, [at], LATEST))[at]
        found = [one for one in (await self.progress(), known) if one is not None]
        progress = max(found, key=lambda one: one.next_source, default=None)
        if progress is None:
            if target_end and not into_existing:
                raise CommandFailed(foreign_records(route, target_end))
            # The first progress is committed before any record is copied: else the markers of an aborted transaction
            # would look like another writer's records. And where nothing is to be copied, a group at the end of an
            # empty log can be migrated too.
            await self.begin(with_copies=False)
            return await self.commit(first, target_end), target_end
        if target_end < progress.target_end:
            raise CommandFailed(
                f"partition {route.partition} of topic {route.target_topic} ends at {target_end} and was written up to"
                f" {progress.target_end}: the topic was made again. Begin with another --name"
            )
        return progress, target_end

    async def begin(self, with_copies: bool = True) -> None:
        """Only when there is something to write: an open transaction holds back readers."""
        await self._delivery.begin(with_copies)

    async def produce(self, batch: CopiedBatch) -> None:
        """Returns when it is on its way, and there is room for another."""
        await self._slots.acquire()
        if self._failure is not None:
            raise self._failure
        sequence = self._sequences.take(batch.record_count)
        data = with_producer(
            batch, self._producer.producer_id, self._producer.epoch, sequence, self._delivery.attributes
        )
        task = asyncio.create_task(self._send(self._leader, self._route.target_topic, self._route.partition, data))
        task.add_done_callback(self._on_sent)
        self._sent.append((task, batch.spans))

    def _on_sent(self, task: asyncio.Task[int]) -> None:
        self._slots.release()
        if not task.cancelled() and task.exception() is not None and self._failure is None:
            self._failure = task.exception()

    async def _send(self, leader: int, topic: str, partition: int, data: bytes) -> int:
        """The offset that its first record has got."""
        records = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=partition, records=data)])
        request = ProduceRequest(
            transactional_id=self._delivery.transactional_id,
            acks=-1,
            timeout_ms=PRODUCE_TIMEOUT_MS,
            topic_data=[records],
        )
        answer = await self._kafka.ask(leader, request, ProduceResponse)
        ((one,),) = (found.partition_responses for found in answer.responses)
        hint = " (the topic's max.message.bytes is lower)" if one.error_code is ErrorCode.MESSAGE_TOO_LARGE else ""
        check(
            one.error_code,
            f"writing {len(data)} bytes to partition {partition} of topic {topic}{hint}",
            one.error_message,
        )
        return one.base_offset

    async def commit(self, next_source: int, target_end: int, repeats: tuple[int, int] | None = None) -> Progress:
        """Everything that was produced, where it has landed, and that `next_source` is read next: from now on, or not
        at all.
        """
        runs: list[Run] = []
        for task, spans in self._sent:
            base = await task
            for span in spans:
                runs.append(Run(span.source, base, span.length))
                base += span.length
            target_end = base
        self._sent = []
        route = self._route
        self._may_be_late = True
        copied = Copied(
            next_source,
            target_end,
            joined(runs),
            target_topic=route.target_topic,
            source_cluster=route.source_cluster,
            source_id=route.source_id,
            target_id=route.target_id,
            repeats=repeats,
        )
        progress = Progress(next_source, target_end)
        try:
            await self._write_runs(copied)
            await self._delivery.end(progress, self._group_coordinator)
        except Refused:
            self._may_be_late = False
            raise
        self._may_be_late = False
        return progress

    async def _write_runs(self, copied: Copied) -> None:
        builder = DefaultRecordBatchBuilder(
            magic=2,
            compression_type=0,
            is_transactional=0,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=-1,
            base_sequence=NO_SEQUENCE,
            batch_size=_MOST_RUNS_BYTES,
        )
        builder.append(0, None, encode_key(self._route.topic, self._route.partition), encode(copied), [])
        batch = CopiedBatch(bytearray(builder.build()), (), 1)
        sequence = self._runs_sequences.take(1)
        data = with_producer(
            batch, self._producer.producer_id, self._producer.epoch, sequence, self._delivery.attributes
        )
        await self._send(self._runs_leader, self._route.mirror.runs_topic, 0, data)

    async def give_up(self) -> None:
        """End at once what holds back readers, if that is safe; else the next producer of the name does it.

        A batch that may still be on its way could land behind the marker of an abort, as if it were of the next
        transaction.
        """
        _, waiting = (
            await asyncio.wait({task for task, _ in self._sent}, timeout=ABORT_SECONDS)
            if self._sent
            else (set(), set())
        )
        for task in waiting:
            task.cancel()
        ends = await asyncio.gather(*(task for task, _ in self._sent), return_exceptions=True)
        if self._may_be_late or any(isinstance(end, BaseException) and not isinstance(end, Refused) for end in ends):
            return
        try:
            async with asyncio.timeout(ABORT_SECONDS):
                await self._delivery.abort()
        except (Refused, *TRANSIENT):
            pass
