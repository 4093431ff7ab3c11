"""Produce (0), versions 3 to 13.

One record batch per partition, appended as it is. acks=1 and acks=all mean the same: Pulsar has
acknowledged. acks=0 gets no answer, so it sends nobody to the leader. ApiVersions names version 0 as the lowest, as
Kafka 4 does, for clients that take it for a sign of features (KAFKA-18659); versions 0 to 2 are refused. Internal
topics are INVALID_TOPIC_EXCEPTION.

v3   record batches of magic 2 (KIP-98)
v5   the log start in the response
v7   zstd (KIP-110)
v8   errors of single records (KIP-467), where records are opened
v9   flexible (KIP-482)
v10  the current leader in the response (KIP-951)
v12  a transactional batch adds its partition to the transaction (KIP-890); before, AddPartitionsToTxn has
v13  topics by id (KIP-516)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from kafka_sidecar.apis.api import Api, Call, Client, Response, Result, Services
from kafka_sidecar.apis.common.nodes import is_advertised, nodes
from kafka_sidecar.apis.common.ordinary_produce import ACKS, ZSTD_SINCE
from kafka_sidecar.apis.common.topics import resolve
from kafka_sidecar.apis.needs import AclOperation, on_topic, on_transactional_id
from kafka_sidecar.apis.routing.transactions import ADDS_PARTITION_SINCE, verify
from kafka_sidecar.apis.state.promise import Promise
from kafka_sidecar.apis.state.refused_batches import Refused
from kafka_sidecar.fleet.member import Member
from kafka_sidecar.model.sidecar import Node
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.write.append import Append
from kafka_sidecar.partition.write.log_validator import BatchRefused
from kafka_sidecar.partition.write.verified_appends import Verification
from kafka_sidecar.pulsar.errors import TopicMissing
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.topics.names import TopicName
from kafka_sidecar.transactions.machine import Producer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafka_sidecar.wire.produce_frame import topic_key
from kafka_sidecar.wire.records import (
    CODEC_MASK,
    TRANSACTIONAL,
    ZSTD,
    BatchHeader,
    BatchInvalid,
    BatchMalformed,
    read_produced,
)


class _Batch(NamedTuple):
    topic: bytes  # as it stands in the request (see `topic_key`)
    partition_index: int
    header: BatchHeader

    @property
    def subject(self) -> tuple[bytes, int]:
        """Of its partition: what both ways know it by."""
        return self[:2]


class _ResponseInWork:
    """The response to one request while appends of its partitions are in flight."""

    __slots__ = (
        "_appends",
        "_client",
        "_clock",
        "_is_elsewhere",
        "_is_silent",
        "_left",
        "_nodes",
        "_responses",
        "_result",
        "_topics",
    )

    def __init__(self, result: Promise[Response], services: Services, client: Client, acks: int) -> None:
        self._result = result
        self._client = client
        self._clock = services.clock
        self._nodes: Callable[[], Sequence[Node]] = partial(nodes, services, client)
        self._is_silent = acks == 0  # no response can tell an error
        self._topics: list[TopicProduceResponse] = []
        self._responses: list[PartitionProduceResponse] = []  # of the last of them
        self._appends: list[tuple[_Batch, Partition, PartitionProduceResponse]] = []
        self._is_elsewhere = False  # of any partition
        self._left = 1  # held until every partition is begun

    def topic(self, requested: TopicProduceData) -> None:
        """What follows is of this topic."""
        self._responses = []
        self._topics.append(
            TopicProduceResponse(name=requested.name, topic_id=requested.topic_id, partition_responses=self._responses)
        )

    def refuse(self, index: int, batch: _Batch | None, error: ErrorCode) -> None:
        """`batch` is None where nobody can tell whose it is."""
        self._responses.append(PartitionProduceResponse(index=index, error_code=error, base_offset=-1))
        self._failed(batch, error)

    def refuse_elsewhere(self, batch: _Batch, leader: Member) -> None:
        """Before anything is appended: another member leads the partition, and a client that knows KIP-951 goes
        there.
        """
        current = LeaderIdAndEpoch(leader_id=leader.node_id, leader_epoch=0)
        index, error = batch.partition_index, ErrorCode.NOT_LEADER_OR_FOLLOWER
        self._responses.append(
            PartitionProduceResponse(index=index, error_code=error, base_offset=-1, current_leader=current)
        )
        self._is_elsewhere = True
        self._failed(batch, error, is_elsewhere=True)

    def _failed(self, batch: _Batch | None, error: ErrorCode, is_elsewhere: bool = False) -> None:
        noted = True
        if batch is not None:
            header, now = batch.header, self._clock()
            noted = self._client.refused.note(
                batch.subject, header.producer_id, header.producer_epoch, header.base_sequence, error, now, is_elsewhere
            )
        if not noted or self._is_silent:
            self._client.abort()

    def append(
        self, batch: _Batch, partition: Partition, records: bytes, deadline: float, verification: Verification | None
    ) -> None:
        response = PartitionProduceResponse(index=batch.partition_index)
        self._responses.append(response)
        self._appends.append((batch, partition, response))
        self._left += 1
        metrics.PRODUCED_BYTES.add(batch.header.size)
        append = Append.of(batch.header, records, deadline, self, len(self._appends) - 1)
        if verification is None:
            partition.append(append)
        else:
            partition.append_to_transaction(append, verification)

    def on_appended(self, batch_index: int, error: ErrorCode, base_offset: int) -> None:
        batch, partition, response = self._appends[batch_index]
        response.error_code = error
        response.base_offset = base_offset
        if error is ErrorCode.NONE:
            response.log_start_offset = partition.log_start
        else:
            self._failed(batch, error)
        self.partition_done()

    def on_refused(self, batch_index: int, refused: BatchRefused) -> None:
        _, _, response = self._appends[batch_index]
        response.error_message = str(refused)
        response.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
            for index, message in refused.records
        ]

    def on_log_append_time(self, batch_index: int, timestamp: int) -> None:
        self._appends[batch_index][2].log_append_time_ms = timestamp

    def partition_done(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._result.resolve(
                None if self._is_silent else ProduceResponse(responses=self._topics, node_endpoints=self._endpoints())
            )

    def _endpoints(self) -> Sequence[NodeEndpoint]:
        """Of all nodes: there are clients that forget those which are not among them (franz-go)."""
        if not self._is_elsewhere:
            return ()
        return [NodeEndpoint(node_id=node, host=host, port=port, rack=rack) for node, host, port, rack in self._nodes()]


def _checked(services: Services, version: int, acks: int, records: bytes) -> BatchHeader | ErrorCode:
    """The batch's header, or why the batch is refused."""
    if not records:
        return ErrorCode.INVALID_RECORD  # "must have at least one record batch" (ProduceRequest.validateRecords)
    try:
        header = read_produced(records)
    except BatchMalformed:
        return ErrorCode.CORRUPT_MESSAGE
    except BatchInvalid:
        return ErrorCode.INVALID_RECORD
    if header.attributes & CODEC_MASK == ZSTD and version < ZSTD_SINCE:
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    if header.attributes & TRANSACTIONAL and not header.has_producer:
        return ErrorCode.INVALID_RECORD
    return header if acks in ACKS else ErrorCode.INVALID_REQUIRED_ACKS


