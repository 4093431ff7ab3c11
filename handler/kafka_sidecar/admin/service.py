"""The Admin service of `grpc/kafka_sidecar/control/v1/admin.proto`: what an operator asks of this sidecar."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from google.protobuf.descriptor import ServiceDescriptor

from kafka_sidecar import STORED_FORMAT, __version__
from kafka_sidecar.admin.lookup import Found, NotInTheLog, find_message_id, find_offset, find_unreadable
from kafka_sidecar.apis.api import Services
from kafka_sidecar.control.v1 import admin_pb2 as pb
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.fleet.member import Member
from kafka_sidecar.fleet.rpc import Aborted, Invalid
from kafka_sidecar.groups.classic.machine import ClassicGroup
from kafka_sidecar.loop.pace import Pace
from kafka_sidecar.model.partition_name import split_partition_name, topic_of
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import PulsarError, TopicMissing
from kafka_sidecar.telemetry.log_levels import LEVELS, loggers, set_level
from kafka_sidecar.topics.names import InvalidTopicName, TopicName

log = logging.getLogger(__name__)


ADMIN: Final[ServiceDescriptor] = pb.DESCRIPTOR.services_by_name["Admin"]
# The control port has no authentication: who reaches it from elsewhere may not change how this sidecar runs.
FIND_SECONDS: Final = 3.0
FROM_THIS_HOST: Final = frozenset({"Drain", "SetLogLevel", "SkipEntry"})


class AdminService:
    """A method for each of the service's, by its name; they raise Aborted."""

    def __init__(self, services: Services, drain: Callable[[], None]) -> None:
        self._services = services
        self._drain = drain

    async def find_message_id(self, request: pb.FindMessageIdRequest) -> pb.FindMessageIdResponse:
        partition, name = await self._partition(request.topic, request.partition)
        found = await find_offset(partition, request.offset)
        message_id = await self._message_id(found, name, request.partition)
        return pb.FindMessageIdResponse(
            message_id=message_id, base_offset=found.base_offset, offset_count=found.offset_count
        )

    async def find_offset(self, request: pb.FindOffsetRequest) -> pb.FindOffsetResponse:
        asked = request.message_id
        if asked.ledger < 0 or asked.entry < 0:
            raise Invalid("ledgers and entries are counted from 0")
        partition, _ = await self._partition(request.topic, max(asked.partition, 0))
        found = await find_message_id(partition, Position(asked.ledger, asked.entry), asked.batch_index)
        return pb.FindOffsetResponse(
            offset=found.offset, base_offset=found.base_offset, offset_count=found.offset_count
        )

    async def list_partitions(self, request: pb.ListPartitionsRequest) -> pb.ListPartitionsResponse:
        wanted = self._topic(request.topic).pulsar if request.topic else ""
        names = [name for name in self._services.partitions.names() if not wanted or topic_of(name) == wanted]
        await self._know_leaders(names)
        found = pb.ListPartitionsResponse()
        pace = Pace()
        for name in sorted(names):
            await pace.maybe_yield()
            partition = self._services.partitions.existing(name)
            if partition is not None:
                found.partitions.append(self._described(name, partition))
        return found

    async def list_groups(self, request: pb.ListGroupsRequest) -> pb.ListGroupsResponse:
        try:
            groups = self._services.groups.coordinator.all_groups()
        except CoordinatorError as error:
            raise Aborted("the groups are being loaded: ask again") from error
        return pb.ListGroupsResponse(
            groups=[
                pb.Group(
                    group_id=group.group_id,
                    protocol="classic" if isinstance(group, ClassicGroup) else "consumer",
                    state=group.state.value,
                    members=len(group.members),
                )
                for group in sorted(groups, key=lambda group: group.group_id)
            ]
        )

    async def describe_fleet(self, request: pb.DescribeFleetRequest) -> pb.DescribeFleetResponse:
        return pb.DescribeFleetResponse(members=[self._member(member) for member in self._services.fleet.view.nodes])

    async def skip_entry(self, request: pb.SkipEntryRequest) -> pb.SkipEntryResponse:
        partition, name = await self._partition(request.topic, request.partition)
        entry = await find_unreadable(partition, request.offset)
        try:
            await self._services.catalog.skip(name, request.partition, entry.position, request.offset)
        except PulsarError as error:
            raise Aborted(f"it can't be skipped: {error}") from error
        log.warning(
            "an operator has entry %s of %s skipped, which can't be read: %s", entry.position, partition.name, entry.why
        )
        message_id = pb.MessageId(
            ledger=entry.position.ledger, entry=entry.position.entry, partition=request.partition, batch_index=-1
        )
        return pb.SkipEntryResponse(message_id=message_id, next_offset=entry.next_offset)

    async def drain(self, request: pb.DrainRequest) -> pb.DrainResponse:
        log.info("an operator has this sidecar drained")
        self._drain()
        return pb.DrainResponse()

    async def list_log_levels(self, request: pb.ListLogLevelsRequest) -> pb.ListLogLevelsResponse:
        return pb.ListLogLevelsResponse(
            loggers=[pb.Logger(name=name, level=level) for name, level in loggers().items()]
        )

    async def set_log_level(self, request: pb.SetLogLevelRequest) -> pb.SetLogLevelResponse:
        if request.logger not in loggers():
            raise Invalid(f"there is no logger {request.logger}")
        if request.level and request.level not in LEVELS:
            raise Invalid(f"there is no level {request.level}: use {', '.join(LEVELS)}")
        set_level(request.logger, request.level or None)
        return pb.SetLogLevelResponse()

    # --- in the words of the services

    def _topic(self, topic: str) -> TopicName:
        try:
            return self._services.catalog.names.parse(topic)
        except InvalidTopicName as error:
            raise Invalid(str(error)) from error

    async def _partition(self, topic: str, index: int) -> tuple[Partition, TopicName]:
        name = self._topic(topic)
        try:
            count = (await self._services.catalog.find(name)).partitions
        except TopicMissing as error:
            raise NotInTheLog(f"there is no topic {topic}") from error
        if not 0 <= index < count:
            raise NotInTheLog(f"topic {topic} has partitions 0 to {count - 1}: there is no partition {index}")
        return self._services.partition(name, index), name

    def _member(self, member: Member) -> pb.FleetMember:
        fleet = self._services.fleet
        known = fleet.known(member)
        told = pb.FleetMember(
            node_id=member.node_id,
            host=member.host,
            port=member.port,
            rack=member.rack or "",
            is_self=member == fleet.own,
            leads=fleet.leads(member),
        )
        if told.is_self:
            told.release, told.stored_format = __version__, STORED_FORMAT
        elif known is not None:
            told.control, told.release, told.stored_format = known.control, known.release, known.stored_format
        return told

    async def _message_id(self, found: Found, name: TopicName, index: int) -> pb.MessageId:
        is_partitioned = (await self._services.catalog.find(name)).partitioned
        position = found.position
        return pb.MessageId(
            ledger=position.ledger,
            entry=position.entry,
            partition=index if is_partitioned else -1,
            batch_index=found.batch_index,
        )

    async def _know_leaders(self, partitions: Sequence[str]) -> None:
        """Who leads a partition is worked out from how many its topic has. What can't be found out soon is left
        open.
        """
        catalog = self._services.catalog
        if self._services.fleet.is_alone:
            return
        topics = {catalog.names.from_pulsar(topic_of(name)) for name in partitions}
        with suppress(PulsarError, TimeoutError):
            async with asyncio.timeout(FIND_SECONDS):
                for topic in topics:
                    if topic is not None and catalog.remembered(topic) is None:
                        await catalog.find(topic)

    def _described(self, pulsar_name: str, partition: Partition) -> pb.Partition:
        topic, index = split_partition_name(pulsar_name) or (pulsar_name, 0)
        name = self._services.catalog.names.from_pulsar(topic)
        leader = None if name is None else self._services.leader(name, index)
        described = pb.Partition(
            topic=topic if name is None else self._services.catalog.names.kafka(name),
            partition=index,
            state="opening" if partition.ended is None else partition.ended.name,
            leader=-1 if leader is None else leader.node_id,
        )
        if partition.is_open:
            described.state = "open"
            described.log_start = partition.log_start
            described.end_offset = partition.end_offset
            described.last_stable_offset = partition.last_stable_offset
            described.producers = partition.producer_count
            described.open_transactions = len(partition.transactions.undecided)
            described.transactions_left_open = len(partition.transactions.left_open)
            last = partition.last_position
            if last is not None:
                described.last.ledger, described.last.entry, described.last.batch_index = last.ledger, last.entry, -1
        return described
