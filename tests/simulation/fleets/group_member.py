"""A member of a classic group: it joins, is given partitions, goes on from their committed offsets, and commits how far
it has come.

join ──▶ sync ──▶ heartbeats, fetches and commits ──▶ told to rebalance, or fenced ──▶ joins again
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from kafka_sidecar.groups.records.subscription import read_parts, write_parts
from kafka_sidecar.groups.vocabulary import CONSUMER_PROTOCOL
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafka_sidecar.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kafka_sidecar.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafka_sidecar.wire.messages.leave_group import MemberIdentity as Leaving
from kafka_sidecar.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.simulation.fleets.clients import GROUP
from tests.simulation.fleets.kafka_client import RETRIABLE, RETRY_SECONDS, KafkaClient, Lost
from tests.simulation.fleets.network import Address
from tests.simulation.fleets.offsets import commit, committed
from tests.simulation.history import Violation

JOIN_VERSION: Final = 5
SYNC_VERSION: Final = 3
HEARTBEAT_VERSION: Final = 3
LEAVE_VERSION: Final = 3
SESSION_MS: Final = 10_000
REBALANCE_MS: Final = 8_000
_PROTOCOL: Final = "range"
# After these a member joins again; after some of them as a new one.
_REJOINS: Final = frozenset({ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION})
_IS_FORGOTTEN: Final = ErrorCode.UNKNOWN_MEMBER_ID


@dataclass(slots=True)
class GroupHistory:
    """What the members of a group were told."""

    owners: dict[tuple[int, int], str] = field(default_factory=dict)  # by generation and partition
    acknowledged: dict[int, int] = field(default_factory=dict)  # the greatest offset, by partition
    tried: dict[int, int] = field(default_factory=dict)

    def note_owned(self, generation: int, partitions: Sequence[int], member: str) -> None:
        for partition in partitions:
            owner = self.owners.setdefault((generation, partition), member)
            if owner != member:
                raise Violation(f"partition {partition} is of {owner} and of {member} in generation {generation}")


class _Over(Exception):
    """The member has to join again."""


class GroupMember:
    def __init__(
        self,
        client: KafkaClient,
        group: str,
        topic: str,
        partitions: int,
        history: GroupHistory,
        draw: Random,
        goes_on: Callable[[], bool],
    ) -> None:
        self._client = client
        self._group = group
        self._topic = topic
        self._partitions = partitions
        self._history = history
        self._draw = draw
        self._goes_on = goes_on
        self._member_id = ""
        self._generation = -1

    async def run(self) -> None:
        while self._goes_on():
            try:
                owned = await self._join()
                await self._consume(owned)
                await self._end()
            except (_Over, Lost):
                pass
            await asyncio.sleep(RETRY_SECONDS)

    async def _at(self) -> Address:
        coordinator = await self._client.coordinator(self._group, GROUP)
        if coordinator is None:
            raise _Over
        return coordinator

    def _check(self, error: ErrorCode, what: str) -> None:
        if error is ErrorCode.NONE:
            return
        if error is _IS_FORGOTTEN:
            self._member_id = ""
        elif error not in _REJOINS and error not in RETRIABLE:
            raise Violation(f"{self._client.name} is told {error.name} when it {what}")
        raise _Over

    async def _join(self) -> list[int]:
        name = self._topic.encode()
        subscription = struct.pack(">hih", 1, 1, len(name)) + name + struct.pack(">ii", -1, 0)
        protocols = [JoinGroupRequestProtocol(name=_PROTOCOL, metadata=subscription)]
        while True:
            joining = JoinGroupRequest(
                group_id=self._group,
                session_timeout_ms=SESSION_MS,
                rebalance_timeout_ms=REBALANCE_MS,
                member_id=self._member_id,
                protocol_type=CONSUMER_PROTOCOL,
                protocols=protocols,
            )
            joined = await self._client.ask(await self._at(), joining, JoinGroupResponse, JOIN_VERSION)
            if joined.error_code is not ErrorCode.MEMBER_ID_REQUIRED:
                break
            self._member_id = joined.member_id
        self._check(joined.error_code, "joins")
        self._member_id, self._generation = joined.member_id, joined.generation_id
        members = sorted(one.member_id for one in joined.members)
        assignments = [
            SyncGroupRequestAssignment(
                member_id=member,
                assignment=write_parts({self._topic: frozenset(range(number, self._partitions, len(members)))}, 1),
            )
            for number, member in enumerate(members)
        ]
        syncing = SyncGroupRequest(
            group_id=self._group, generation_id=self._generation, member_id=self._member_id, assignments=assignments
        )
        synced = await self._client.ask(await self._at(), syncing, SyncGroupResponse, SYNC_VERSION)
        self._check(synced.error_code, "syncs")
        owned = sorted(read_parts(synced.assignment).partitions.get(self._topic, ()))
        self._history.note_owned(self._generation, owned, self._member_id)
        return owned

    async def _consume(self, owned: Sequence[int]) -> None:
        """Until it goes, or an error says that it owns them no more."""
        positions = {partition: await self._committed(partition) for partition in owned}
        while self._goes_on():
            for partition in owned:
                positions[partition] += self._draw.randint(0, 3)
                await self._commit(partition, positions[partition])
            beat = HeartbeatRequest(group_id=self._group, generation_id=self._generation, member_id=self._member_id)
            self._check(
                (await self._client.ask(await self._at(), beat, HeartbeatResponse, HEARTBEAT_VERSION)).error_code,
                "beats",
            )
            await asyncio.sleep(self._draw.choice((0.1, 0.5, 1.0)))
            if self._draw.random() < 0.03:
                return

    async def _committed(self, partition: int) -> int:
        acknowledged = self._history.acknowledged.get(partition, -1)
        error, told = await committed(self._client, await self._at(), self._group, self._topic, partition)
        self._check(error, "asks for an offset")
        if not acknowledged <= told <= self._history.tried.get(partition, -1):
            raise Violation(
                f"{self._group} has committed {acknowledged} to {self._history.tried.get(partition, -1)} of partition "
                f"{partition}: {self._client.name} is given {told}"
            )
        return max(0, told)

    async def _commit(self, partition: int, offset: int) -> None:
        self._history.tried[partition] = max(offset, self._history.tried.get(partition, -1))
        at = await self._at()
        error = await commit(
            self._client, at, self._group, self._topic, partition, offset, self._member_id, self._generation
        )
        if error is not ErrorCode.NONE and error in RETRIABLE:
            return
        self._check(error, "commits")
        self._history.acknowledged[partition] = max(offset, self._history.acknowledged.get(partition, -1))

    async def _end(self) -> None:
        """It leaves, or is gone without a word."""
        if self._draw.random() < 0.5:
            leaving = LeaveGroupRequest(group_id=self._group, members=[Leaving(member_id=self._member_id)])
            await self._client.ask(await self._at(), leaving, LeaveGroupResponse, LEAVE_VERSION)
        self._member_id = ""
