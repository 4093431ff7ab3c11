"""Policies of a topic, by Pulsar's admin API. Before 2.11 brokers keep none unless they are set to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from kafka_sidecar.pulsar.admin.connections import Response
from kafka_sidecar.pulsar.admin.http import AdminHttp, mapping, path_of, texts
from kafka_sidecar.pulsar.errors import Refused, Unavailable

T = TypeVar("T")

_SWITCH_ON: Final = "set topicLevelPoliciesEnabled=true and systemTopicEnabled=true on every broker"


class NoTopicPolicies(Refused):
    """These brokers keep no policies of topics."""


class PolicyAdmin:
    """What a topic says itself; None where it leaves it to its namespace. May raise NoTopicPolicies."""

    def __init__(self, http: AdminHttp) -> None:
        self._http = http

    async def retention(self, topic: str) -> tuple[int, int] | None:
        """Minutes and MiB."""
        return await self._get(topic, "retention", retention)

    async def set_retention(self, topic: str, minutes: int, megabytes: int) -> None:
        await self._call(
            "POST", topic, "retention", {"retentionTimeInMinutes": minutes, "retentionSizeInMB": megabytes}
        )

    async def remove_retention(self, topic: str) -> None:
        await self._call("DELETE", topic, "retention")

    async def max_message_size(self, topic: str) -> int | None:
        return await self._get(topic, "maxMessageSize", int)

    async def set_max_message_size(self, topic: str, size: int) -> None:
        await self._call("POST", topic, "maxMessageSize", size)

    async def remove_max_message_size(self, topic: str) -> None:
        await self._call("DELETE", topic, "maxMessageSize")

    async def compaction_threshold(self, topic: str) -> int | None:
        return await self._get(topic, "compactionThreshold", int)

    async def set_compaction_threshold(self, topic: str, size: int) -> None:
        await self._call("POST", topic, "compactionThreshold", size)

    async def remove_compaction_threshold(self, topic: str) -> None:
        await self._call("DELETE", topic, "compactionThreshold")

    async def of_cursors(self, topic: str) -> dict[str, Any]:
        """What moves cursors, named as the policies of a namespace are."""
        quotas = await self._get(topic, "backlogQuotaMap", mapping)
        return {"message_ttl_in_seconds": await self._get(topic, "messageTTL", int), "backlog_quota_map": quotas}

    async def replication_clusters(self, topic: str) -> list[str] | None:
        return await self._get(topic, "replication", texts)

    async def quorums(self, topic: str) -> tuple[int, int, int] | None:
        """Ensemble, write quorum, ack quorum."""
        return await self._get(topic, "persistence", persistence_quorums)

    async def _get(self, topic: str, policy: str, read: Callable[[Any], T]) -> T | None:
        response = await self._call("GET", topic, policy)
        if response.status == 204 or not response.body:
            return None
        try:
            found = response.json()
            return None if found is None else read(found)
        except (ValueError, LookupError, TypeError) as error:
            raise Unavailable(f"the {policy} of {topic} is not what a broker answers: {response.text[:200]}") from error

    async def _call(self, method: str, topic: str, policy: str, body: object = None) -> Response:
        try:
            return await self._http.call(method, f"{path_of(topic)}/{policy}", body=body)
        except Refused as error:
            if ": 405 " in str(error):
                raise NoTopicPolicies(f"this Pulsar keeps no policies of topics: {_SWITCH_ON}") from error
            raise


def persistence_quorums(found: Any) -> tuple[int, int, int]:
    """A persistence policy as the admin API has it, of a topic or a namespace: ensemble, write quorum, ack quorum."""
    return int(found["bookkeeperEnsemble"]), int(found["bookkeeperWriteQuorum"]), int(found["bookkeeperAckQuorum"])


def retention(found: Any) -> tuple[int, int]:
    """A retention policy as the admin API has it, of a topic or a namespace: minutes and MiB."""
    return int(found["retentionTimeInMinutes"]), int(found["retentionSizeInMB"])
