"""A consume-transform-produce loop with librdkafka, which begins anew whenever anything goes wrong."""

from __future__ import annotations

import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer

from integration.kafka_clients import QUIET

BATCH = 20
ABORT_EACH = 12


@dataclass
class ExactlyOnceCopier:
    """Copies from one topic to another until it is stopped."""

    address: str
    source: str
    target: str
    copied: int = 0
    failures: list[str] = field(default_factory=list)
    commits: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self._stop.set()
        self.thread.join(120)
        assert not self.thread.is_alive(), f"the copier hangs: {self.failures[-5:]}"

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._copy()
            except KafkaException as failure:
                self.failures.append(f"{time.strftime('%H:%M:%S')} {failure}")
                time.sleep(0.2)

    def _copy(self) -> None:
        # With its strategy of begin anew, librdkafka 2.11 hangs where its only broker goes at the wrong moment: a
        # broker that it gives up stays "terminating" for as long as a request for a coordinator holds it.
        common: dict[str, Any] = {"bootstrap.servers": self.address, "metadata.recovery.strategy": "none", **QUIET}
        producer = Producer(
            {**common, "transactional.id": self.target, "transaction.timeout.ms": 20_000, "linger.ms": 0}
        )
        producer.init_transactions(40)
        consumer = Consumer(
            {
                **common,
                "group.id": f"copies-{self.target}",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": 6_000,
                "heartbeat.interval.ms": 500,
            }
        )
        consumer.subscribe([self.source])
        turn = 0
        try:
            while not self._stop.is_set():
                messages = consumer.consume(BATCH, 0.5)
                if any(message.error() for message in messages):
                    raise KafkaException(next(message.error() for message in messages if message.error()))
                if messages:
                    turn += 1
                    self._transact(producer, consumer, messages, aborts=turn % ABORT_EACH == 0)
        finally:
            consumer.close()

    def _transact(self, producer: Producer, consumer: Consumer, messages: list[Any], *, aborts: bool) -> None:
        producer.begin_transaction()
        for message in messages:
            producer.produce(self.target, message.value(), message.key(), partition=message.partition())
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), 40
        )
        if aborts:
            producer.flush(40)
            producer.abort_transaction(40)
            raise KafkaException("aborted on purpose: it begins anew from what is committed")
        begun = time.perf_counter()
        producer.commit_transaction(40)
        self.commits.append(time.perf_counter() - begun)
        self.copied += len(messages)


if __name__ == "__main__":
    address, source, target = sys.argv[1:]
    ExactlyOnceCopier(address, source, target).thread.join()
