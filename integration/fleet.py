"""Sidecars that advertise themselves, and load that watches how they hand over."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from integration.kafka_clients import QUIET
from integration.launcher.process import free_port
from integration.launcher.pulsar import Standalone
from integration.launcher.sidecar import SidecarProcess
from integration.patience import LONG, wait_for
from integration.pipelines import contents


def gateways(broker: Standalone, directory: Path, numbers: Iterable[int], **settings: Any) -> list[SidecarProcess]:
    """Not started yet."""
    ports = [(number, free_port()) for number in numbers]
    return [
        SidecarProcess(
            directory / f"gateway-{number}",
            broker.url,
            broker.admin_url,
            port=port,
            kafka__advertised=f"127.0.0.1:{port}",
            kafka__node_id=str(number),
            control__listen=f"127.0.0.1:{free_port()}",
            **settings,
        )
        for number, port in ports
    ]


def told(address: str, topic: str) -> tuple[set[int], list[int]]:
    """The nodes, and the leader of each partition, as one sidecar tells them."""
    metadata = AdminClient({"bootstrap.servers": address, **QUIET}).list_topics(topic, timeout=10)
    partitions = metadata.topics[topic].partitions
    return set(metadata.brokers), [partitions[index].leader for index in sorted(partitions)]


def wait_until_all_lead(sidecars: Sequence[SidecarProcess], topic: str, seconds: float = LONG) -> list[int]:
    """Until all of them name the same leaders, and all of them are among these; returns the leaders."""
    return wait_until_agreed([sidecar.address for sidecar in sidecars], topic, len(sidecars), seconds)


def wait_until_agreed(addresses: Sequence[str], topic: str, leaders: int, seconds: float = LONG) -> list[int]:
    """Until all that are asked name the same leaders, and so many of them; returns the leaders of all partitions."""
    found: list[list[int]] = []

    def agreed() -> bool:
        with suppress(KafkaException):  # one does not answer yet
            found[:] = [told(address, topic)[1] for address in addresses]
            return all(one == found[0] and -1 not in one for one in found) and len(set(found[0])) == leaders
        return False

    wait_for(agreed, seconds)
    return found[0]


# Records of a partition. Where five of an idempotent producer are in flight and a sixth waits, librdkafka keeps a core
# busy until an answer comes: rd_kafka_toppar_producer_serve sets the time to wake up before it counts what is in
# flight.
_UNANSWERED = 5


def _group_of(topic: str) -> str:
    return f"{topic}-readers"


def pass_over(address: str, topic: str, partitions: int, offset: int) -> None:
    """The group of a load on this topic begins there in each partition."""
    group = Consumer({"bootstrap.servers": address, **QUIET, "group.id": _group_of(topic)})
    group.commit(
        offsets=[TopicPartition(topic, partition, offset) for partition in range(partitions)], asynchronous=False
    )
    group.close()


class Load:
    """Producers and a group that go on for as long as the test does something to their sidecars, and what their
    applications see of it.
    """

    def __init__(
        self,
        addresses: Sequence[str],
        topic: str,
        partitions: int,
        settings: dict[str, Any] | None = None,
        rest: float = 0.02,
    ) -> None:
        """`rest`: seconds, when each partition has got a record."""
        self.topic, self.partitions = topic, partitions
        self._rest = rest
        self.failed: list[str] = []
        # By partition: number and offset. librdkafka tells none where a later batch's answer shows that this one was
        # taken, whose own was lost (rd_kafka_dr_implicit_ack).
        self.acknowledged: dict[int, list[tuple[int, int | None]]] = defaultdict(list)
        self.timed_out = 0  # requests of the producer that nobody has answered
        self.read: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._runs: list[list[tuple[int, int]]] = []  # what a member has read of a partition while it was its own
        servers = {"bootstrap.servers": ",".join(addresses), **QUIET, "error_cb": self._on_error}
        statistics = {"statistics.interval.ms": 500, "stats_cb": self._on_statistics}
        self._producer = Producer(
            {**servers, **statistics, "enable.idempotence": True, "linger.ms": 5, **(settings or {})}
        )
        group = {"group.id": _group_of(topic), "auto.offset.reset": "earliest", "enable.auto.commit": True}
        self._consumers = [Consumer({**servers, **group}) for _ in range(2)]
        self._stop, self._stop_reading = threading.Event(), threading.Event()
        self._threads = [
            threading.Thread(target=self._produce),
            *(threading.Thread(target=self._consume, args=(one,)) for one in self._consumers),
        ]
        self._numbers: dict[int, int] = defaultdict(int)
        for thread in self._threads:
            thread.start()

    def _on_error(self, error: KafkaError) -> None:
        if error.fatal() or error.code() == KafkaError._ALL_BROKERS_DOWN:
            self.failed.append(str(error))

    def _on_statistics(self, text: str) -> None:
        # Of a broker that has left the cluster nothing is told any more.
        timed_out = sum(int(broker["req_timeouts"]) for broker in json.loads(text)["brokers"].values())
        self.timed_out = max(self.timed_out, timed_out)

    def _on_delivery(self, error: KafkaError | None, message: Any) -> None:
        if error is not None:
            self.failed.append(str(error))
            return
        partition = message.partition()
        self.acknowledged[partition].append((int(message.value()), message.offset()))

    def _produce(self) -> None:
        while not self._stop.is_set():
            for partition in range(self.partitions):
                if self._numbers[partition] - len(self.acknowledged[partition]) < _UNANSWERED:
                    self._producer.produce(
                        self.topic, b"%d" % self._numbers[partition], partition=partition, on_delivery=self._on_delivery
                    )
                    self._numbers[partition] += 1
            self._stop.wait(self._rest)  # not `poll`, which returns at the first answer
            self._producer.poll(0)
        if self._producer.flush(LONG):
            self.failed.append("records without an answer")

    def _consume(self, consumer: Consumer) -> None:
        runs: dict[int, list[tuple[int, int]]] = {}

        def begin_anew(*_: Any) -> None:
            self._runs.extend(runs.values())
            runs.clear()

        consumer.subscribe([self.topic], on_assign=begin_anew)
        while not self._stop_reading.is_set():
            message = consumer.poll(0.1)
            if message is None:
                continue
            if message.error() is not None:
                self.failed.append(f"consumer: {message.error()}")
                continue
            partition, record = message.partition() or 0, (int(message.value() or 0), message.offset() or 0)
            self.read[partition].append(record)
            runs.setdefault(partition, []).append(record)
        begin_anew()
        consumer.close()

    def wait_for_more(self, records: int = 50) -> None:
        """Until so many more of each partition are acknowledged."""
        before = {partition: len(self.acknowledged[partition]) for partition in range(self.partitions)}
        wait_for(
            lambda: all(len(self.acknowledged[partition]) >= count + records for partition, count in before.items())
        )

    def stop(self) -> None:
        """Stop producing; the group reads to the end."""
        self._stop.set()
        self._threads[0].join()
        until = time.monotonic() + LONG
        while time.monotonic() < until and any(self._left(partition) for partition in range(self.partitions)):
            time.sleep(0.1)
        self._stop_reading.set()
        for thread in self._threads[1:]:
            thread.join()

    def _left(self, partition: int) -> int:
        return len(
            {number for number, _ in self.acknowledged[partition]} - {number for number, _ in self.read[partition]}
        )

    def check(self) -> None:
        """Nothing lost, nothing twice, nothing out of order."""
        for partition in range(self.partitions):
            written = self.acknowledged[partition]
            assert [number for number, _ in written] == list(range(self._numbers[partition])), partition
            told = {offset: number for number, offset in written if offset is not None}
            assert list(told) == sorted(told), partition
            found = {offset: number for number, offset in self.read[partition]}
            assert told.items() <= found.items(), partition
            assert [found[offset] for offset in sorted(found)] == list(range(self._numbers[partition])), partition
        for run in self._runs:
            first = run[0][0]
            assert [number for number, _ in run] == list(range(first, first + len(run))), "each after the one before"
            assert all(one < other for (_, one), (_, other) in pairwise(run))


class UnsequencedLoad:
    """A producer without sequences that waits for each answer of a partition, whoever leads it, before it sends more to
    it.

    Java's with max.in.flight=1 does that. librdkafka's waits for each broker's, so it may overtake itself when a leader
    changes.
    """

    def __init__(self, addresses: Sequence[str], topic: str, partitions: int) -> None:
        self._addresses, self._topic, self._partitions = addresses, topic, partitions
        self._sent: dict[int, list[asyncio.Future[Any]]] = defaultdict(list)
        self._stop = threading.Event()
        self._offsets: dict[int, list[int]] = {}
        self._pool = ThreadPoolExecutor(1)
        self._running = self._pool.submit(lambda: asyncio.run(self._produce()))

    async def _produce(self) -> None:
        async with AIOKafkaProducer(
            bootstrap_servers=list(self._addresses), enable_idempotence=False, acks="all", linger_ms=5
        ) as producer:
            while not self._stop.is_set():
                for partition in range(self._partitions):
                    sent = self._sent[partition]
                    sent.append(await producer.send(self._topic, b"%d" % len(sent), partition=partition))
                await asyncio.sleep(0.02)
            for partition, sent in self._sent.items():
                self._offsets[partition] = [(await one).offset for one in sent]

    def stop(self) -> None:
        self._stop.set()
        self._running.result(60)
        self._pool.shutdown()

    def check(self) -> None:
        """Nothing refused, nothing lost, nothing out of order. What was sent again may be there twice."""
        for partition, offsets in self._offsets.items():
            assert offsets == sorted(set(offsets)), partition
            found = contents(self._addresses[0], self._topic, partition)
            in_log = list(dict.fromkeys(int(record.value or b"-1") for record in found))
            assert in_log == list(range(len(offsets))), partition
