"""What an operator is told by a running sidecar, over a real socket."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar, cast

import pytest
import pytest_asyncio

import grpc
from kafka_sidecar import STORED_FORMAT, __version__
from kafka_sidecar.admin.service import ADMIN, FROM_THIS_HOST, AdminService
from kafka_sidecar.control.client import ControlClient, ControlFailed
from kafka_sidecar.fleet.member import Member
from kafka_sidecar.fleet.server import Answers, ControlServer, Further
from kafka_sidecar.partition.read import chunked_messages
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_sidecar.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafka_sidecar.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.batches import batch
from tests.support.services import Sidecar

T = TypeVar("T")
Question = Callable[[ControlClient], Any]


class Setup:
    def __init__(self) -> None:
        self.sidecar = Sidecar()
        self.drained = 0
        nothing = cast(Any, None)
        answers = Answers(serve=nothing, topics_deleted=nothing, transactions=nothing, ping=nothing, warm=nothing)
        self.server = ControlServer(
            "me", answers, Further(ADMIN, AdminService(self.sidecar.services, self._drain), FROM_THIS_HOST)
        )
        self.port = 0

    def _drain(self) -> None:
        self.drained += 1

    async def ask(self, question: Callable[[ControlClient], T]) -> T:
        def asked() -> T:
            with ControlClient(f"127.0.0.1:{self.port}", seconds=5) as client:
                return question(client)

        return await asyncio.to_thread(asked)

    async def produce(self, *values: bytes) -> None:
        data = [
            TopicProduceData(
                name="t",
                partition_data=[
                    PartitionProduceData(index=0, records=batch(*values, producer_id=7, epoch=0, sequence=0))
                ],
            )
        ]
        await self.sidecar.ask(ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=data), 12)


@pytest_asyncio.fixture
async def setup() -> AsyncIterator[Setup]:
    made = Setup()
    made.port = await made.server.start("127.0.0.1", 0)
    made.sidecar.admin.make("t", 2)
    await made.sidecar.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
    yield made
    await made.server.close()
    await made.sidecar.close()


async def test_offsets_and_message_ids_are_found_by_each_other(setup: Setup) -> None:
    await setup.produce(b"a", b"b", b"c")
    found = await setup.ask(lambda client: client.find_message_id("t", 0, 2))
    assert (found.partition, found.batch_index) == (0, -1), "for native clients the entry is one message"
    assert await setup.ask(lambda client: client.find_offset("t", 0, found.ledger, found.entry)) == 0
    assert await setup.ask(lambda client: client.find_offset("t", 0, found.ledger, found.entry, 2)) == 2


@pytest.mark.parametrize(
    ("question", "code", "why"),
    [
        (lambda client: client.find_message_id("t", 0, 3), grpc.StatusCode.NOT_FOUND, "it has offsets 0 to 2"),
        (lambda client: client.find_message_id("t", 1, 0), grpc.StatusCode.NOT_FOUND, "the log is empty"),
        (lambda client: client.find_message_id("t", 2, 0), grpc.StatusCode.NOT_FOUND, "partitions 0 to 1"),
        (
            lambda client: client.find_message_id("missing", 0, 0),
            grpc.StatusCode.NOT_FOUND,
            "there is no topic missing",
        ),
        (
            lambda client: client.find_message_id("a/b", 0, 0),
            grpc.StatusCode.INVALID_ARGUMENT,
            "write t, tenant/namespace/t",
        ),
        (lambda client: client.find_offset("t", 0, 99, 0), grpc.StatusCode.NOT_FOUND, "there is no entry 99:0"),
        (lambda client: client.set_log_level("nobody", "INFO"), grpc.StatusCode.INVALID_ARGUMENT, "no logger nobody"),
        (lambda client: client.find_offset("t", 0, -1, 0), grpc.StatusCode.INVALID_ARGUMENT, "counted from 0"),
        (
            lambda client: client.set_log_level("kafka_sidecar", "LOUD"),
            grpc.StatusCode.INVALID_ARGUMENT,
            "use FATAL, ERROR",
        ),
    ],
)
async def test_what_is_not_there_is_refused_with_a_sentence(
    setup: Setup, question: Callable[[ControlClient], Any], code: Any, why: str
) -> None:
    await setup.produce(b"a", b"b", b"c")
    with pytest.raises(ControlFailed, match=why) as failure:
        await setup.ask(question)
    assert failure.value.code is code


async def test_an_entry_that_nobody_can_read_is_skipped_and_no_other(setup: Setup) -> None:
    await setup.produce(b"a", b"b")
    log = setup.sidecar.logs["persistent://public/default/t-partition-0"]
    metadata = MessageMetadata(
        producer_name=b"native", sequence_id=0, publish_time=1, compression=9, uncompressed_size=3
    )
    position = log.append(metadata, 1, b"abc")
    skipped = await setup.ask(lambda client: client.skip("t", 0, 2))
    assert (skipped.message_id.ledger, skipped.message_id.entry, skipped.next_offset) == (*position, 3)
    assert setup.sidecar.admin.properties["persistent://public/default/t"] == {
        f"kafka.skipped.0.{position.ledger}.{position.entry}": "2"
    }
    for offset, code, why in (
        (0, grpc.StatusCode.FAILED_PRECONDITION, "can be read"),
        (7, grpc.StatusCode.NOT_FOUND, "no entry holds offset 7"),
    ):
        with pytest.raises(ControlFailed, match=why) as failure:
            await setup.ask(lambda client, at=offset: client.skip("t", 0, at))  # type: ignore[misc]
        assert failure.value.code is code


async def test_a_message_in_parts_that_is_too_large_can_be_skipped(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunked_messages, "MAX_UNCOMPRESSED", 5)
    await setup.produce(b"a")
    log = setup.sidecar.logs["persistent://public/default/t-partition-0"]
    for number, part in enumerate((b"abc", b"def")):
        log.append(
            MessageMetadata(
                producer_name=b"native",
                sequence_id=0,
                publish_time=1,
                uuid=b"u",
                num_chunks_from_msg=2,
                chunk_id=number,
                total_chunk_msg_size=6,
                uncompressed_size=6,
            ),
            1,
            part,
        )
    assert (await setup.ask(lambda client: client.skip("t", 0, 2))).next_offset == 3
    with pytest.raises(ControlFailed, match="can be read"):
        await setup.ask(lambda client: client.skip("t", 0, 1))


async def test_an_entry_at_which_the_sidecar_failed_twice_can_be_skipped(setup: Setup) -> None:
    await setup.produce(b"a")
    for _ in range(2):
        setup.sidecar.services.partitions._failures.note("persistent://public/default/t-partition-0", Position(1, 0))
    assert (await setup.ask(lambda client: client.skip("t", 0, 0))).next_offset == 1


async def test_partitions_in_use_are_listed_with_what_their_fold_knows(setup: Setup) -> None:
    await setup.produce(b"a", b"b")
    (found,) = await setup.ask(lambda client: client.partitions())
    assert (found.topic, found.partition, found.state, found.leader) == ("t", 0, "open", 0)
    assert (found.log_start, found.end_offset, found.last_stable_offset, found.producers) == (0, 2, 2, 1)
    assert await setup.ask(lambda client: client.partitions("t")) == [found]
    assert await setup.ask(lambda client: client.partitions("another")) == []


async def test_the_leader_of_a_partition_is_told_also_where_its_topic_was_not_looked_at_since(setup: Setup) -> None:
    await setup.produce(b"a")
    setup.sidecar.fleet.change(Member(2, "other", 9093, "x"))
    catalog = setup.sidecar.services.catalog
    catalog.forget(catalog.names.parse("t"))
    (found,) = await setup.ask(lambda client: client.partitions())
    assert found.leader in (0, 2)


@pytest.mark.parametrize("host", ["0.0.0.0", "127.0.0.1"])  # noqa: S104 - as in a pod
async def test_who_is_on_its_host_may_drain_it_wherever_it_listens(setup: Setup, host: str) -> None:
    await setup.server.close()
    setup.port = await setup.server.start(host, 0)
    await setup.ask(lambda client: client.drain())
    assert setup.drained == 1


async def test_one_that_has_ended_is_not_opened_by_looking_at_it(setup: Setup) -> None:
    await setup.produce(b"a")
    table = setup.sidecar.services.partitions
    (name,) = table.names()
    table.get(name).end_for(Unavailable("the broker is away"))
    (found,) = await setup.ask(lambda client: client.partitions())
    assert found.state == "NOT_LEADER_OR_FOLLOWER"
    ended = table.existing(name)
    assert ended is not None
    assert ended.ended is not None


async def test_groups_that_are_coordinated_here_are_listed(setup: Setup) -> None:
    await setup.sidecar.lead()
    join = JoinGroupRequest(
        group_id="g",
        protocol_type="consumer",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    await setup.sidecar.ask(join, 3)
    (group,) = await setup.ask(lambda client: client.groups())
    assert (group.group_id, group.protocol, group.members) == ("g", "classic", 1)


async def test_the_fleet_is_told_as_it_is_seen(setup: Setup) -> None:
    setup.sidecar.fleet.change(Member(2, "other", 9093, "x"))
    own, other = await setup.ask(lambda client: client.fleet())
    assert (own.node_id, own.is_self, own.leads) == (0, True, True)
    assert (own.release, own.stored_format) == (__version__, STORED_FORMAT)
    assert (other.node_id, other.host, other.port, other.rack, other.is_self) == (2, "other", 9093, "x", False)
    assert (other.release, other.stored_format) == ("0.2.0", 0), "what it does not tell"


async def test_health_is_told(setup: Setup) -> None:
    assert await setup.ask(lambda client: [client.is_healthy(service) for service in ("live", "ready")]) == [
        True,
        False,
    ]
    await setup.server.ready()
    assert await setup.ask(lambda client: client.is_healthy())


async def test_draining_is_begun_and_levels_are_set(setup: Setup) -> None:
    await setup.ask(lambda client: client.drain())
    assert setup.drained == 1
    logger = logging.getLogger("kafka_sidecar.admin.service")
    await setup.ask(lambda client: client.set_log_level(logger.name, "ERROR"))
    assert (await setup.ask(lambda client: client.log_levels()))[logger.name] == "ERROR"
    await setup.ask(lambda client: client.set_log_level(logger.name, ""))
    assert logger.level == logging.NOTSET


async def test_nobody_there_is_one_sentence() -> None:
    with ControlClient("127.0.0.1:1", seconds=2) as client, pytest.raises(ControlFailed, match="no sidecar answers"):
        await asyncio.to_thread(client.fleet)
