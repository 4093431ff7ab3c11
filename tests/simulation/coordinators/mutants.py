"""Faults that are planted in coordinators. If the simulation does not find one, it has gone blind."""

from __future__ import annotations

import asyncio
import sys
from typing import Any, Final

from kafka_sidecar.coordination.home import Home
from kafka_sidecar.coordination.term import Term
from kafka_sidecar.coordination.term_log import PulsarTermLog
from kafka_sidecar.internal_topics.shared_map import SharedMap
from kafka_sidecar.pulsar.producer import SHARED
from kafka_sidecar.transactions.shard import Shard
from kafka_sidecar.wire.error_code import ErrorCode
from tests.simulation.coordinators.plan import drawn
from tests.simulation.coordinators.run import run_plan
from tests.simulation.planted import Mutant, search

SECONDS: Final = 60.0


async def _beside_others(self: PulsarTermLog[Any], on_lost: Any) -> None:
    self._on_lost = on_lost
    name = f"{self._producer_name}-{self._new_id()}"
    self._producer = await self._client.producer(self._topic, name, self, access_mode=SHARED, purpose="lead")
    self.append_marker()


async def _nothing(_: Term[Any]) -> None:
    await asyncio.sleep(0)


async def _leading(_: Shard, __: float) -> None: ...


def _take_for_own(self: Home, namespace: str) -> None:
    self.namespace = namespace


async def _unasked(self: SharedMap[Any]) -> int:
    self._question += 1
    return self._question


_LOG: Final = "kafka_sidecar.coordination.term_log"
MUTANTS: Final = {
    "others-write-too": Mutant(
        "a leader writes beside others", f"{_LOG}.PulsarTermLog.become_only_writer", lambda _: _beside_others
    ),
    "leads-before-its-marker": Mutant(
        "a term serves before it has read up to its marker",
        f"{_LOG}._Reading._is_at_marker",
        lambda original: lambda self: self._reached is not None or original(self),
    ),
    "is-stored-when-sent": Mutant(
        "what was sent counts as stored", f"{_LOG}.PulsarTermLog.after_writes", lambda _: lambda self, done: done()
    ),
    "proves-nothing": Mutant(
        "a leader does not ask whether it still leads", "kafka_sidecar.coordination.term.Term.prove", lambda _: _nothing
    ),
    "leads-on-without-its-log": Mutant(
        "a term goes on when its log is lost",
        "kafka_sidecar.coordination.term.Term._on_log_lost",
        lambda _: lambda *_: None,
    ),
    "leads-on-when-deposed": Mutant(
        "a term goes on when another is elected",
        "kafka_sidecar.coordination.term.Term.depose",
        lambda _: lambda *_: None,
    ),
    "believes-at-once": Mutant(
        "one answer is enough for what has to last",
        "kafka_sidecar.loop.lasting.Lasting.is_believed",
        lambda _: lambda self, _: self._since is not None,
    ),
    "completes-in-one-write": Mutant(
        "what was pending goes together with what counts",
        "kafka_sidecar.groups.pending_offsets.Completion.parts",
        lambda _: lambda self: iter([self.records]),
    ),
    "lets-all-batches-pass": Mutant(
        "each batch is in its transaction",
        "kafka_sidecar.transactions.machine.verify",
        lambda _: lambda *_: ErrorCode.NONE,
    ),
    "leaves-what-was-prepared": Mutant(
        "a new coordinator writes no markers", "kafka_sidecar.transactions.shard.Shard.on_leading", lambda _: _leading
    ),
    "waits-for-no-member": Mutant(
        "a rebalance does not wait for members to join again",
        "kafka_sidecar.groups.classic.roster.Roster.all_joined",
        lambda _: property(lambda self: True),
    ),
    "takes-all-commits": Mutant(
        "a member of an older generation may commit",
        "kafka_sidecar.groups.classic.machine.ClassicGroup.check_commit",
        lambda _: lambda *_: ErrorCode.NONE,
    ),
    "takes-all-for-given-up": Mutant(
        "a partition is given away before its owner has given it up",
        "kafka_sidecar.groups.consumer.reconcile._still_has",
        lambda _: lambda *_: False,
    ),
    "frees-too-soon": Mutant(
        "what is not compacted yet may be taken",
        "kafka_sidecar.pulsar.entry.CompactionStats.is_held",
        lambda _: property(lambda _: True),
    ),
    "has-its-own-names": Mutant(
        "a short name means what it means to whoever reads it",
        "kafka_sidecar.coordination.home.Home.learn",
        lambda _: _take_for_own,
    ),
    "asks-nobody": Mutant(
        "a followed topic is not read to its end",
        "kafka_sidecar.internal_topics.shared_map.SharedMap._read_on",
        lambda _: _unasked,
    ),
}


def found_by(seed: int) -> str | None:
    return run_plan(drawn(seed)).violation


if __name__ == "__main__":
    sys.exit(search(sys.argv[1:], "tests.simulation.coordinators.mutants", MUTANTS, found_by, SECONDS))
