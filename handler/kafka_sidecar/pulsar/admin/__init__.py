"""Pulsar's admin REST API, as far as it is used: `topics`, `policies`, `subscriptions`, `cluster`, over one `http`.

connections  HTTP/1.1 connections that are reused
"""

from __future__ import annotations

from kafka_sidecar.pulsar.admin.cluster import ClusterAdmin
from kafka_sidecar.pulsar.admin.http import AdminHttp, AlreadyExists
from kafka_sidecar.pulsar.admin.policies import NoTopicPolicies, PolicyAdmin, persistence_quorums, retention
from kafka_sidecar.pulsar.admin.subscriptions import COMPACTION, SubscriptionAdmin, names_a_subscription
from kafka_sidecar.pulsar.admin.topics import BEFORE_FIRST, DescribedTopic, TopicAdmin

__all__ = [
    "BEFORE_FIRST",
    "COMPACTION",
    "AlreadyExists",
    "ClusterAdmin",
    "DescribedTopic",
    "NoTopicPolicies",
    "PolicyAdmin",
    "PulsarAdmin",
    "SubscriptionAdmin",
    "TopicAdmin",
    "names_a_subscription",
    "persistence_quorums",
    "retention",
]


class PulsarAdmin:
    def __init__(self, url: str, max_connections: int = 16) -> None:
        self._http = AdminHttp(url, max_connections)
        self.topics = TopicAdmin(self._http)
        self.subscriptions = SubscriptionAdmin(self._http)
        self.policies = PolicyAdmin(self._http)
        self.cluster = ClusterAdmin(self._http)

    async def close(self) -> None:
        self._http.close()
