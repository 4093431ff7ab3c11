"""Transactions as a part of the running sidecar: the coordinator, its topic and what keeps it at work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from handler.clock import Clock
from handler.config import TransactionsConfig
from handler.coordination.leaders import Identity
from handler.coordination.runtime import CoordinatorRuntime, InternalTopic
from handler.pulsar.admin import PulsarAdmin
from handler.pulsar.client import PulsarClient
from handler.transactions.coordinator import Coordinator
from handler.transactions.markers import Logs, Markers
from handler.transactions.records import TransactionRecords

SUBSCRIPTION: Final = "kafka-sidecar-transactions"

TransactionRuntime = CoordinatorRuntime[Coordinator]


def transaction_runtime(
    client: PulsarClient, admin: PulsarAdmin, config: TransactionsConfig, namespace: str, logs: Logs, own: Identity,
    monotonic: Callable[[], float], clock: Clock,
) -> TransactionRuntime:  # fmt: skip
    topic = InternalTopic(
        kind="transaction", namespace=namespace, name="__transaction_state", partitions=config.state_partitions,
        subscription=SUBSCRIPTION, producer="kafka-transactions", codec=TransactionRecords(),
    )  # fmt: skip
    coordinator = Coordinator(config, Markers(logs), monotonic, clock.wall, clock.awake)
    return CoordinatorRuntime(client, admin, topic, own, coordinator)
