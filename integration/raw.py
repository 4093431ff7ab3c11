"""A Kafka client without a client library: any request, as many at once as wanted, for crowds of simulated members."""

from __future__ import annotations

import asyncio
import datetime
import io
import itertools
import struct
import uuid
from collections.abc import Callable
from typing import Any

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer


class RawConnection:
    """Requests are answered in their order; who asks waits for its own answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._ids = itertools.count()
        self._waiting: asyncio.Queue[tuple[int, int, asyncio.Future[Any]]] = asyncio.Queue()
        self._task = asyncio.create_task(self._read())

    @classmethod
    async def open(cls, address: str) -> RawConnection:
        host, _, port = address.partition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    async def ask(self, key: int, version: int, /, **fields: Any) -> Any:
        schema = load_request_schema(key, version)
        body = io.BytesIO()
        entity_writer(schema)(body, schema(**fields))
        header = struct.pack(">hhih", key, version, next(self._ids), 3) + b"raw" + b"\0" * schema.__flexible__
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait((key, version, answer))
        self._writer.write(struct.pack(">i", len(header) + len(body.getvalue())) + header + body.getvalue())
        return await answer

    async def _read(self) -> None:
        try:
            await self._read_answers()
        except (OSError, asyncio.IncompleteReadError) as error:
            while not self._waiting.empty():
                self._waiting.get_nowait()[2].set_exception(ConnectionError(f"the connection ended: {error}"))

    async def _read_answers(self) -> None:
        while True:
            (size,) = struct.unpack(">i", await self._reader.readexactly(4))
            frame = await self._reader.readexactly(size)
            key, version, answer = self._waiting.get_nowait()
            schema = load_response_schema(key, version)
            skip = 4 + schema.__flexible__
            read: Callable[[memoryview, int], tuple[Any, int]] = entity_reader(schema)
            answer.set_result(read(memoryview(frame)[skip:], 0)[0])

    def close(self) -> None:
        self._task.cancel()
        self._writer.close()


def milliseconds(value: int) -> datetime.timedelta:
    return datetime.timedelta(milliseconds=value)


class RawMember:
    """A member of a group that does what it is told at once."""

    def __init__(self, connection: RawConnection, group: str) -> None:
        self._connection = connection
        self.group = group
        self.member_id = ""
        self.generation = -1
        self.part = b""

    @property
    def has_a_part(self) -> bool:
        return bool(self.part)

    async def rebalance(self, session: int = 30_000) -> None:
        """JoinGroupRequest and sync until both succeed; the leader gives each member its own id as its part."""
        from kio.schema.errors import ErrorCode
        from kio.schema.join_group.v5.request import JoinGroupRequestProtocol
        from kio.schema.sync_group.v3.request import SyncGroupRequestAssignment

        while True:
            joined = await self._connection.ask(
                11,
                5,
                group_id=self.group,
                session_timeout=milliseconds(session),
                rebalance_timeout=milliseconds(60_000),
                member_id=self.member_id,
                group_instance_id=None,
                protocol_type="consumer",
                protocols=(JoinGroupRequestProtocol(name="range", metadata=b"\0\0\0\0\0\0\xff\xff\xff\xff"),),
            )
            if joined.error_code in (ErrorCode.none, ErrorCode.member_id_required):
                self.member_id = joined.member_id
            if joined.error_code is not ErrorCode.none:
                if joined.error_code is not ErrorCode.member_id_required:
                    await asyncio.sleep(0.2)
                continue
            self.generation = joined.generation_id
            parts = tuple(
                SyncGroupRequestAssignment(member_id=one.member_id, assignment=one.member_id.encode())
                for one in joined.members
            )
            synced = await self._connection.ask(
                14,
                3,
                group_id=self.group,
                generation_id=self.generation,
                member_id=self.member_id,
                group_instance_id=None,
                assignments=parts,
            )
            if synced.error_code is ErrorCode.none:
                self.part = synced.assignment
                return

    async def heartbeat(self) -> Any:
        answer = await self._connection.ask(
            12, 3, group_id=self.group, generation_id=self.generation, member_id=self.member_id, group_instance_id=None
        )
        return answer.error_code

    def close(self) -> None:
        self._connection.close()


class RawConsumer:
    """A member that speaks the consumer protocol (KIP-848) and does what it is told at once."""

    def __init__(self, connection: RawConnection, group: str, topic: str) -> None:
        self._connection = connection
        self._topic = topic
        self.group = group
        self.member_id = str(uuid.uuid4())
        self.epoch = 0
        self.assigned: dict[uuid.UUID, Any] = {}
        self.interval = 0.0

    @property
    def has_a_part(self) -> bool:
        return any(self.assigned.values())

    async def rebalance(self) -> None:
        """Until it has a part, as often as it is asked to."""
        while True:
            await self.heartbeat()
            if self.has_a_part:
                return
            await asyncio.sleep(self.interval or 0.2)

    async def heartbeat(self) -> Any:
        from kio.schema.consumer_group_heartbeat.v1.request import TopicPartitions
        from kio.schema.errors import ErrorCode

        joins = self.epoch == 0
        owned = tuple(TopicPartitions(topic_id=topic, partitions=indexes) for topic, indexes in self.assigned.items())
        answer = await self._connection.ask(
            68,
            1,
            group_id=self.group,
            member_id=self.member_id,
            member_epoch=self.epoch,
            rebalance_timeout=milliseconds(60_000 if joins else -1),
            subscribed_topic_names=(self._topic,) if joins else None,
            topic_partitions=owned,
        )
        if answer.error_code is ErrorCode.none:
            self.epoch = answer.member_epoch
            self.interval = answer.heartbeat_interval.total_seconds()
            if answer.assignment is not None:
                self.assigned = {one.topic_id: one.partitions for one in answer.assignment.topic_partitions}
        elif answer.error_code in (ErrorCode.fenced_member_epoch, ErrorCode.unknown_member_id):
            self.epoch, self.assigned = 0, {}
        return answer.error_code

    def close(self) -> None:
        self._connection.close()
