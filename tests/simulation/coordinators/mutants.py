"""Faults that are planted in coordinators. If the simulation does not find one, it has gone blind."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from handler.coordination.followed_topic import FollowedTopic
from handler.coordination.term import Term
from handler.coordination.term_log import PulsarTermLog
from handler.pulsar.producer import SHARED
from handler.transactions.shard import Shard
from handler.wire.error_code import ErrorCode
from tests.simulation.coordinators.plan import drawn
from tests.simulation.coordinators.run import run_plan
from tests.simulation.replaced import replaced

SECONDS: Final = 60.0


class Mutant(NamedTuple):
    method: str
    replacement: Callable[[Any], Any]  # of what is there


async def _beside_others(self: PulsarTermLog[Any], on_lost: Any) -> None:
    self._on_lost = on_lost
    name = f"{self._producer_name}-{self._new_id()}"
    self._producer = await self._client.producer(self._topic, name, self, access_mode=SHARED, purpose="lead")
    self.append_marker()


async def _nothing(_: Term[Any]) -> None:
    await asyncio.sleep(0)


async def _leading(_: Shard, __: float) -> None: ...


async def _unasked(self: FollowedTopic[Any]) -> int:
    self._question += 1
    return self._question


_LOG: Final = "handler.coordination.term_log"
MUTANTS: Final = {
    "others-write-too": Mutant(f"{_LOG}.PulsarTermLog.become_only_writer", lambda _: _beside_others),
    "leads-before-its-marker": Mutant(
        f"{_LOG}._Reading._is_at_marker", lambda original: lambda self: self._reached is not None or original(self)
    ),
    "is-stored-when-sent": Mutant(f"{_LOG}.PulsarTermLog.after_writes", lambda _: lambda self, done: done()),
    "proves-nothing": Mutant("handler.coordination.term.Term.prove", lambda _: _nothing),
    "leads-on-without-its-log": Mutant("handler.coordination.term.Term._on_log_lost", lambda _: lambda *_: None),
    "leads-on-when-deposed": Mutant("handler.coordination.term.Term.depose", lambda _: lambda *_: None),
    "believes-at-once": Mutant("handler.coordination.lasting.Lasting.is_believed", lambda _: lambda self, _: self._since is not None),
    "completes-in-one-write": Mutant("handler.groups.coordinator._values_of", lambda _: list),
    "lets-all-batches-pass": Mutant("handler.transactions.machine.verify", lambda _: lambda *_: ErrorCode.NONE),
    "leaves-what-was-prepared": Mutant("handler.transactions.shard.Shard.on_leading", lambda _: _leading),
    "asks-nobody": Mutant("handler.coordination.followed_topic.FollowedTopic._read_on", lambda _: _unasked),
}


def seed_that_finds(mutant: Mutant, first: int = 1, seconds: float = SECONDS) -> int | None:
    begun, seed = time.process_time(), first
    with replaced(*mutant):
        while time.process_time() - begun < seconds:
            if run_plan(drawn(seed)).violation is not None:
                return seed
            seed += 1
    return None


def main() -> int:
    logging.disable(logging.CRITICAL)
    missed = 0
    for name, mutant in MUTANTS.items():
        begun = time.process_time()
        seed = seed_that_finds(mutant)
        missed += seed is None
        print(f"{name}: {'not found' if seed is None else f'seed {seed}'}, {time.process_time() - begun:.1f} s", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
