"""The deletions of topics that a sidecar has heard of. What it asked Pulsar before one may be answered by the topic
that is gone.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from kafka_sidecar.topics.names import TopicName

# Limit of remembered deletions. An admin call takes some seconds at most, and fewer than 1,000 topics are deleted
# meanwhile. If a deletion was evicted, a stale response about its topic is believed.
MOST_REMEMBERED: Final = 1_000


class Deletions:
    def __init__(self) -> None:
        self.heard = 0
        self._last: OrderedDict[TopicName, int] = OrderedDict()  # topic → the number of its latest deletion

    def note(self, name: TopicName) -> None:
        self.heard += 1
        self._last[name] = self.heard
        self._last.move_to_end(name)
        if len(self._last) > MOST_REMEMBERED:
            self._last.popitem(last=False)

    def has_come(self, name: TopicName, since: int) -> bool:
        """Whether this topic was deleted since so many deletions were heard of."""
        return self._last.get(name, 0) > since
