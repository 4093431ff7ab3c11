"""Topics that this sidecar has looked at in vain, and never seen: since when Pulsar fails to describe them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from kafka_sidecar.topics.names import TopicName

# A broker that restarts, or a topic that moves, is described again within some seconds.
PASSING_SECONDS: Final = 10.0
# Topics, about two megabytes. A sidecar forgets the one whose look failed longest ago.
MOST: Final = 10_000


class FailedLooks:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._first_at: OrderedDict[TopicName, float] = OrderedDict()

    def note(self, name: TopicName) -> None:
        self._first_at.setdefault(name, self._clock())
        self._first_at.move_to_end(name)
        if len(self._first_at) > MOST:
            self._first_at.popitem(last=False)

    def forget(self, name: TopicName) -> None:
        """Pulsar has described the topic."""
        self._first_at.pop(name, None)

    def may_pass(self, name: TopicName) -> bool:
        """Whether the first look failed a moment ago, so that the next one may succeed."""
        first_at = self._first_at.get(name)
        return first_at is not None and self._clock() - first_at < PASSING_SECONDS
