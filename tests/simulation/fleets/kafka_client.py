"""A Kafka client: it asks who leads, and asks those. What it does about errors is what clients do."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, TypeVar

from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message
from kafka_sidecar.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafka_sidecar.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from tests.simulation.fleets.network import Address, ClientEnd, Network
from tests.simulation.history import Violation

METADATA_VERSION: Final = 12
COORDINATOR_VERSION: Final = 3
# request.timeout.ms, as these clients have it.
REQUEST_SECONDS: Final = 12.0
RETRY_SECONDS: Final = 0.1
R = TypeVar("R", bound=Message)

RETRIABLE: Final = frozenset(
    {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


class Lost(Exception):
    """Nothing is known of what was asked: the connection ended, or no answer came in time."""


class KafkaClient:
    def __init__(self, network: Network, name: str, bootstrap: Sequence[Address]) -> None:
        self.name = name
        self._network = network
        self._bootstrap = list(bootstrap)
        self._nodes: dict[int, Address] = {}
        self._ends: dict[Address, ClientEnd] = {}
        self._connecting: dict[Address, asyncio.Lock] = {}
        self._asked = 0

    async def ask(self, address: Address, request: Message, response: type[R], version: int) -> R:
        """Raises Lost."""
        (answer,) = await self.ask_in_order(address, [request], response, version)
        if answer is None:
            raise Lost(f"{address[0]} did not answer")
        return answer

    async def ask_in_order(
        self, address: Address, requests: Sequence[Message], response: type[R], version: int
    ) -> list[R | None]:
        """Over one connection: where it ends, what is behind does not go over another. None for each without an
        answer.
        """
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                end = await self._end(address)
        except (ConnectionError, TimeoutError):
            self._drop(address)
            return [None] * len(requests)
        asked = [asyncio.ensure_future(self._answer(address, end, one, response, version)) for one in requests]
        return await asyncio.gather(*asked)

    async def _answer(
        self, address: Address, end: ClientEnd, request: Message, response: type[R], version: int
    ) -> R | None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                return await end.ask(request, response, version)
        except (ConnectionError, TimeoutError):
            if self._ends.get(address) is end:
                self._drop(address)
            return None

    async def _end(self, address: Address) -> ClientEnd:
        """One connection to each: what is asked at the same time keeps its order."""
        async with self._connecting.setdefault(address, asyncio.Lock()):
            end = self._ends.get(address)
            if end is None or not end.is_open:
                end = self._ends[address] = await self._network.connect(address)
            return end

    def _drop(self, address: Address) -> None:
        end = self._ends.pop(address, None)
        if end is not None:
            end.close()

    def close(self) -> None:
        for address in list(self._ends):
            self._drop(address)

    @property
    def any_address(self) -> Address:
        self._asked += 1
        known = [*self._nodes.values(), *self._bootstrap]
        return known[self._asked % len(known)]

    async def metadata(self, topic: str) -> MetadataResponseTopic:
        """Raises Lost. What is said of a topic that is there is true, or an error after which clients ask again."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False)
        found = await self.ask(self.any_address, request, MetadataResponse, METADATA_VERSION)
        if found.brokers:
            self._nodes = {one.node_id: (one.host, one.port) for one in found.brokers}
        (told,) = found.topics
        return told

    async def leader(self, topic: str, partition: int) -> Address | None:
        """Where a partition is served; None where that is not known now. Raises Lost."""
        told = await self.metadata(topic)
        if told.error_code in RETRIABLE:
            return None
        if told.error_code is not ErrorCode.NONE or partition >= len(told.partitions):
            raise Violation(
                f"{self.name} is told of {topic}: {told.error_code.name}, {len(told.partitions)} partitions"
            )
        found = next(one for one in told.partitions if one.partition_index == partition)
        if found.error_code is not ErrorCode.NONE:
            if found.error_code in RETRIABLE:
                return None
            raise Violation(f"{self.name} is told of {topic}-{partition}: {found.error_code.name}")
        if found.leader_id not in self._nodes:  # librdkafka would take the partition for gone
            raise Violation(
                f"{self.name} is told that {found.leader_id} leads {topic}-{partition}, and nothing of that node"
            )
        return self._nodes[found.leader_id]

    async def coordinator(self, key: str, kind: int) -> Address | None:
        """Raises Lost."""
        request = FindCoordinatorRequest(key=key, key_type=kind)
        found = await self.ask(self.any_address, request, FindCoordinatorResponse, COORDINATOR_VERSION)
        if found.error_code is ErrorCode.NONE:
            return found.host, found.port
        if found.error_code in RETRIABLE:
            return None
        raise Violation(f"{self.name} is told of the coordinator of {key}: {found.error_code.name}")
