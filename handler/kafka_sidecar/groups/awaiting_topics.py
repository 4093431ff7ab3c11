"""Requests that wait until what they need of topics is known."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.groups.consumer.members import RequiredTopics
from kafka_sidecar.groups.topics_image import TopicsImage
from kafka_sidecar.loop.keyed_lock import KeyedLock
from kafka_sidecar.loop.waiting import within
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

# A request waits at most 10 s after its arrival until its topics are known; then the client retries it. The session
# time-out of the member runs meanwhile.
LEARN_SECONDS: Final = 10.0
QUEUE_LENGTH: Final = 16  # limit of waiting requests per member; no client has that many in flight

Member = tuple[str, str]  # group and member id


class RequestsAwaitingTopics:
    """The requests of one member go on in the order in which they came; members do not wait for each other."""

    def __init__(self, image: TopicsImage) -> None:
        self._image = image
        self._in_turn: KeyedLock[Member] = KeyedLock()

    @property
    def is_idle(self) -> bool:
        return not len(self._in_turn)

    async def known(self, member: Member, required: Callable[[], RequiredTopics]) -> None:
        """Until all is known; without a pause if it is. `required` may raise CoordinatorError, and so does this where
        it takes too long.
        """
        waiting = self._in_turn.waiting(member)
        if not waiting and self._image.knows(required()):
            return
        if waiting >= QUEUE_LENGTH:
            raise CoordinatorError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        try:
            await within(LEARN_SECONDS, self._learn(member, required))
        except (PulsarError, TimeoutError) as error:
            log.warning(
                "member %s of group %s has to wait: its topics are not known: %s",
                member[1],
                member[0],
                str(error) or "no answer",
            )
            raise CoordinatorError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) from error  # clients retry after this error

    async def _learn(self, member: Member, required: Callable[[], RequiredTopics]) -> None:
        async with self._in_turn.turn(member):
            while not self._image.knows(wanted := required()):
                await self._image.learn(wanted)
