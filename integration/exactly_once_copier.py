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


@dataclass
class ExactlyOnceCopier:
    """Copies from one topic to another until it has copied so many, or has heard nothing for so many seconds."""

    address: str
    source: str
    target: str
    name: str
    wanted: int
    silence: float = 12.0
    abort_each: int = 12
    copied: int = 0
    failures: list[str] = field(default_factory=list)
    commits: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        heard = time.monotonic()
        while self.copied < self.wanted and time.monotonic() - heard < self.silence:
            try:
                heard = self._copy(heard)
            except KafkaException as failure:
                self.failures.append(f"{time.strftime('%H:%M:%S')} {failure}")
                heard = time.monotonic()
                time.sleep(0.2)

    def _copy(self, heard: float) -> float:
        # With its strategy of begin anew, librdkafka 2.11 hangs where its only broker goes at the wrong moment: a broker that it gives up
        # stays "terminating" for as long as a request for a coordinator holds it.
        common: dict[str, Any] = {"bootstrap.servers": self.address, "metadata.recovery.strategy": "none", **QUIET}
        producer = Producer({**common, "transactional.id": self.name, "transaction.timeout.ms": 20_000, "linger.ms": 0})
        producer.init_transactions(40)
        consumer = Consumer({
            **common, "group.id": f"copies-{self.target}", "isolation.level": "read_committed", "enable.auto.commit": False,
            "auto.offset.reset": "earliest", "session.timeout.ms": 6_000, "heartbeat.interval.ms": 500,
        })  # fmt: skip
        consumer.subscribe([self.source])
        turn = 0
        try:
            while self.copied < self.wanted and time.monotonic() - heard < self.silence:
                messages = consumer.consume(BATCH, 0.5)
                if any(message.error() for message in messages):
                    raise KafkaException(next(message.error() for message in messages if message.error()))
                if not messages:
                    continue
                heard = time.monotonic()
                turn += 1
                self._transact(producer, consumer, messages, aborts=turn % self.abort_each == 0)
        finally:
            consumer.close()
        return heard

    def _transact(self, producer: Producer, consumer: Consumer, messages: list[Any], *, aborts: bool) -> None:
        producer.begin_transaction()
        for message in messages:
            producer.produce(self.target, message.value(), message.key(), partition=message.partition())
        producer.send_offsets_to_transaction(consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), 40)
        if aborts:
            producer.flush(40)
            producer.abort_transaction(40)
            raise KafkaException("aborted on purpose: it begins anew from what is committed")
        begun = time.perf_counter()
        producer.commit_transaction(40)
        self.commits.append(time.perf_counter() - begun)
        self.copied += len(messages)


if __name__ == "__main__":
    address, source, target, wanted = sys.argv[1:]
    ExactlyOnceCopier(address, source, target, target, int(wanted), silence=3600).thread.join()