def _verification(
    services: Services, version: int, transactional_id: str | None, header: BatchHeader, name: TopicName, index: int
) -> Verification | ErrorCode | None:
    """How the transaction of a batch is found; None where it has none."""
    if not header.attributes & TRANSACTIONAL:
        return None
    if not transactional_id:
        return ErrorCode.INVALID_TXN_STATE
    producer = Producer(header.producer_id, header.producer_epoch)
    partition = services.catalog.names.kafka(name), index
    return Verification(
        lambda: verify(services, version, transactional_id, producer, partition),
        once_an_epoch=version >= ADDS_PARTITION_SINCE,
    )


def _refused_before(client: Client, batch: _Batch, now: float) -> Refused | None:
    """The refused batch that has to come back before this one."""
    header = batch.header
    return client.refused.before(batch.subject, header.producer_id, header.producer_epoch, header.base_sequence, now)


def _is_sent_away(
    services: Services, call: Call, name: TopicName, index: int, leader: Member, has_producer: bool, now: float
) -> bool:
    """Whether a batch is refused because its client is sent to the leader, or was sent before it could know."""
    redirects, subject = services.produce_redirects, name.partition(index)
    if not has_producer and redirects.is_behind(call.client, subject, now):
        return True
    if (
        leader == services.fleet.own
        or not services.sends_away(name, now)
        or not is_advertised(services, call.client, leader)
    ):
        return False
    redirects.last_asked_at = now
    return redirects.refuses(call.client, subject, services.fleet.version, now)


