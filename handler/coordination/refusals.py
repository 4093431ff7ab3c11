"""Whether a broker means it that this sidecar's role has no right. One that can't read its policies for a moment says so too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from handler.pulsar.errors import NotPermitted, PulsarError, Refused, TopicMissing, Unavailable

# For so long each question is refused, before that is believed.
MEANT_SECONDS: Final = 30.0


@dataclass(slots=True)
class _Count:
    """Of refusals that came one after another, in this process's time."""

    since: float
    last: float


class Refusals:
    """Of one topic, for one right. `counted`: the errors that are counted; any other one ends the count of its partition.

    Each partition is counted for itself: one that can't be loaded says nothing about the right to another. What is believed of one
    is believed of all, for the right is the topic's.
    """

    def __init__(self, counted: tuple[type[PulsarError], ...] = (NotPermitted, Refused)) -> None:
        self._counted = counted
        self._counts: dict[int, _Count] = {}  # by partition
        self._is_believed = False  # until the right is proved

    @contextmanager
    def asking(self, partition: int, is_granted: Callable[[], bool] = lambda: True) -> Iterator[None]:
        """A question to the broker. It raises Unavailable for a refusal, until there was nothing else for long, again and again.

        `is_granted`: whether its answer proves the right. What can be answered without the right says nothing about it.
        """
        try:
            yield
        except self._counted as error:
            self._check(partition, error)
            raise
        except TopicMissing:
            raise
        except (PulsarError, TimeoutError):
            self._counts.pop(partition, None)
            raise
        if is_granted():
            self._counts.clear()
            self._is_believed = False

    def _check(self, partition: int, error: PulsarError) -> None:
        now = asyncio.get_running_loop().time()
        count = self._counts.get(partition)
        if count is None or now - count.last > MEANT_SECONDS:
            count = self._counts[partition] = _Count(now, now)  # nobody has asked meanwhile
        count.last = now
        self._is_believed = self._is_believed or now - count.since >= MEANT_SECONDS
        if not self._is_believed:
            raise Unavailable(f"a right is missing, or is not known for a moment: {error}") from error
