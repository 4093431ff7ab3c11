"""Configs as the three APIs about them need it: which resource is meant, and changing a topic's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from handler.apis.api import Services
from handler.partition.errors import error_code
from handler.pulsar.errors import PulsarError, Refused
from handler.topics.configs import InvalidConfig, TopicSettings
from handler.topics.names import InvalidTopicName, TopicName
from handler.wire.error_code import ErrorCode

# ConfigResource.Type
TOPIC: Final = 2
BROKER: Final = 4


class NotAResource(Exception):
    """There are no configs of what was asked for."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def topic_of(services: Services, resource_type: int, resource_name: str) -> TopicName | None:
    """The topic whose configs are meant; None for this node's."""
    if resource_type == BROKER:
        if resource_name not in ("", str(services.config.node_id)):
            raise NotAResource(ErrorCode.INVALID_REQUEST, f"this is node {services.config.node_id}, ask node {resource_name} itself")
        return None
    if resource_type != TOPIC:
        raise NotAResource(
            ErrorCode.INVALID_REQUEST, f"resources of type {resource_type} have no configs here: ask for a topic or a broker"
        )
    try:
        return services.catalog.names.parse(resource_name)
    except InvalidTopicName as error:
        raise NotAResource(ErrorCode.INVALID_TOPIC_EXCEPTION, str(error)) from error


async def alter(
    services: Services, resource_type: int, resource_name: str, change: Callable[[TopicSettings], TopicSettings], *, validate_only: bool
) -> tuple[ErrorCode, str | None]:
    """Change the configs of a topic, unless it is only asked whether that could be done."""
    try:
        name = topic_of(services, resource_type, resource_name)
        if name is None:
            return ErrorCode.INVALID_CONFIG, "the settings of a node are its configuration file's: they can't be changed while it runs"
        before = await services.configs.read(name)
        after = change(before)
        if not validate_only:
            await services.configs.write(name, before, after)
            await services.catalog.find(name, fresh=True)  # what is written from now on is written by it
    except NotAResource as refused:
        return refused.code, str(refused)
    except (InvalidConfig, Refused) as error:
        return ErrorCode.INVALID_CONFIG, str(error)
    except PulsarError as error:
        return error_code(error), str(error)
    return ErrorCode.NONE, None
