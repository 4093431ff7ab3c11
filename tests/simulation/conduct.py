"""How the network and the broker behave where a seed decides it."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Callable
from contextvars import Context
from random import Random
from typing import Final

from kafka_sidecar.pulsar.errors import CHECKSUM_ERROR, Unavailable
from tests.model.conduct import NOBODYS, Refusal
from tests.simulation.chance import Chance
from tests.simulation.plan import Bounds

# PersistenceError: the producer is to connect again.
REFUSED: Final = 2
# A topic that was moved is often moved again: two brokers balance their load.
FORGOTTEN_WITHIN_SECONDS: Final = 2.0
SLOWLY_STORED_SECONDS: Final = (0.5, 2.0)


def delay(draw: Random, bounds: Bounds) -> float:
    """One way."""
    return draw.choice((0.0005, 0.002, 0.002, 0.01, bounds.slowest))


class DrawnConduct:
    def __init__(self, loop: asyncio.AbstractEventLoop, chance: Chance, bounds: Bounds) -> None:
        self.loop = loop
        self.chance = chance
        self.bounds = bounds
        self.is_calm = False  # faults are over
        self.unloaded_at = -math.inf
        self._disk = chance.of("disk")
        self._stored_at = 0.0
        self._bookies = chance.of("bookies")
        self._forgets = chance.of("orphans")

    def now_ms(self) -> int:
        return int(self.loop.time() * 1000)

    def store(self, stored: Callable[[], None]) -> None:
        seconds = self._disk.choice((0.0, 0.0005, 0.002, 0.02))
        if not self.is_calm and self._bookies.random() < self.bounds.slow_stores:
            seconds = self._bookies.choice(SLOWLY_STORED_SECONDS)
        self._stored_at = max(self._stored_at + 1e-6, self.loop.time() + seconds)
        self.loop.call_at(self._stored_at, stored, context=NOBODYS)

    def recovered(self, count: int) -> int:
        return self._disk.randint(0, count)

    def forgets_reader(self) -> bool:
        is_near = self.loop.time() - self.unloaded_at < FORGOTTEN_WITHIN_SECONDS
        return is_near and not self.is_calm and self._forgets.random() < self.bounds.orphans


class DrawnCaller:
    """A sidecar that asks, in the context of its process."""

    def __init__(self, conduct: DrawnConduct, name: str, context: Context) -> None:
        self._conduct = conduct
        self._context = context
        self._draw = conduct.chance.of(f"{name}/questions")

    def way(self, name: str) -> DrawnWay:
        return DrawnWay(self._conduct, name, self._context)

    async def hear(self) -> None:
        await asyncio.sleep(delay(self._draw, self._conduct.bounds))

    async def ask(self) -> None:
        await self.hear()
        if not self._conduct.is_calm and self._draw.random() < self._conduct.bounds.failed_questions:
            raise Unavailable("scripted")


class DrawnWay:
    entries_at_once: int = sys.maxsize

    def __init__(self, conduct: DrawnConduct, name: str, context: Context) -> None:
        self.context = context
        self._conduct = conduct
        self._draw = conduct.chance.of(name)
        self._up_at = 0.0
        self._down_at = 0.0

    def _delay(self) -> float:
        return delay(self._draw, self._conduct.bounds)

    def up(self, arrive: Callable[[], None]) -> None:
        self._up_at = max(self._up_at + 1e-6, self._conduct.loop.time() + self._delay())
        self._conduct.loop.call_at(self._up_at, arrive, context=NOBODYS)

    def send(self, arrive: Callable[[], None], payload: bytes | bytearray, stored: bytes) -> None:
        self.up(arrive)

    def down(self, arrive: Callable[[], None]) -> None:
        self._down_at = max(self._down_at + 1e-6, self._conduct.loop.time() + self._delay())
        self._conduct.loop.call_at(self._down_at, arrive, context=self.context)

    def answer(self, tell: Callable[[], None]) -> None:
        self._conduct.loop.call_later(self._delay(), tell, context=self.context)

    def end(self, tell: Callable[[], None]) -> None:
        self._conduct.loop.call_later(self._delay(), tell, context=self.context)

    def dispatch(self, hand_out: Callable[[], None]) -> None:
        self._conduct.loop.call_later(self._delay(), hand_out, context=NOBODYS)

    def refusal(self) -> Refusal | None:
        if self._conduct.is_calm or self._draw.random() >= self._conduct.bounds.refused_sends:
            return None
        is_alone = (
            self._draw.random() < 0.5
        )  # Producer.checkAndStartPublish: a wrong checksum is of no other entry's concern
        return Refusal(CHECKSUM_ERROR if is_alone else REFUSED, "scripted", ends_writer=not is_alone)

    def loses_receipt(self) -> bool:
        return not self._conduct.is_calm and self._draw.random() < self._conduct.bounds.lost_receipts

    def is_unknown_at_once(self) -> bool:
        return self._draw.random() < 0.5

    def lands_though_unknown(self) -> bool:
        return False
