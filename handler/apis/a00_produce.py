"""Produce (0), versions 3 to 13.

One record batch per partition, appended as it is. acks=1 and acks=all mean the same: Pulsar has
acknowledged. acks=0 gets no answer. Version 0 is told as the lowest, as Kafka 4 does, for clients
that take it for a sign of features (KAFKA-18659); versions 0 to 2 are refused. Internal topics are INVALID_TOPIC_EXCEPTION.

v3   record batches of magic 2 (KIP-98)
v5   the log start in the response
v7   zstd (KIP-110)
v8   errors of single records (KIP-467), never given
v9   flexible (KIP-482)
v10  the current leader in the response (KIP-951), not given
v13  topics by id (KIP-516)
Not implemented: transactions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from handler.apis.api import Api, Call, Response, Result, Services
from handler.apis.promise import Promise
from handler.apis.topics import resolve
from handler.partition.fold.producers import AppendResult
from handler.pulsar.errors import TopicMissing
from handler.telemetry import metrics
from handler.topics.names import TopicName
from handler.wire.error_code import ErrorCode
from handler.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from handler.wire.records import (
    CODEC_MASK,
    TRANSACTIONAL,
    ZSTD,
    BatchHeader,
    BatchInvalid,
    BatchMalformed,
    read_produced,
)

ZSTD_SINCE: Final = 7
# message.timestamp.after.max.ms: since Kafka 4.0 a record may be at most an hour ahead of the broker.
MAX_AHEAD_MS: Final = 3_600_000


class _ResponseInWork:
    """The response to one request while its partitions are in work."""

    __slots__ = ("_left", "_refused", "_result", "_topics")

    def __init__(self, result: Promise[Response], refused: Callable[[], None] | None) -> None:
        self._result = result
        self._refused = refused  # for acks=0: what to do about an error that no response can tell
        self._topics: list[TopicProduceResponse] = []
        self._left = 1  # held until every partition is begun

    def topic(self, requested: TopicProduceData) -> list[PartitionProduceResponse]:
        partitions: list[PartitionProduceResponse] = []
        self._topics.append(TopicProduceResponse(name=requested.name, topic_id=requested.topic_id, partition_responses=partitions))
        return partitions

    def partition(
        self, responses: list[PartitionProduceResponse], index: int, log_start: Callable[[], int]
    ) -> Callable[[AppendResult], None]:
        response = PartitionProduceResponse(index=index, log_start_offset=-1)
        responses.append(response)
        self._left += 1

        def done(verdict: AppendResult) -> None:
            if verdict.error is ErrorCode.NONE:
                response.log_start_offset = log_start()
            elif self._refused is not None:
                self._refused()
            response.error_code = verdict.error
            response.base_offset = verdict.base_offset
            self.partition_done()

        return done

    def partition_done(self) -> None:
        self._left -= 1
        if self._left == 0:
            silent = self._refused is not None
            self._result.resolve(None if silent else ProduceResponse(responses=self._topics))


def _checked(services: Services, version: int, records: bytes) -> BatchHeader | AppendResult:
    if not records:
        return AppendResult(ErrorCode.INVALID_RECORD, -1)  # "must have at least one record batch" (ProduceRequest.validateRecords)
    try:
        header = read_produced(records)
    except BatchMalformed:
        return AppendResult(ErrorCode.CORRUPT_MESSAGE, -1)
    except BatchInvalid:
        return AppendResult(ErrorCode.INVALID_RECORD, -1)
    if header.attributes & CODEC_MASK == ZSTD and version < ZSTD_SINCE:
        return AppendResult(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, -1)
    if header.attributes & TRANSACTIONAL:
        return AppendResult(ErrorCode.INVALID_TXN_STATE, -1)
    if header.max_timestamp > services.wall_clock() + MAX_AHEAD_MS:
        return AppendResult(ErrorCode.INVALID_TIMESTAMP, -1)
    return header


def handle(services: Services, call: Call, request: ProduceRequest) -> Result:
    # Without an answer a client learns of an error by losing its connection (KafkaApis.handleProduceRequest).
    # Its request still holds its bytes of the budget until it is written.
    result: Promise[Response] = Promise()
    gathering = _ResponseInWork(result, call.client.abort if request.acks == 0 else None)
    deadline = services.clock() + max(request.timeout_ms / 1000, 0.001)
    for topic in request.topic_data:
        responses = gathering.topic(topic)
        name = resolve(services, topic.name, topic.topic_id)
        if isinstance(name, TopicName) and name.internal:
            name = ErrorCode.INVALID_TOPIC_EXCEPTION  # "Cannot append to internal topic" (ReplicaManager.appendToLocalLog)
        for requested in topic.partition_data:
            if isinstance(name, ErrorCode):
                gathering.partition(responses, requested.index, _no_log_start)(AppendResult(name, -1))
                continue
            records = requested.records or b""
            header = _checked(services, call.version, records)
            if isinstance(header, AppendResult):
                gathering.partition(responses, requested.index, _no_log_start)(header)
            elif request.acks not in (-1, 0, 1):
                gathering.partition(responses, requested.index, _no_log_start)(AppendResult(ErrorCode.INVALID_REQUIRED_ACKS, -1))
            else:
                try:
                    partition = services.partition(name, requested.index)
                except TopicMissing:
                    gathering.partition(responses, requested.index, _no_log_start)(AppendResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1))
                    continue
                metrics.PRODUCED_BYTES.inc(header.size)
                done = gathering.partition(responses, requested.index, lambda at=partition: at.log_start)  # type: ignore[misc]
                partition.append(header, records, deadline, done)
    gathering.partition_done()
    return result


def _no_log_start() -> int:
    return -1


API: Final = Api("Produce", ProduceRequest, ProduceResponse, 3, 13, handle, advertised_lowest=0)
