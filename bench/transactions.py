"""Transactions: how many a second, how long a commit takes, what they cost over plain idempotent writing, and what
read_committed costs.

One producer, one transaction after the other: librdkafka, whose transactions are of version 1, and Java 4, of version 2
(KIP-890). Plain writing waits for its acknowledgements after as many records.
"""

from __future__ import annotations

import subprocess
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import pulsar as native_client
from confluent_kafka import Producer, TopicPartition

from integration.kafka_clients import QUIET, consumer, create
from integration.launcher.jars import class_path
from integration.launcher.kafka import tools
from integration.launcher.pulsar import Standalone
from integration.support import admin

FLUSHING: Final = "sidecar flushing"
SECONDS: Final = 4.0
WARM: Final = 50
PROGRAM: Final = Path(__file__).parent / "programs" / "TransactionRate.java"
PAYLOAD: Final = b"x" * 100
# Records of a transaction, and partitions that they go to.
CASES: Final = ((1, 1), (100, 1), (1, 16), (100, 16))


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionCost:
    system: str
    client: str
    records: int
    partitions: int
    transactions_per_s: float
    commit_p50_ms: float
    commit_p99_ms: float
    plain_per_s: float  # the same records, waited for in the same portions
    committed_over_uncommitted: float  # the rate of reading them


def _client(address: str, **settings: str) -> Producer:
    return Producer({"bootstrap.servers": address, "enable.idempotence": True, "linger.ms": 0, **QUIET, **settings})


def _write(client: Producer, topic: str, records: int, partitions: int, turn: int) -> None:
    for number in range(records):
        client.produce(topic, PAYLOAD, partition=(turn + number) % partitions)


class _Rate(NamedTuple):
    a_second: float
    commit_p50_ms: float
    commit_p99_ms: float


def _librdkafka(address: str, topic: str, records: int, partitions: int, *, transactional: bool) -> _Rate:
    client = _client(address, **({"transactional.id": topic} if transactional else {}))
    if transactional:
        client.init_transactions(60)
    commits: list[float] = []
    turn, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < SECONDS:
        if turn == WARM:  # the first ones open partitions and elect coordinators
            commits, begun = [], time.perf_counter()
        if transactional:
            client.begin_transaction()
        _write(client, topic, records, partitions, turn)
        client.flush(60)
        committing = time.perf_counter()
        if transactional:
            client.commit_transaction(60)
        commits.append(time.perf_counter() - committing)
        turn += 1
    rate = len(commits) / (time.perf_counter() - begun)
    commits.sort()
    return _Rate(rate, commits[len(commits) // 2] * 1000, commits[int(len(commits) * 0.99)] * 1000)


def _java(address: str, topic: str, records: int, partitions: int, *, transactional: bool) -> _Rate:
    command = [
        "java",
        "-Xmx256m",
        "-cp",
        class_path(tools()),
        str(PROGRAM),
        address,
        topic,
        str(records),
        str(partitions),
    ]
    command += [str(int(SECONDS)), *([topic] if transactional else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        raise SystemExit(f"{PROGRAM.name} has failed:\n{done.stderr}")
    return _Rate(*map(float, done.stdout.split()))


CLIENTS: Final[dict[str, Callable[..., _Rate]]] = {"librdkafka": _librdkafka, "java": _java}


def _read_rate(address: str, topic: str, partitions: int, isolation: str) -> float:
    """Records a second, of all that was committed."""
    reader = consumer(address, **{"isolation.level": isolation, "enable.partition.eof": True})
    reader.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    count, ends, begun = 0, 0, 0.0
    while ends < partitions:
        for message in reader.consume(10_000, 1):
            begun = begun or time.perf_counter()
            if message.error() is None:
                count += 1
            else:
                ends += 1
    took = time.perf_counter() - begun
    reader.close()
    return count / took


def transaction_costs(addresses: dict[str, str]) -> list[TransactionCost]:
    """Of each system in turn, case by case."""
    return [
        _cost(system, address, client, records, partitions)
        for client in CLIENTS
        for records, partitions in CASES
        for system, address in addresses.items()
    ]


def _cost(system: str, address: str, client: str, records: int, partitions: int) -> TransactionCost:
    topic, plain_topic = (f"{kind}-{records}-{partitions}-{uuid.uuid4().hex[:6]}" for kind in ("transactions", "plain"))
    create(address, topic, partitions)
    create(address, plain_topic, partitions)
    measure = CLIENTS[client]
    in_transactions = measure(address, topic, records, partitions, transactional=True)
    plain = measure(address, plain_topic, records, partitions, transactional=False)
    rates = [
        _read_rate(address, topic, partitions, isolation)
        for isolation in ("read_uncommitted", "read_committed")
        for _ in range(2)
    ]
    return TransactionCost(
        system=system,
        client=client,
        records=records,
        partitions=partitions,
        transactions_per_s=in_transactions.a_second,
        commit_p50_ms=in_transactions.commit_p50_ms,
        commit_p99_ms=in_transactions.commit_p99_ms,
        plain_per_s=plain.a_second,
        committed_over_uncommitted=rates[3] / rates[1],
    )


def native_acknowledgement_ms(pulsar: Standalone) -> float:
    """How long a native producer waits for Pulsar to acknowledge a message, at the median: what each step of a commit
    waits for.
    """
    topic = f"persistent://public/default/acknowledged-{uuid.uuid4().hex[:6]}"
    admin("PUT", f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/partitions", b"1")
    client = native_client.Client(pulsar.url, logger=native_client.ConsoleLogger(native_client.LoggerLevel.Error))
    writer = client.create_producer(topic, batching_enabled=False)
    took = []
    for _ in range(500):
        begun = time.perf_counter()
        writer.send(PAYLOAD)
        took.append(time.perf_counter() - begun)
    client.close()
    return sorted(took[50:])[225] * 1000
