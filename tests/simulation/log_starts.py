"""Where clients have moved the start of the log to, modelled."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafka_sidecar.internal_topics.moved_start import MovedStart
from tests.model.conduct import NOBODYS
from tests.simulation.topic import SimulatedTopic

if TYPE_CHECKING:
    from tests.simulation.node import Node


class LogStarts:
    """Every sidecar hears of it a moment later."""

    def __init__(self, topic: SimulatedTopic, nodes: Sequence[Node]) -> None:
        self._topic = topic
        self._nodes = nodes
        self._draw = topic.chance.of("log starts")

    async def put(self, _: str, moved: MovedStart, /) -> None:
        await asyncio.sleep(self._draw.choice((0.001, 0.02, 0.5)))
        known = self._topic.start_moved_to
        self._topic.start_moved_to = moved if known is None else max(known, moved)
        for node in self._nodes:
            self._topic.loop.call_later(
                self._draw.choice((0.001, 0.02, 1.0)), node.on_start_moved, moved, context=NOBODYS
            )
        await asyncio.sleep(1.0)  # whoever put it hears of it as well
