"""Configs as the three APIs about them need it: which resource is meant, and changing a topic's
(ConfigAdminManager).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from kafka_sidecar.apis.api import Services
from kafka_sidecar.apis.common.loggers import NotAllowed, alter_loggers
from kafka_sidecar.partition.log.errors import error_code
from kafka_sidecar.pulsar.errors import PulsarError, Refused
from kafka_sidecar.topics.config_types import InvalidConfig, Operation
from kafka_sidecar.topics.configs import TopicSettings
from kafka_sidecar.topics.names import InvalidTopicName, TopicName
from kafka_sidecar.wire.error_code import ErrorCode

# ConfigResource.Type
TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8


class NotAResource(Exception):
    """There are no configs of what was asked for."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def topic_of(services: Services, resource_type: int, resource_name: str) -> TopicName | None:
    """The topic whose configs are meant; None for this node's."""
    if resource_type == BROKER:
        if resource_name:
            check_node(services, resource_name)
        return None
    if resource_type != TOPIC:
        raise NotAResource(
            ErrorCode.INVALID_REQUEST,
            f"resources of type {resource_type} have no configs here: topics and brokers have",
        )
    try:
        name = services.catalog.names.parse(resource_name)
    except InvalidTopicName as error:
        raise NotAResource(ErrorCode.INVALID_TOPIC_EXCEPTION, str(error)) from error
    return name


def check_node(services: Services, resource_name: str) -> None:
    if resource_name != str(services.config.own_node_id):
        raise NotAResource(
            ErrorCode.INVALID_REQUEST, f"this is node {services.config.own_node_id}, ask node {resource_name!r} itself"
        )


class Alteration:
    """What a request asks to be changed of one resource."""

    def __init__(
        self, resource_type: int, resource_name: str, operations: Sequence[tuple[str, Operation, str | None]]
    ) -> None:
        self.resource = (resource_type, resource_name)
        self.operations = operations

    def check(self, *, twice: bool) -> None:
        """INVALID_REQUEST for what is no alteration at all (ConfigAdminManager.preprocess)."""
        if twice:
            raise NotAResource(ErrorCode.INVALID_REQUEST, "each resource must appear at most once")
        again = [name for name, times in Counter(name for name, _, _ in self.operations).items() if times > 1]
        if again:
            raise NotAResource(ErrorCode.INVALID_REQUEST, f"due to duplicate config keys: {', '.join(again)}")
        nulls = [
            name for name, operation, value in self.operations if value is None and operation is not Operation.DELETE
        ]
        if nulls:
            raise NotAResource(ErrorCode.INVALID_REQUEST, f"null value not supported for: {', '.join(nulls)}")


Operations = Sequence[tuple[str, Operation, str | None]]


async def alter_all(
    services: Services,
    alterations: Sequence[Alteration],
    before: Callable[[Alteration, TopicSettings], Operations],
    *,
    validate_only: bool,
) -> list[tuple[ErrorCode, str | None]]:
    """Change what the alterations say, unless it is only asked whether that could be done. `before`: what is done to a
    topic first.
    """
    times = Counter(one.resource for one in alterations)
    return await asyncio.gather(
        *(
            _alter(services, one, partial(before, one), twice=times[one.resource] > 1, validate_only=validate_only)
            for one in alterations
        )
    )


async def _alter(
    services: Services,
    alteration: Alteration,
    before: Callable[[TopicSettings], Operations],
    *,
    twice: bool,
    validate_only: bool,
) -> tuple[ErrorCode, str | None]:
    name = None
    try:
        alteration.check(twice=twice)
        if alteration.resource[0] == BROKER_LOGGER:
            check_node(services, alteration.resource[1])
            alter_loggers(alteration.operations, validate_only=validate_only)
            return ErrorCode.NONE, None
        name = topic_of(services, *alteration.resource)
        if name is None and all(operation is Operation.DELETE for _, operation, _ in alteration.operations):
            return (
                ErrorCode.NONE,
                None,
            )  # nothing of it is set: kafka-reassign-partitions takes throttles back in the end
        if name is None:
            names = ", ".join(name for name, operation, _ in alteration.operations if operation is not Operation.DELETE)
            return (
                ErrorCode.INVALID_REQUEST,
                f"The sidecar reads these settings when it starts, and clients can't change them: {names}",
            )
        if name.internal:
            return ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name.local} is internal: its settings are the sidecar's"
        await services.configs.alter(
            name, lambda settings: [*before(settings), *alteration.operations], validate_only=validate_only
        )
    except NotAResource as refused:
        return refused.code, str(refused)
    except NotAllowed as refused:
        return ErrorCode.INVALID_REQUEST, str(refused)
    except (InvalidConfig, Refused) as error:
        return ErrorCode.INVALID_CONFIG, str(error)
    except PulsarError as error:
        return error_code(error), str(error)
    if not validate_only:
        with contextlib.suppress(PulsarError):  # it is done, and looked at again before long
            await services.catalog.find(name, fresh=True)  # what is appended from now on is stored as it asks for now
    return ErrorCode.NONE, None
