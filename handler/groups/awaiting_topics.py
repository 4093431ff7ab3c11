"""Requests that wait until what they need of topics is known."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

from kio.schema.errors import ErrorCode

from handler.coordination.errors import NotLeading
from handler.groups.consumer.members import Needs
from handler.groups.topics_image import TopicsImage
from handler.pulsar.errors import PulsarError
from handler.telemetry import metrics

log = logging.getLogger(__name__)

LEARN_SECONDS: Final = 10.0
QUEUE_LENGTH: Final = 16  # no client has so many requests about one member under way

Who = tuple[str, str]  # group and member


class _Held(NamedTuple):
    needs: Callable[[], Needs]
    go: Callable[[], None]
    refuse: Callable[[ErrorCode], None]
    until: float


class RequestsAwaitingTopics:
    """The requests of one member go on in the order in which they came; members do not wait for each other."""

    def __init__(self, image: TopicsImage) -> None:
        self._image = image
        self._queues: dict[Who, deque[_Held]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_idle(self) -> bool:
        return not self._queues

    def when_known(self, who: Who, needs: Callable[[], Needs], go: Callable[[], None], refuse: Callable[[ErrorCode], None]) -> None:
        """Call `go`, now if nothing is to be waited for. It and `needs` may raise NotLeading."""
        queue = self._queues.get(who)
        if queue is None:
            if self._image.knows(needs()):
                go()
                return
            queue = self._queues[who] = deque()
            task = asyncio.create_task(self._work(who, queue))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        if len(queue) >= QUEUE_LENGTH:
            refuse(ErrorCode.coordinator_load_in_progress)
            return
        queue.append(_Held(needs, go, refuse, asyncio.get_running_loop().time() + LEARN_SECONDS))

    async def _work(self, who: Who, queue: deque[_Held]) -> None:
        try:
            while queue:
                await self._first(who, queue[0])
                queue.popleft()
        finally:
            del self._queues[who]
            for held in queue:
                held.refuse(ErrorCode.not_coordinator)

    async def _first(self, who: Who, held: _Held) -> None:
        try:
            async with asyncio.timeout_at(held.until):
                while not self._image.knows(needs := held.needs()):
                    await self._image.learn(needs)
            held.go()
        except NotLeading as refused:
            held.refuse(refused.error)
        except (PulsarError, TimeoutError) as error:
            log.warning("member %s of group %s has to wait: its topics can't be looked up: %s", who[1], who[0], error or "no answer")
            held.refuse(ErrorCode.coordinator_load_in_progress)  # clients ask again
        except Exception:
            metrics.INTERNAL_ERRORS.labels("groups").inc()
            log.exception("a request of member %s of group %s failed", who[1], who[0])
            held.refuse(ErrorCode.unknown_server_error)

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
