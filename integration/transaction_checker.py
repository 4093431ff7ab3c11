"""Writers of transactions and readers of what is committed, while something breaks; and the judgement of what they saw.

Each record says which transaction it is of, and of how many records that is. A transaction whose end its writer was not
told of may be there or not, but wholly.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, NamedTuple

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from integration.kafka_clients import QUIET, consumer, offset_at
from integration.patience import LONG

MOST_RECORDS: Final = 8
PATIENCE: Final = 40.0
COMMITTED: Final[dict[str, Any]] = {"isolation.level": "read_committed"}


Committed = dict[int, list[tuple[int, bytes]]]  # by partition: offsets and values


class Outcome(Enum):
    COMMITTED = 1
    ABORTED = 2
    UNKNOWN = 3


class Written(NamedTuple):
    writer: str
    transaction: int
    number: int
    records: int

    def encode(self) -> bytes:
        return ",".join(map(str, self)).encode()

    @classmethod
    def decode(cls, value: bytes) -> Written:
        writer, transaction, number, records = value.decode().split(",")
        return cls(writer, int(transaction), int(number), int(records))


class Writer:
    """Ends each fifth transaction by aborting it. After an error it begins anew, as an application that is
    restarted.
    """

    def __init__(self, address: str, name: str, topic: str, partitions: int) -> None:
        self.outcomes: dict[int, Outcome] = {}
        self.failures: list[str] = []
        self._address = address
        self.name = name
        self._topic = topic
        self._partitions = partitions
        self._random = random.Random(name)
        self._transaction = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                # Its re-bootstrap hangs where its only broker dies at the wrong moment (librdkafka 2.11).
                settings = {
                    "bootstrap.servers": self._address,
                    "transactional.id": self.name,
                    "metadata.recovery.strategy": "none",
                }
                client = Producer({**settings, "transaction.timeout.ms": 20_000, "linger.ms": 0, **QUIET})
                client.init_transactions(PATIENCE)
                while not self._stop.is_set():
                    self._transact(client)
                    time.sleep(0.01)
            except KafkaException as failure:
                self.failures.append(f"{time.strftime('%H:%M:%S')} {failure}")
                time.sleep(0.2)

    def _transact(self, client: Producer) -> None:
        self._transaction += 1
        count = self._random.randint(1, MOST_RECORDS)
        self.outcomes[self._transaction] = Outcome.ABORTED  # as long as its end was not asked for
        client.begin_transaction()
        for number in range(count):
            value = Written(self.name, self._transaction, number, count).encode()
            client.produce(self._topic, value, partition=self._random.randrange(self._partitions))
        client.flush(PATIENCE)
        if self._transaction % 5 == 0:
            client.abort_transaction(PATIENCE)
            return
        self.outcomes[self._transaction] = Outcome.UNKNOWN
        client.commit_transaction(PATIENCE)
        self.outcomes[self._transaction] = Outcome.COMMITTED

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(3 * PATIENCE)
        assert not self._thread.is_alive(), "a writer hangs"


class StableOffsets:
    """Asks a sidecar for the last stable offsets again and again: they never go back."""

    def __init__(self, address: str, topic: str, partitions: int) -> None:
        self.seen: dict[int, int] = {}
        self.went_back: list[str] = []
        self.failures: list[str] = []
        self._client = AdminClient({"bootstrap.servers": address, **QUIET})
        self._partitions = [TopicPartition(topic, number) for number in range(partitions)]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            for one in self._partitions:
                try:
                    stable = offset_at(self._client, one, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED, 5)
                except KafkaException as failure:  # its sidecar is away
                    self.failures.append(f"{time.strftime('%H:%M:%S')} {one.partition}: {failure}")
                    continue
                if stable < self.seen.get(one.partition, 0):
                    self.went_back.append(
                        f"{time.strftime('%H:%M:%S')} {one.partition}: {self.seen[one.partition]} to {stable}"
                    )
                self.seen[one.partition] = stable
            time.sleep(0.05)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(30)


class Reader:
    """Reads what is committed as it comes, and notes it with its offset."""

    def __init__(self, address: str, topic: str, partitions: int) -> None:
        self.records: Committed = {number: [] for number in range(partitions)}
        self._client = consumer(address, **COMMITTED)
        self._client.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            for message in self._client.consume(500, 0.2):
                if message.error() is None:
                    self.records[message.partition()].append((message.offset(), message.value()))

    def read_up_to(self, whole: Committed) -> None:
        """Wait until it has seen as much."""
        deadline = time.monotonic() + LONG
        while any(len(self.records[partition]) < len(records) for partition, records in whole.items()):
            assert time.monotonic() < deadline, "a consumer has stopped"
            time.sleep(0.1)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(30)
        self._client.close()


@dataclass
class TransactionChecker:
    addresses: Sequence[str]
    topic: str
    partitions: int = 3
    writers: list[Writer] = field(default_factory=list)

    def __post_init__(self) -> None:
        places = [address for address in self.addresses for _ in range(2)]
        self.writers = [
            Writer(address, f"w{n}-{self.topic}", self.topic, self.partitions) for n, address in enumerate(places)
        ]
        self._stable = [StableOffsets(address, self.topic, self.partitions) for address in self.addresses]
        self._readers = [Reader(address, self.topic, self.partitions) for address in self.addresses]

    @property
    def committed(self) -> int:
        return sum(
            outcome is Outcome.COMMITTED for writer in self.writers for outcome in list(writer.outcomes.values())
        )

    def wait_for_commits(self, count: int, seconds: float = 60) -> None:
        """So that a fault has met with work."""
        wanted, deadline = self.committed + count, time.monotonic() + seconds
        while self.committed < wanted:
            failures = [writer.failures[-2:] for writer in self.writers]
            assert time.monotonic() < deadline, f"{wanted - self.committed} commits are missing: {failures}"
            time.sleep(0.05)

    def judge(self) -> None:
        """Stop all, read everything, and compare."""
        for writer in self.writers:
            writer.stop()
        whole = read_committed(self.addresses[0], self.topic, self.partitions)
        for stable in self._stable:
            stable.stop()
            assert not stable.went_back, stable.went_back[:5]
            looked = all(stable.seen.get(partition, 0) > 0 for partition in whole)
            assert looked, f"nobody has looked: {stable.seen}, {stable.failures[-5:]}"
        for reader in self._readers:
            reader.read_up_to(whole)
            reader.stop()
            assert reader.records == whole, "a consumer saw something else"
        seen = Counter(Written.decode(value) for records in whole.values() for _, value in records)
        assert set(seen.values()) <= {1}, [one for one, times in seen.items() if times > 1][:5]
        found = Counter((one.writer, one.transaction, one.records) for one in seen)
        partial = [one for one, records in found.items() if records != one[2]]
        assert not partial, f"a part of {partial[:5]}"
        there = {(writer, transaction) for writer, transaction, _ in found}
        for name, outcomes in ((writer.name, writer.outcomes) for writer in self.writers):
            for transaction, outcome in outcomes.items():
                if outcome is not Outcome.UNKNOWN:
                    assert ((name, transaction) in there) is (outcome is Outcome.COMMITTED), (
                        f"{name} {transaction}: {outcome.name}"
                    )


def read_committed(address: str, topic: str, partitions: int = 1, seconds: float = 120) -> Committed:
    """All that is committed, when nothing is open any more: what nobody has ended times out first."""
    deadline = time.monotonic() + seconds
    places = [TopicPartition(topic, number, 0) for number in range(partitions)]
    client = consumer(address, **COMMITTED, **{"enable.partition.eof": True})
    admin = AdminClient({"bootstrap.servers": address, **QUIET})
    for at in places:
        while not _is_at_rest(admin, at):
            assert time.monotonic() < deadline, f"a transaction hangs in {at.partition}"
            time.sleep(0.5)
    found: Committed = {at.partition: [] for at in places}
    client.assign(places)
    ends: set[int] = set()
    while len(ends) < partitions:
        assert time.monotonic() < deadline, "what was written can't be read"
        for message in client.consume(500, 0.5):
            if message.error() is None:
                found[message.partition()].append((message.offset(), message.value()))
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ends.add(message.partition())
    client.close()
    return found


def _is_at_rest(admin: AdminClient, at: TopicPartition) -> bool:
    try:
        stable, end = (offset_at(admin, at, OffsetSpec.latest(), isolation, 10) for isolation in IsolationLevel)
    except KafkaException:  # its sidecar has just come back
        return False
    return stable == end
