"""Whether a broker means it that this sidecar's role has no right. One that can't read its policies for a moment says
so too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, Refused, TopicMissing, Unavailable

# The broker's answer that a right is missing is believed after requests were refused for 30 s in total.
MEANT_SECONDS: Final = 30.0
# Refusals are forgotten 300 s after the last one. The right may have been granted since, without a response that proves
# it.
REMEMBERED_SECONDS: Final = 300.0
# Errors by which a broker says that this role lacks a right, at any step of a request.
_REFUSALS: Final = (NotPermitted, Refused)


@dataclass(slots=True)
class _Count:
    """Of refusals that came one after another. Clients pause: half a minute in which nobody asked is not counted, and
    does not end it.
    """

    last: float  # when the last refusal came, by the clock of the event loop
    seconds: float = 0.0


class Refusals:
    """Of one topic, for one right. Any other error ends the count of its partition.

    Each partition is counted for itself: one that can't be loaded says nothing about the right to another. What is
    believed of one is believed of all, for the right is the topic's.
    """

    def __init__(self) -> None:
        self._counts: dict[int, _Count] = {}  # refusals by partition
        # When the last believed refusal came; None once a response has proved the right.
        self._believed_at: float | None = None

    @contextmanager
    def asking(self, partition: int, is_granted: Callable[[], bool] = lambda: True) -> Iterator[None]:
        """A question to the broker. It raises Unavailable for a refusal, until there was nothing else for long, again
        and again.

        `is_granted`: whether its answer proves the right. What can be answered without the right says nothing about it.
        """
        try:
            yield
        except _REFUSALS as error:
            if not self._is_believed(partition):
                raise Unavailable(f"a right is missing, or is not known for a moment: {error}") from error
            raise
        except TopicMissing:
            raise
        except (PulsarError, TimeoutError):
            self._counts.pop(partition, None)
            raise
        if is_granted():
            self._counts.clear()
            self._believed_at = None

    def _is_believed(self, partition: int) -> bool:
        now = asyncio.get_running_loop().time()
        count = self._counts.get(partition)
        if count is None or now - count.last > REMEMBERED_SECONDS:
            count = self._counts[partition] = _Count(now)
        if now - count.last <= MEANT_SECONDS:
            count.seconds += now - count.last
        count.last = now
        is_believed = self._believed_at is not None and now - self._believed_at <= REMEMBERED_SECONDS
        if is_believed or count.seconds >= MEANT_SECONDS:
            self._believed_at = now
            return True
        return False
