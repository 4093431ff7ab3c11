"""What one batch costs the sidecar: a closed loop of prepared Produce requests, and the CPU time of the process that
answers.

The client is in this process and makes its requests beforehand, so that on two cores the sidecar has one to itself.
Slices of the same loop are repeated: the least and the lower quartile repeat where a mean does not.
"""

from __future__ import annotations

import asyncio
import struct
import time
import uuid
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar, cast

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from kafka_sidecar.wire.crc import crc32c
from kafka_sidecar.wire.message import Message
from kafka_sidecar.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kafka_sidecar.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from kafka_sidecar.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafka_sidecar.wire.records import split_batches

PRODUCE_VERSION: Final = 13
SLICES: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A shape of Produce requests."""

    name: str
    records: int  # a batch
    record_bytes: int
    partitions: int = 1  # in a request, one batch each
    in_flight: int = 5
    requests: int = 2_000  # a slice
    with_consumer: bool = False
    is_idempotent: bool = True


CASES: Final = (
    Case(name="15.5 KB batches", records=15, record_bytes=1024),
    Case(name="145 records of 100 B", records=145, record_bytes=100),
    Case(name="one record a request", records=1, record_bytes=100),
    Case(name="64 partitions of 100 B", records=1, record_bytes=100, partitions=64, requests=150),
    Case(name="15.5 KB batches, with a consumer", records=15, record_bytes=1024, with_consumer=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCost:
    case: str
    least_us: float  # CPU of the sidecar for a batch
    quartile_us: float
    cpu_s_per_gib: float
    batches_per_s: float


def cpu_ns(pid: int) -> int:
    """The time that all threads of a process have run, in nanoseconds; /proc/*/stat counts in hundredths of a
    second.
    """
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir())


def made_batch(case: Case) -> bytearray:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=2**30,
    )
    payload = bytes(number * 7 % 251 for number in range(case.record_bytes))
    now = int(time.time() * 1000)
    for number in range(case.records):
        builder.append(number, now, None, payload, [])
    return bytearray(builder.build())


def numbered(batch: bytearray, producer_id: int, sequence: int) -> bytes:
    struct.pack_into(
        ">qhi", batch, 43, producer_id, 0 if producer_id >= 0 else -1, sequence if producer_id >= 0 else -1
    )
    struct.pack_into(">I", batch, 17, crc32c(memoryview(batch)[21:]))
    return bytes(batch)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes((value,))


def request_of(correlation: int, topic: uuid.UUID, batches: list[bytes], first_partition: int = 0) -> bytes:
    parts = [
        struct.pack(">hhih5sb", 0, PRODUCE_VERSION, correlation, 5, b"bench", 0),
        struct.pack(">bhi", 0, -1, 30_000),
        b"\2",
        topic.bytes,
    ]
    parts.append(_varint(len(batches) + 1))
    for index, batch in enumerate(batches, first_partition):
        parts += [struct.pack(">i", index), _varint(len(batch) + 1), batch, b"\0"]
    parts.append(b"\0\0")
    body = b"".join(parts)
    return struct.pack(">i", len(body)) + body


class Loop(asyncio.Protocol):
    """Keeps `in_flight` requests under way until all are answered."""

    def __init__(self, in_flight: int) -> None:
        self._in_flight = in_flight
        self._buffer = b""
        self.first_answer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    async def run(self, requests: list[bytes]) -> None:
        self._todo = deque(requests)
        self._left = len(requests)
        self._done = asyncio.get_running_loop().create_future()
        for _ in range(self._in_flight):
            self._send()
        await self._done

    def _send(self) -> None:
        if self._todo:
            self._transport.write(self._todo.popleft())

    def data_received(self, data: bytes) -> None:
        data = self._buffer + data
        at = 0
        while len(data) - at >= 4:
            (size,) = struct.unpack_from(">i", data, at)
            if len(data) - at - 4 < size:
                break
            self.first_answer = self.first_answer or data[at + 4 : at + 4 + size]
            at += 4 + size
            self._left -= 1
            self._send()
        self._buffer = data[at:]
        if not self._left:
            self._done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._done.done():
            self._done.set_exception(ConnectionError(str(exc)))


M = TypeVar("M", bound=Message)


class Asker:
    """One request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, address: str) -> Asker:
        host, _, port = address.partition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    async def ask(self, request: Message, version: int, response: type[M]) -> M:
        frame = bytearray(struct.pack(">hhih", request.KEY, version, 0, 0) + b"\0" * request.is_flexible(version))
        request.write(version, frame)
        self._writer.write(struct.pack(">i", len(frame)) + frame)
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        answer = await self._reader.readexactly(size)
        return response.read(version, memoryview(answer)[4 + response.is_flexible(version) :])

    def close(self) -> None:
        self._writer.close()


async def create_topic(asker: Asker, name: str, partitions: int) -> uuid.UUID:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    created = await asker.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7, CreateTopicsResponse)
    topic_id = created.topics[0].topic_id
    if topic_id is None:
        raise SystemExit(f"{name} could not be created: {created}")
    return topic_id


async def _consume(address: str, topic_id: uuid.UUID, stop: asyncio.Event) -> None:
    """Fetch partition 0 from its start on, as a consumer that keeps up."""
    asker = await Asker.open(address)
    offset = 0
    while not stop.is_set():
        part = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=2**20)
        request = FetchRequest(
            max_wait_ms=500, min_bytes=1, max_bytes=2**24, topics=[FetchTopic(topic_id=topic_id, partitions=[part])]
        )
        answer = await asker.ask(request, 13, FetchResponse)
        for topic in answer.responses:
            for partition in topic.partitions:
                records = b"".join(partition.records or ())
                for header, _ in split_batches(records):
                    offset = header.base_offset + header.offset_count
    asker.close()


async def fill(address: str, topic_id: uuid.UUID, case: Case, batches: int) -> None:
    """Write so many batches to partition 0."""
    host, _, port = address.partition(":")
    _, client = await asyncio.get_running_loop().create_connection(lambda: Loop(case.in_flight), host, int(port))
    await client.run([request_of(1, topic_id, [numbered(made_batch(case), -1, -1)])] * batches)


async def first_to_each(address: str, topic_id: uuid.UUID, case: Case) -> None:
    """One batch to each partition, in one request."""
    host, _, port = address.partition(":")
    _, client = await asyncio.get_running_loop().create_connection(lambda: Loop(1), host, int(port))
    await client.run([request_of(1, topic_id, [numbered(made_batch(case), 7, 0)] * case.partitions)])


async def _measure(address: str, pid: int, case: Case, slices: int) -> BatchCost:
    asker = await Asker.open(address)
    topic = await create_topic(asker, f"batches-{uuid.uuid4().hex[:8]}", case.partitions)
    host, _, port = address.partition(":")
    loop = asyncio.get_running_loop()
    _, client = await loop.create_connection(lambda: Loop(case.in_flight), host, int(port))
    batch = made_batch(case)
    # 2,000 batches of 15.5 KB are 31 MB; sequences go on from slice to slice.
    stop = asyncio.Event()
    consumer = asyncio.create_task(_consume(address, topic, stop)) if case.with_consumer else None
    sequence = 0
    producer_id = -1
    if case.is_idempotent:
        request = InitProducerIdRequest(transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1)
        producer_id = (await asker.ask(request, 4, InitProducerIdResponse)).producer_id
    costs: list[float] = []
    rates: list[float] = []
    for number in range(slices + 1):
        requests = []
        for _ in range(case.requests):
            one = numbered(batch, producer_id, sequence)
            requests.append(request_of(sequence & 0x7FFFFFFF, topic, [one] * case.partitions))
            sequence += case.records
        await asyncio.sleep(0.2)
        before, begun = cpu_ns(pid), time.perf_counter()
        await client.run(requests)
        took = time.perf_counter() - begun
        batches = case.requests * case.partitions
        if number:  # the first warms it up
            costs.append((cpu_ns(pid) - before) / 1000 / batches)
            rates.append(batches / took)
    stop.set()
    if consumer is not None:
        await consumer
    asker.close()
    costs.sort()
    return BatchCost(
        case=case.name,
        least_us=costs[0],
        quartile_us=costs[len(costs) // 4],
        cpu_s_per_gib=costs[0] / 1e6 * 2**30 / len(batch),
        batches_per_s=max(rates),
    )


def batch_costs(address: str, pid: int, cases: tuple[Case, ...] = CASES, slices: int = SLICES) -> list[BatchCost]:
    return [asyncio.run(_measure(address, pid, case, slices)) for case in cases]
