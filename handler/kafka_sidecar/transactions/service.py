"""Transactions as a part of the running sidecar: the coordinator, its topic and what keeps it at work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafka_sidecar.config import TransactionsConfig
from kafka_sidecar.coordination.home import Names
from kafka_sidecar.coordination.named_topics import IdOf
from kafka_sidecar.coordination.runtime import CoordinatorRuntime, InternalTopic
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.loop.ids import NewId, NewProducerId
from kafka_sidecar.model.sidecar import SidecarInfo
from kafka_sidecar.pulsar.ports import Admin, Client
from kafka_sidecar.transactions.coordinator import Coordinator
from kafka_sidecar.transactions.markers import Logs, Markers
from kafka_sidecar.transactions.records import TransactionRecords

SUBSCRIPTION: Final = "kafka-sidecar-transactions"

TransactionRuntime = CoordinatorRuntime[Coordinator]


def transaction_runtime(
    client: Client,
    admin: Admin,
    config: TransactionsConfig,
    namespace: str,
    logs: Logs,
    own: SidecarInfo,
    names: Names,
    monotonic: Callable[[], float],
    clock: Clock,
    new_id: NewId,
    new_producer_id: NewProducerId,
    id_of: IdOf,
) -> TransactionRuntime:
    topic = InternalTopic(
        kind="transaction",
        namespace=namespace,
        name="__transaction_state",
        partitions=config.state_partitions,
        subscription=SUBSCRIPTION,
        producer="kafka-transactions",
        codec=TransactionRecords(),
    )
    coordinator = Coordinator(
        config, Markers(logs), monotonic, clock.wall, clock.awake, new_producer_id, lambda: runtime.leaders.all_are_new
    )
    runtime: TransactionRuntime = CoordinatorRuntime(
        client, admin, topic, own, names, coordinator, clock, new_id, id_of
    )
    return runtime
