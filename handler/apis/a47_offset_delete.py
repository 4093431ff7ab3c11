"""OffsetDelete (47), version 0: committed offsets of topics that nobody in the group is subscribed to."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Api, Call, Result, Services
from handler.apis.groups import ask, asked_topic, coordinated, place, pulsar_partitions
from handler.groups.coordinator import Coordinator
from handler.groups.shard import TopicPartition

Told = tuple[ErrorCode, dict[TopicPartition, ErrorCode]]


def _handle(services: Services, call: Call) -> Result:
    topics = [(asked_topic(services, topic), topic.partitions) for topic in call.request.topics]
    places = [at for asked, partitions in topics for one in partitions if (at := place(asked, one.partition_index)) is not None]

    def answer(told: Told) -> Answer:
        error, errors = told
        if error is not ErrorCode.none:
            return {"error_code": error, "throttle_time": 0, "topics": ()}
        services.mirror.deleted(
            call.request.group_id, pulsar_partitions(services, [at for at, failed in errors.items() if failed is ErrorCode.none])
        )
        answers = []
        for asked, partitions in topics:
            results = []
            for one in partitions:
                at = place(asked, one.partition_index)
                results.append({"partition_index": one.partition_index, "error_code": asked.error if at is None else errors[at]})
            answers.append({**asked.identity, "partitions": results})
        return {"error_code": error, "throttle_time": 0, "topics": answers}

    def question(coordinator: Coordinator, told: Callable[[Told], None]) -> None:
        coordinator.delete_offsets(call.request.group_id, places, lambda error, errors: told((error, errors)))

    return ask(services, question, answer, partial(_refuse, call))


def _refuse(_: Call, error: ErrorCode) -> Answer:
    return {"error_code": error, "throttle_time": 0, "topics": ()}


API: Final = Api(47, "OffsetDelete", 0, 0, coordinated(_handle, _refuse))
