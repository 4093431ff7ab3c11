"""Whether a broker means it that this sidecar's role has no right. One that can't read its policies for a moment says so too."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from handler.pulsar.errors import NotPermitted, PulsarError, Refused, TopicMissing, Unavailable

# For so long each question is refused, before that is believed.
MEANT_SECONDS: Final = 30.0


class Refusals:
    """Of one topic with all its partitions, for one right. `counted`: the errors that are counted; any other one ends the count."""

    def __init__(self, counted: tuple[type[PulsarError], ...] = (NotPermitted, Refused)) -> None:
        self._counted = counted
        self._since = self._last = -math.inf  # in this process's time
        self._is_believed = False  # until the right is proved

    @contextmanager
    def asking(self, is_granted: Callable[[], bool] = lambda: True) -> Iterator[None]:
        """A question to the broker. It raises Unavailable for a refusal, until there was nothing else for long, again and again.

        `is_granted`: whether its answer proves the right. What can be answered without the right says nothing about it.
        """
        try:
            yield
        except self._counted as error:
            self._check(error)
            raise
        except TopicMissing:
            raise
        except (PulsarError, TimeoutError):
            self._since = self._last = -math.inf
            raise
        if is_granted():
            self._since = self._last = -math.inf
            self._is_believed = False

    def _check(self, error: PulsarError) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._last > MEANT_SECONDS:
            self._since = now  # nobody has asked meanwhile
        self._last = now
        self._is_believed = self._is_believed or now - self._since >= MEANT_SECONDS
        if not self._is_believed:
            raise Unavailable(f"a right is missing, or is not known for a moment: {error}") from error
