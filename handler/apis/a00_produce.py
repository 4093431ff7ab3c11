"""Produce (0), versions 3 to 13.

One record batch per partition, appended as it is. acks=1 and acks=all mean the same: Pulsar has
acknowledged. acks=0 gets no answer. Version 0 is told as the lowest, as Kafka 4 does, for clients
that take it for a sign of features (KAFKA-18659); versions 0 to 2 are refused. Internal topics are INVALID_TOPIC_EXCEPTION.

v7 zstd · v8 record errors (KIP-467) · v9 flexible · v10 KIP-951 · v13 topic ids
Not implemented: transactions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Api, Call, Result, Services, Told
from handler.apis.promise import Promise
from handler.apis.topics import resolve
from handler.partition.producers import Verdict
from handler.pulsar.errors import TopicMissing
from handler.telemetry import metrics
from handler.topics.names import TopicName
from handler.wire.produce import ProducedTopic, ProduceRequest, produce_answer_writer, read_produce
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


class _Gathering:
    """The answer of one request while its partitions are in work."""

    __slots__ = ("_left", "_refused", "_result", "_topics")

    def __init__(self, result: Promise[Told], refused: Callable[[], None] | None) -> None:
        self._result = result
        self._refused = refused  # for acks=0: what to do about an error that no answer can tell
        self._topics: list[dict[str, Any]] = []
        self._left = 1  # held until every partition is begun

    def topic(self, requested: ProducedTopic) -> list[dict[str, Any]]:
        partitions: list[dict[str, Any]] = []
        self._topics.append({"name": requested.name, "topic_id": requested.topic_id, "partition_responses": partitions})
        return partitions

    def partition(self, answers: list[dict[str, Any]], index: int, log_start: Callable[[], int]) -> Callable[[Verdict], None]:
        answer: dict[str, Any] = {"index": index}
        answers.append(answer)
        self._left += 1

        def done(verdict: Verdict) -> None:
            if self._refused is not None and verdict.error is not ErrorCode.none:
                self._refused()
            answer["error_code"] = verdict.error
            answer["base_offset"] = verdict.base_offset
            answer["log_append_time"] = verdict.timestamp
            answer["log_start_offset"] = log_start() if verdict.error is ErrorCode.none else -1
            self.one_less()

        return done

    def one_less(self) -> None:
        self._left -= 1
        if self._left == 0:
            silent = self._refused is not None
            self._result.resolve(None if silent else {"responses": self._topics, "throttle_time": 0})


def _checked(services: Services, version: int, records: bytes) -> BatchHeader | Verdict:
    if not records:
        return Verdict(ErrorCode.invalid_record, -1)  # "must have at least one record batch" (ProduceRequest.validateRecords)
    try:
        header = read_produced(records)
    except BatchMalformed:
        return Verdict(ErrorCode.corrupt_message, -1)
    except BatchInvalid:
        return Verdict(ErrorCode.invalid_record, -1)
    if header.attributes & CODEC_MASK == ZSTD and version < ZSTD_SINCE:
        return Verdict(ErrorCode.unsupported_compression_type, -1)
    if header.attributes & TRANSACTIONAL:
        return Verdict(ErrorCode.invalid_txn_state, -1)
    if header.max_timestamp > services.wall_clock() + MAX_AHEAD_MS:
        return Verdict(ErrorCode.invalid_timestamp, -1)
    return header


def handle(services: Services, call: Call) -> Result:
    request: ProduceRequest = call.request
    # Without an answer a client learns of an error by losing its connection (KafkaApis.handleProduceRequest).
    # Its request still holds its bytes of the budget until it is written.
    result: Promise[Told] = Promise()
    gathering = _Gathering(result, call.client.abort if request.acks == 0 else None)
    deadline = services.clock() + max(request.timeout_ms / 1000, 0.001)
    for topic in request.topic_data:
        answers = gathering.topic(topic)
        name = resolve(services, topic)
        if isinstance(name, TopicName) and name.internal:
            name = ErrorCode.invalid_topic_exception  # "Cannot append to internal topic" (ReplicaManager.appendToLocalLog)
        for requested in topic.partition_data:
            if isinstance(name, ErrorCode):
                gathering.partition(answers, requested.partition, _no_log_start)(Verdict(name, -1))
                continue
            records = requested.records or b""
            header = _checked(services, call.version, records)
            if isinstance(header, Verdict):
                gathering.partition(answers, requested.partition, _no_log_start)(header)
            elif request.acks not in (-1, 0, 1):
                gathering.partition(answers, requested.partition, _no_log_start)(Verdict(ErrorCode.invalid_required_acks, -1))
            else:
                try:
                    partition = services.partition(name, requested.partition)
                except TopicMissing:
                    gathering.partition(answers, requested.partition, _no_log_start)(Verdict(ErrorCode.unknown_topic_or_partition, -1))
                    continue
                metrics.PRODUCED_BYTES.inc(header.size)
                done = gathering.partition(answers, requested.partition, lambda at=partition: at.log_start)  # type: ignore[misc]
                partition.append(header, records, deadline, done)
    gathering.one_less()
    return result


def _no_log_start() -> int:
    return -1


API: Final = Api(0, "Produce", 3, 13, handle, advertised_lowest=0, read=read_produce, writer=produce_answer_writer)
