"""Transactions as clients of both versions ask for them, from InitProducerId to what a consumer is given."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest
import pytest_asyncio

from kafka_sidecar.apis.routing import transactions as routing
from kafka_sidecar.apis.routing.transactions import EndedTogether, PeerTransactions, ended_transactions
from kafka_sidecar.control.v1 import control_pb2 as pb
from kafka_sidecar.control.v1.control_pb2 import EndedTransactionsRequest, EndedTransactionsResponse
from kafka_sidecar.fleet.peers import PeerUnavailable
from kafka_sidecar.model.sidecar import SidecarInfo
from kafka_sidecar.partition.follow.late_transactions import EndedTransactions
from kafka_sidecar.transactions import coordinator as module
from kafka_sidecar.transactions.metadata import TransactionState
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafka_sidecar.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafka_sidecar.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafka_sidecar.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kafka_sidecar.wire.messages.describe_transactions import DescribeTransactionsRequest
from kafka_sidecar.wire.messages.end_txn import EndTxnRequest
from kafka_sidecar.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka_sidecar.wire.messages.init_producer_id import InitProducerIdRequest
from kafka_sidecar.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from kafka_sidecar.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafka_sidecar.wire.messages.list_transactions import ListTransactionsRequest
from kafka_sidecar.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafka_sidecar.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafka_sidecar.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafka_sidecar.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.support.batches import batch
from tests.support.services import Sidecar
from tests.support.transactions import Coordinator, write

NONE = ErrorCode.NONE
# Of Produce, TxnOffsetCommit and EndTxn, with transactions of version 1 and of version 2 (KIP-890).
V1, V2 = (11, 4, 4), (12, 5, 5)


class Producer:
    """A client with a transactional id."""

    def __init__(self, sidecar: Sidecar, versions: tuple[int, int, int]) -> None:
        self.sidecar = sidecar
        self.produce_version, self.offsets_version, self.end_version = versions
        self.id, self.epoch = -1, -1
        self.sequences: dict[int, int] = {}

    @property
    def bumps(self) -> bool:
        return self.end_version >= 5

    async def init(self) -> ErrorCode:
        answer = await self.sidecar.ask(InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 4)
        if answer.error_code is NONE:
            self.id, self.epoch, self.sequences = answer.producer_id, answer.producer_epoch, {}
        return ErrorCode(answer.error_code)

    async def add(self, partitions: Sequence[int] = (0,), topic: str = "t") -> list[ErrorCode]:
        topics = [AddPartitionsToTxnTopic(name=topic, partitions=partitions)]
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id="x",
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=topics,
        )
        answer = await self.sidecar.ask(request, 3)
        return [one.partition_error_code for one in answer.results_by_topic_v3_and_below[0].results_by_partition]

    async def send(self, value: bytes, partition: int = 0, transactional_id: str | None = "x") -> Any:
        if not self.bumps:
            await self.add([partition])
        sequence = self.sequences.get(partition, 0)
        data = batch(value, producer_id=self.id, epoch=self.epoch, sequence=sequence, transactional=True)
        topic = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=partition, records=data)])
        request = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=5_000, topic_data=[topic])
        (answer,) = (await self.sidecar.ask(request, self.produce_version)).responses[0].partition_responses
        if answer.error_code is NONE:
            self.sequences[partition] = sequence + 1
        return answer

    async def commit_offset(self, offset: int, group: str = "g", member: str = "", generation: int = -1) -> ErrorCode:
        if not self.bumps:
            request = AddOffsetsToTxnRequest(
                transactional_id="x", producer_id=self.id, producer_epoch=self.epoch, group_id=group
            )
            error = (await self.sidecar.ask(request, 3)).error_code
            if error is not NONE:
                return ErrorCode(error)
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="m")
        commit = TxnOffsetCommitRequest(
            transactional_id="x",
            group_id=group,
            producer_id=self.id,
            producer_epoch=self.epoch,
            member_id=member,
            generation_id=generation,
            topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
        )
        return ErrorCode((await self.sidecar.ask(commit, self.offsets_version)).topics[0].partitions[0].error_code)

    async def end(self, committed: bool) -> ErrorCode:
        request = EndTxnRequest(
            transactional_id="x", producer_id=self.id, producer_epoch=self.epoch, committed=committed
        )
        answer = await self.sidecar.ask(request, self.end_version)
        if answer.error_code is NONE and self.bumps:
            self.id, self.epoch, self.sequences = answer.producer_id, answer.producer_epoch, {}
        return ErrorCode(answer.error_code)


@pytest_asyncio.fixture
async def sidecar() -> AsyncIterator[Sidecar]:
    sidecar = Sidecar()
    sidecar.admin.make("t", 2)
    await sidecar.lead()
    yield sidecar
    await sidecar.close()


@pytest.fixture(params=[V1, V2], ids=["version 1", "version 2"])
def producer(sidecar: Sidecar, request: pytest.FixtureRequest) -> Producer:
    return Producer(sidecar, request.param)


async def settled(sidecar: Sidecar) -> None:
    async with asyncio.timeout(5):
        while sidecar.transactions.coordinator.shards[0]._completing:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def fetched(sidecar: Sidecar, committed: bool, partition: int = 0) -> Any:
    topic = FetchTopic(
        topic="t", partitions=[FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=10**6)]
    )
    request = FetchRequest(max_wait_ms=50, min_bytes=1, max_bytes=10**6, isolation_level=committed, topics=[topic])
    return (await sidecar.ask(request, 12)).responses[0].partitions[0]


LATEST, MAX_TIMESTAMP = -1, -3


async def end_of(sidecar: Sidecar, committed: bool, timestamp: int = LATEST) -> int:
    topic = ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=timestamp)])
    answer = await sidecar.ask(ListOffsetsRequest(isolation_level=committed, topics=[topic]), 7)
    return int(answer.topics[0].partitions[0].offset)


async def offset_of(sidecar: Sidecar, stable: bool, version: int = 8) -> tuple[int, ErrorCode]:
    group = OffsetFetchRequestGroup(group_id="g", topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0])])
    answer = await sidecar.ask(OffsetFetchRequest(groups=[group], require_stable=stable), version)
    found = answer.groups[0].topics[0].partitions[0]
    return found.committed_offset, ErrorCode(found.error_code)


async def test_a_transaction_is_stable_when_it_has_ended(sidecar: Sidecar, producer: Producer) -> None:
    assert await producer.init() is NONE
    assert (await producer.send(b"a")).base_offset == 0
    assert (await producer.send(b"b")).base_offset == 1
    assert (await end_of(sidecar, False), await end_of(sidecar, True)) == (2, 0)
    found = await fetched(sidecar, True)
    assert (
        found.high_watermark,
        found.last_stable_offset,
        list(found.records or ()),
        list(found.aborted_transactions),
    ) == (2, 0, [], [])
    assert (await fetched(sidecar, False)).aborted_transactions is None
    assert await producer.end(True) is NONE
    await settled(sidecar)
    assert (await end_of(sidecar, False), await end_of(sidecar, True)) == (3, 3)
    assert await producer.init() is NONE
    assert (await producer.send(b"c")).base_offset == 3
    assert await producer.end(False) is NONE
    await settled(sidecar)
    found = await fetched(sidecar, True)
    assert [(one.producer_id, one.first_offset) for one in found.aborted_transactions] == [(producer.id, 3)]
    assert found.last_stable_offset == 5


async def test_offsets_count_when_the_transaction_has_committed(sidecar: Sidecar, producer: Producer) -> None:
    await producer.init()
    assert await producer.commit_offset(5) is NONE
    assert await offset_of(sidecar, stable=False) == (-1, NONE)
    assert await offset_of(sidecar, stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert await producer.end(True) is NONE
    await settled(sidecar)
    assert await offset_of(sidecar, stable=True) == (5, NONE)
    assert await producer.commit_offset(9) is NONE
    assert await producer.end(False) is NONE
    await settled(sidecar)
    assert await offset_of(sidecar, stable=True) == (5, NONE)


async def test_all_offsets_of_a_group_say_which_are_unstable(sidecar: Sidecar, producer: Producer) -> None:
    await producer.init()
    await producer.commit_offset(5)
    answer = await sidecar.ask(
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)], require_stable=True), 8
    )
    assert [one.error_code for one in answer.groups[0].topics[0].partitions] == [ErrorCode.UNSTABLE_OFFSET_COMMIT]
    answer = await sidecar.ask(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)]), 8)
    assert not answer.groups[0].topics


async def test_who_is_fenced_can_do_nothing(sidecar: Sidecar, producer: Producer) -> None:
    zombie = producer
    await zombie.init()
    assert (await zombie.send(b"of the zombie")).error_code is NONE
    successor = Producer(sidecar, (zombie.produce_version, zombie.offsets_version, zombie.end_version))
    assert await successor.init() is NONE, "when what was open is aborted"
    assert (await zombie.send(b"again")).error_code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert await zombie.end(True) is ErrorCode.PRODUCER_FENCED
    assert await zombie.commit_offset(7) in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
    assert (await successor.send(b"of its successor")).error_code is NONE
    assert await successor.end(True) is NONE


async def test_a_batch_that_no_transaction_is_open_for_is_refused(sidecar: Sidecar) -> None:
    producer = Producer(sidecar, V1)
    await producer.init()
    assert (await producer.send(b"v", transactional_id=None)).error_code is ErrorCode.INVALID_TXN_STATE
    producer.id += 1
    assert (await producer.send(b"v")).error_code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert not sidecar.logs["persistent://public/default/t-partition-0"].entries


async def test_a_partition_is_added_once_by_all_names_of_its_topic(sidecar: Sidecar) -> None:
    producer = Producer(sidecar, V1)
    await producer.init()
    names = ("t", "public/default/t")
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in names],
    )
    answer = await sidecar.ask(request, 3)
    assert [one.name for one in answer.results_by_topic_v3_and_below] == list(names)
    assert all(one.results_by_partition[0].partition_error_code is NONE for one in answer.results_by_topic_v3_and_below)


async def test_partitions_are_added_all_or_none(sidecar: Sidecar) -> None:
    producer = Producer(sidecar, V1)
    await producer.init()
    assert await producer.add([0, 1]) == [NONE, NONE]
    assert await producer.add([0, 7]) == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert await producer.add([0], topic="missing") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert await producer.add([0], topic="__consumer_offsets") == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


async def test_a_group_without_a_name_has_no_offsets(sidecar: Sidecar) -> None:
    producer = Producer(sidecar, V1)
    await producer.init()
    assert await producer.commit_offset(1, group="") is ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize(("version", "error"), [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)])
async def test_older_clients_are_told_in_their_words(sidecar: Sidecar, version: int, error: ErrorCode) -> None:
    producer = Producer(sidecar, V1)
    await producer.init()
    ending = EndTxnRequest(transactional_id="x", producer_id=producer.id, producer_epoch=9, committed=True)
    assert (await sidecar.ask(ending, version)).error_code is error
    adding = AddOffsetsToTxnRequest(transactional_id="x", producer_id=producer.id, producer_epoch=9, group_id="g")
    assert (await sidecar.ask(adding, version)).error_code is error


async def test_transactions_are_listed_and_described(sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COMPLETION_SECONDS", 0.0)
    producer = Producer(sidecar, V2)
    await producer.init()
    await producer.send(b"a")
    await producer.send(b"b", 1)
    listed = await sidecar.ask(ListTransactionsRequest(state_filters=["Ongoing", "Strange"]), 2)
    assert [(one.transactional_id, one.producer_id, one.transaction_state) for one in listed.transaction_states] == [
        ("x", producer.id, "Ongoing")
    ]
    assert listed.unknown_state_filters == ["Strange"]
    for request, count in (
        (ListTransactionsRequest(state_filters=["Empty"]), 0),
        (ListTransactionsRequest(producer_id_filters=[producer.id]), 1),
        (ListTransactionsRequest(producer_id_filters=[1]), 0),
        (ListTransactionsRequest(duration_filter=100_000), 0),
        (ListTransactionsRequest(transactional_id_pattern="x|y"), 1),
        (ListTransactionsRequest(transactional_id_pattern="y.*"), 0),
    ):
        assert len((await sidecar.ask(request, 2)).transaction_states) == count
    wrong = await sidecar.ask(ListTransactionsRequest(transactional_id_pattern="("), 2)
    assert wrong.error_code is ErrorCode.INVALID_REGULAR_EXPRESSION
    known, unknown = (
        await sidecar.ask(DescribeTransactionsRequest(transactional_ids=["x", "y"]), 0)
    ).transaction_states
    assert (known.transaction_state, known.producer_id, known.transaction_timeout_ms) == (
        TransactionState.ONGOING.title,
        producer.id,
        60_000,
    )
    assert [(one.topic, list(one.partitions)) for one in known.topics] == [("t", [0, 1])]
    assert unknown.error_code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


async def test_one_that_hangs_is_found_and_ended(sidecar: Sidecar) -> None:
    producer = Producer(sidecar, V1)
    await producer.init()
    await producer.send(b"hangs")
    asked = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])])
    (found,) = (await sidecar.ask(asked, 0)).topics[0].partitions[0].active_producers
    assert (found.producer_id, found.current_txn_start_offset) == (producer.id, 0)

    async def end(producer_id: int, epoch: int) -> ErrorCode:
        topic = WritableTxnMarkerTopic(name="t", partition_indexes=[0])
        marker = WritableTxnMarker(producer_id=producer_id, producer_epoch=epoch, topics=[topic])
        return ErrorCode(
            (await sidecar.ask(WriteTxnMarkersRequest(markers=[marker]), 1))
            .markers[0]
            .topics[0]
            .partitions[0]
            .error_code
        )

    assert await end(producer.id, -1) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert await end(producer.id + 1, 0) is ErrorCode.INVALID_TXN_STATE
    assert await end(producer.id, 0) is NONE
    assert await end_of(sidecar, True) == 2
    assert await end(producer.id, 0) is ErrorCode.INVALID_TXN_STATE, "it has none open"


async def test_of_a_producer_that_has_gone_on_the_one_left_open_is_ended_first(sidecar: Sidecar) -> None:
    producer = Producer(sidecar, V1)
    await producer.init()
    await producer.send(b"left")
    partition = sidecar.services.partition(sidecar.services.catalog.names.parse("t"), 0)
    await write(partition, Coordinator(2), b"next", sequence=1, epoch=producer.epoch, producer=producer.id)
    topic = WritableTxnMarkerTopic(name="t", partition_indexes=[0])
    marker = WritableTxnMarker(producer_id=producer.id, producer_epoch=producer.epoch, topics=[topic])
    asked = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=[0])])
    for offset in (0, 1):
        (found,) = (await sidecar.ask(asked, 0)).topics[0].partitions[0].active_producers
        assert (found.current_txn_start_offset, partition.last_stable_offset) == (offset, offset)
        answer = await sidecar.ask(WriteTxnMarkersRequest(markers=[marker]), 1)
        assert answer.markers[0].topics[0].partitions[0].error_code is NONE
    assert partition.last_stable_offset == partition.end_offset


async def test_coordinators_tell_which_transactions_have_ended(sidecar: Sidecar) -> None:
    producer = Producer(sidecar, V1)
    await producer.init()
    await producer.send(b"a")
    assert await ended_transactions(sidecar.services, [producer.id, 12_345]) == {producer.id: EndedTransactions(0, 1)}
    await producer.end(True)
    await end_of(sidecar, True)
    assert await ended_transactions(sidecar.services, [producer.id]) == {producer.id: EndedTransactions(1, 1)}


@pytest.mark.parametrize("namespace", ["", "public/team"])
async def test_of_what_a_sidecar_of_0_2_passes_on_it_is_not_certain_where_the_markers_go(
    sidecar: Sidecar, namespace: str
) -> None:
    """It names topics as its clients do, and they may mean those of another namespace."""
    producer = Producer(sidecar, V2)
    await producer.init()
    peer = PeerTransactions(cast(Any, sidecar.transactions), cast(Any, sidecar.services.groups))
    request = pb.VerifyTransactionRequest(
        transactional_id="x",
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        topic="t",
        partition=0,
        adds_partition=True,
        namespace=namespace,
    )
    assert (await peer.verify(request)).number == 1
    assert await producer.end(True) is NONE
    await sidecar.transactions.coordinator.shards[0].completed("x", 5.0)
    told = (await ended_transactions(sidecar.services, [producer.id]))[producer.id]
    assert (told.number, told.has_marked(1)) == (1, bool(namespace))


async def test_while_a_sidecar_of_0_2_is_there_nothing_is_certain(sidecar: Sidecar) -> None:
    sidecar.transactions.coordinator._all_are_new = lambda: False
    producer = Producer(sidecar, V1)
    await producer.init()
    await producer.send(b"a")
    assert await producer.end(True) is NONE
    await end_of(sidecar, True)
    assert not (await ended_transactions(sidecar.services, [producer.id]))[producer.id].has_marked(1)


async def test_partitions_that_ask_at_once_ask_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "TOGETHER_SECONDS", 0.01)
    asked: list[Sequence[int]] = []

    async def ask(producer_ids: Sequence[int]) -> dict[int, EndedTransactions]:
        asked.append(producer_ids)
        if producer_ids[0] < 0:
            raise PeerUnavailable("away")
        return {producer_id: EndedTransactions(producer_id, 1) for producer_id in producer_ids}

    together = EndedTogether(ask)
    answers = await asyncio.gather(*(together.ended([number]) for number in (3, 1, 2)))
    assert (asked, {one.number for answer in answers for one in answer.values()}) == ([[1, 2, 3]], {1, 2, 3})
    for _ in range(2):
        with pytest.raises(PeerUnavailable):
            await together.ended([-1])
    assert len(asked) == 3, "one that fails is asked again"


async def test_a_coordinator_that_can_not_be_asked_keeps_nobody_from_what_others_tell(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Peers:
        async def ended_transactions(
            self, address: str, request: EndedTransactionsRequest
        ) -> EndedTransactionsResponse:
            if address == "away":
                raise PeerUnavailable("away")
            told = [pb.EndedTransactions(producer_id=one, number=5) for one in request.producer_ids]
            return EndedTransactionsResponse(producers=told)

    async def leaders() -> list[SidecarInfo]:
        return [SidecarInfo(name, number, "", name) for number, name in enumerate(("away", "there"))]

    monkeypatch.setattr(sidecar.transactions, "known_leaders", leaders, raising=False)
    services = replace(sidecar.services, peers=cast(Any, Peers()))
    told = await ended_transactions(services, [7])
    assert told == {7: EndedTransactions(5, 6)}
    assert not told[7].has_marked(5), "a coordinator that does not say from when on it knows says nothing"


async def test_several_transactions_are_added_to_or_verified_in_one_request(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = Producer(sidecar, V1)
    await producer.init()

    def of(
        transactional_id: str, partitions: Sequence[int], *, verify_only: bool, epoch: int = 0
    ) -> AddPartitionsToTxnTransaction:
        return AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer.id,
            producer_epoch=epoch,
            verify_only=verify_only,
            topics=[AddPartitionsToTxnTopic(name="t", partitions=partitions)],
        )

    async def ask(*transactions: AddPartitionsToTxnTransaction) -> list[list[ErrorCode]]:
        answer = await sidecar.ask(AddPartitionsToTxnRequest(transactions=transactions), 5)
        assert answer.error_code is NONE
        assert [one.transactional_id for one in answer.results_by_transaction] == [
            one.transactional_id for one in transactions
        ]
        return [
            [one.partition_error_code for one in result.topic_results[0].results_by_partition]
            for result in answer.results_by_transaction
        ]

    unknown, not_attempted = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
    assert await ask(of("x", [0], verify_only=True), of("y", [1], verify_only=True)) == [
        [ErrorCode.TRANSACTION_ABORTABLE],
        [ErrorCode.INVALID_PRODUCER_ID_MAPPING],
    ]
    assert await ask(of("x", [0], verify_only=False), of("", [0], verify_only=False)) == [
        [NONE],
        [ErrorCode.INVALID_REQUEST],
    ]
    assert await ask(of("x", [0, 1], verify_only=True)) == [[NONE, ErrorCode.TRANSACTION_ABORTABLE]], (
        "which adds nothing"
    )
    assert await ask(of("x", [0], verify_only=False, epoch=1)) == [[ErrorCode.PRODUCER_FENCED]]
    for verify_only in (True, False):
        assert await ask(of("x", [0, 7], verify_only=verify_only)) == [[not_attempted, unknown]]
    monkeypatch.setattr(sidecar.transactions.leaders, "is_here", lambda transactional_id: transactional_id == "x")
    elsewhere = await ask(of("x", [0], verify_only=True), of("z", [0], verify_only=True))
    assert elsewhere == [[NONE], [ErrorCode.NOT_COORDINATOR]]


async def test_what_an_open_transaction_has_written_is_not_the_greatest_time_of_who_reads_what_is_committed(
    sidecar: Sidecar, producer: Producer
) -> None:
    await producer.init()
    await producer.send(b"open")
    assert await end_of(sidecar, committed=False, timestamp=MAX_TIMESTAMP) == 0
    assert await end_of(sidecar, committed=True, timestamp=MAX_TIMESTAMP) == -1
    assert await producer.end(committed=True) is NONE
    await settled(sidecar)
    assert await end_of(sidecar, committed=True, timestamp=MAX_TIMESTAMP) == 1, (
        "its marker is the youngest, as in Kafka"
    )


async def test_a_member_of_the_consumer_protocol_commits_in_a_transaction(sidecar: Sidecar, producer: Producer) -> None:
    await producer.init()
    beat = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m1",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    joined = await sidecar.ask(beat, 1)
    assert joined.error_code is NONE
    stale = await producer.commit_offset(7, member="m1", generation=joined.member_epoch - 1)
    assert stale is ErrorCode.ILLEGAL_GENERATION, (
        "which Java's producer aborts for; after STALE_MEMBER_EPOCH it is of no use any more"
    )
    assert await producer.commit_offset(7, member="gone", generation=1) is ErrorCode.UNKNOWN_MEMBER_ID
    assert await producer.commit_offset(7, member="m1", generation=joined.member_epoch) is NONE
    assert await producer.end(committed=True) is NONE
    await settled(sidecar)
    assert await offset_of(sidecar, stable=True) == (7, NONE)


async def test_a_rebalance_of_a_classic_group_is_not_told_to_who_commits_in_a_transaction(
    sidecar: Sidecar, producer: Producer
) -> None:
    await producer.init()

    async def join(member: str = "") -> JoinGroupResponse:
        request = JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            member_id=member,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
        )
        return cast(JoinGroupResponse, await sidecar.ask(request, 5))

    member = (await join()).member_id
    joined = await join(member)
    assert joined.error_code is NONE
    assert await producer.commit_offset(7, member=member, generation=joined.generation_id) is NONE, (
        "nobody has sent a SyncGroup"
    )
    assert (
        await producer.commit_offset(7, member=member, generation=joined.generation_id - 1)
        is ErrorCode.ILLEGAL_GENERATION
    )
