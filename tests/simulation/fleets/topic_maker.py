"""It deletes a topic, makes it anew, and commits offsets of it, each through whichever sidecar it is told of.

make ──▶ commit greater and greater offsets, and ask for them ──▶ delete ──▶ make ──▶ ...
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final

from kafka_sidecar.apis.a08_offset_commit import KNOWN_SECONDS
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from kafka_sidecar.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from tests.simulation.fleets.clients import GROUP
from tests.simulation.fleets.kafka_client import RETRIABLE, KafkaClient, Lost
from tests.simulation.fleets.offsets import commit, committed
from tests.simulation.history import Violation

CREATE_VERSION: Final = 7
DELETE_VERSION: Final = 4
TIMEOUT_MS: Final = 8_000
_GROUP: Final = "of what is made anew"
# A sidecar may have heard of the deletion, and not look again before two seconds have passed; then it is looked up.
_MAY_NOT_BE_KNOWN: Final = RETRIABLE | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}


class TopicMaker:
    def __init__(
        self, client: KafkaClient, topic: str, counts: Counter[str], draw: Random, goes_on: Callable[[], bool]
    ) -> None:
        self._client = client
        self._topic = topic
        self._counts = counts
        self._draw = draw
        self._goes_on = goes_on
        self._next = 0
        self._first = 0  # what was committed before belongs to an earlier topic
        self._acknowledged = -1  # of this one
        self._made_at = 0.0
        self._is_made = False

    async def run(self) -> None:
        while self._goes_on():
            try:
                if not self._is_made:
                    await self._make()
                elif self._draw.random() < 0.05:
                    await self._delete()
                elif self._draw.random() < 0.4:
                    await self.look()
                else:
                    await self._commit()
            except Lost:
                pass
            await asyncio.sleep(self._draw.choice((0.01, 0.2, 1.0, 3.0)))

    async def _make(self) -> None:
        topic = CreatableTopic(name=self._topic, num_partitions=1, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
        answer = await self._client.ask(self._client.any_address, request, CreateTopicsResponse, CREATE_VERSION)
        error = ErrorCode(answer.topics[0].error_code)
        if error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            self._is_made = True
            self._first, self._acknowledged, self._made_at = self._next, -1, asyncio.get_running_loop().time()
            self._counts["make a topic"] += 1
        elif error not in RETRIABLE:
            raise Violation(
                f"{self._client.name} makes {self._topic}, and is told {error.name}: {answer.topics[0].error_message}"
            )

    async def _delete(self) -> None:
        self._is_made = False  # nobody commits while it may be going
        while self._goes_on():
            request = DeleteTopicsRequest(topic_names=[self._topic], timeout_ms=TIMEOUT_MS)
            try:
                answer = await self._client.ask(self._client.any_address, request, DeleteTopicsResponse, DELETE_VERSION)
            except Lost:
                await asyncio.sleep(1.0)
                continue
            error = ErrorCode(answer.responses[0].error_code)
            if error in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                self._counts["delete a topic"] += 1
                return
            if error not in RETRIABLE:
                raise Violation(f"{self._client.name} deletes {self._topic}, and is told {error.name}")
            await asyncio.sleep(0.5)

    async def _commit(self) -> None:
        coordinator = await self._client.coordinator(_GROUP, GROUP)
        if coordinator is None:
            return
        self._next += 1
        offset = self._next
        begun = asyncio.get_running_loop().time()
        error = await commit(self._client, coordinator, _GROUP, self._topic, 0, offset)
        if error is ErrorCode.NONE:
            self._counts["commit of a new topic"] += 1
            if (
                begun >= self._made_at + KNOWN_SECONDS
            ):  # until then a coordinator that was not told may take it for the earlier topic
                self._acknowledged = offset
        elif error not in _MAY_NOT_BE_KNOWN:
            raise Violation(f"{self._client.name} commits, and is told {error.name}")

    async def look(self) -> bool:
        """Whether it was told. Raises Lost."""
        if not self._is_made:
            return True
        coordinator = await self._client.coordinator(_GROUP, GROUP)
        if coordinator is None:
            return False
        error, told = await committed(self._client, coordinator, _GROUP, self._topic, 0)
        if error in RETRIABLE:
            return False
        if error is not ErrorCode.NONE:
            raise Violation(f"{self._client.name} asks what {_GROUP} has committed, and is told {error.name}")
        self._counts["committed of a new topic"] += 1
        if not self._acknowledged <= told <= self._next or (told >= 0 and told <= self._first):
            raise Violation(
                f"{_GROUP} has committed {self._acknowledged} to {self._next} of the topic that is there, "
                f"and up to {self._first} of those before, and is given {told}"
            )
        return True