def _begin(
    services: Services,
    call: Call,
    request: ProduceRequest,
    response: _ResponseInWork,
    name: TopicName,
    batch: _Batch,
    records: bytes,
    now: float,
) -> None:
    """Append a batch, or refuse it."""
    index, leader = batch.partition_index, services.leader(name, batch.partition_index)
    refused = _refused_before(call.client, batch, now)
    if refused is not None:
        may_be_named = (
            leader is not None and leader != services.fleet.own and is_advertised(services, call.client, leader)
        )
        if leader is not None and refused.is_elsewhere and may_be_named:
            response.refuse_elsewhere(batch, leader)
        else:
            response.refuse(index, batch, refused.error)
        return
    if (
        leader is not None
        and request.acks
        and _is_sent_away(services, call, name, index, leader, batch.header.has_producer, now)
    ):
        response.refuse_elsewhere(batch, leader)
        return
    try:
        partition = services.partition(name, index)
    except TopicMissing:
        response.refuse(index, batch, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return
    if leader == services.fleet.own:
        services.produce_partitions.put(batch.topic, index, partition)
    verification = _verification(services, call.version, request.transactional_id, batch.header, name, index)
    if isinstance(verification, ErrorCode):
        response.refuse(index, batch, verification)
    else:
        response.append(batch, partition, records, now + max(request.timeout_ms / 1000, 0.001), verification)


def handle(services: Services, call: Call, request: ProduceRequest) -> Result:
    # Without an answer a client learns of an error by losing its connection (KafkaApis.handleProduceRequest).
    # Its request still holds its bytes of the budget until it is written.
    result: Promise[Response] = Promise()
    response = _ResponseInWork(result, services, call.client, request.acks)
    now = services.clock()
    for topic in request.topic_data:
        response.topic(topic)
        key = topic_key(call.version, topic.name, topic.topic_id)
        name = resolve(services, topic.name, topic.topic_id)
        if isinstance(name, TopicName) and name.internal:
            name = (
                ErrorCode.INVALID_TOPIC_EXCEPTION
            )  # "Cannot append to internal topic" (ReplicaManager.appendToLocalLog)
        for requested in topic.partition_data:
            records = requested.records or b""
            header = _checked(services, call.version, request.acks, records)
            if isinstance(header, ErrorCode):
                response.refuse(requested.index, None, name if isinstance(name, ErrorCode) else header)
                continue
            batch = _Batch(key, requested.index, header)
            if isinstance(name, ErrorCode):
                response.refuse(requested.index, batch, name)
            else:
                _begin(services, call, request, response, name, batch, records, now)
    response.partition_done()  # every partition is begun: what was held until then goes
    return result


API: Final = Api(
    ProduceRequest,
    ProduceResponse,
    3,
    13,
    handle,
    needs=on_topic(AclOperation.WRITE) + on_transactional_id(AclOperation.WRITE),
    advertised_lowest=0,
)
