"""A second cluster: Pulsar's replicator copies the log, and whoever reads there finds what the first one holds."""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterable, Sequence
from dataclasses import replace
from typing import Final

from kafka_sidecar.pulsar.entry import RawEntry
from tests.model.topic import is_marker
from tests.simulation.chance import Chance
from tests.simulation.clients import Consumer, Network, ReadUncommitted
from tests.simulation.history import History, Violation
from tests.simulation.loop import SimulatedLoop
from tests.simulation.node import Node
from tests.simulation.plan import WINDOW_ENTRIES, Bounds, Client, ClientKind
from tests.simulation.sidecar import Sidecar
from tests.simulation.snapshot_topic import SnapshotLog
from tests.simulation.stored import batches_of, values_in
from tests.simulation.topic import SimulatedTopic
from tests.support.replicator import copy_one, is_copied

READ_SECONDS: Final = 5.0
PATIENCE_SECONDS: Final = 60.0
TRIMS: Final = 4


class SecondCluster:
    def __init__(self, loop: SimulatedLoop, chance: Chance, bounds: Bounds) -> None:
        chance = chance.apart("west")
        self._loop = loop
        self._chance = chance
        self._draw = chance.of("replicator")
        # What is copied once more stands within the window. Who keeps nothing serves no clients, and does not announce
        # transactions.
        bounds = replace(
            bounds,
            keeps=True,
            replay_entries=WINDOW_ENTRIES,
            lost_receipts=0.0,
            refused_sends=0.0,
            failed_questions=0.0,
        )
        self._topic = SimulatedTopic(loop, chance, bounds)
        self._topic.is_calm = True
        self._kept = SnapshotLog(loop, chance, bounds)
        self._kept.is_calm = True
        self._bounds = bounds
        self.nodes = [self._new_node("west")]
        self._network = Network(loop, self.nodes, chance, bounds, {})
        self._network.is_calm = True
        self._history = History()
        self._aborted: Container[bytes] = ()
        self._beheaded: Iterable[bytes] = ()

    async def check(self, entries: Sequence[RawEntry], expected: Sequence[bytes], aborted: Container[bytes]) -> None:
        """`expected`: what the first cluster's readers are given, in order. What was `aborted` may be hidden here or
        there.
        """
        self._aborted, self._beheaded = aborted, _behind_a_missing_first(entries)
        expected = [value for value in expected if value not in aborted]
        along = self._consumer("west-along")
        await self._copy([one for one in entries if is_copied(one)], along)
        await self._check_reader(along, self.nodes[0], expected)
        self.nodes.append(self._new_node("west-fresh"))
        for node in self.nodes:
            await self._check_reader(self._consumer(f"west-last-{node.name}"), node, expected)

    async def check_trimmed(self) -> None:
        """Retention takes some ledgers. What was shown behind them is shown to who opens the partition then."""
        self._history.lost_its_reason = lambda _: True
        ledgers = sorted({entry.position.ledger for entry in self._topic.present})[1:]
        for number, first in enumerate(sorted(self._draw.sample(ledgers, min(TRIMS, len(ledgers))))):
            self._topic.trimmed += sum(entry.position.ledger < first for entry in self._topic.present)
            self._topic.note_index()
            node = self._new_node(f"west-trimmed-{number}")
            self.nodes.append(node)
            await self._read_to_end(self._consumer(f"west-left-{number}"), node)

    def _new_node(self, name: str) -> Node:
        return Node(Sidecar(self._loop, self._chance, self._kept, self._bounds, name), self._topic)

    def _consumer(self, name: str) -> Consumer:
        return Consumer(
            self._network, Client(name, ClientKind.CONSUMER), self._history, self._chance, ReadUncommitted()
        )

    async def _copy(self, entries: Sequence[RawEntry], along: Consumer) -> None:
        """In order, from where the replicator's cursor was stored: now and then it begins there again."""
        draw, at = self._draw, 0
        rolls = draw.choice((0.01, 0.1))
        while at < len(entries):
            for entry in entries[at : at + draw.choice((1, 3, 20))]:
                if draw.random() < (0.5 if _was_sent_again(entry) else rolls):
                    self._topic.roll()
                copy_one(entry, self._topic, "east", names_entries=not self._bounds.names_markers)
                at += 1
            if draw.random() < 0.15:
                at -= draw.randint(1, min(at, 30))
            if draw.random() < 0.05:
                self._topic.mark()
            if draw.random() < 0.3:
                await along.read_through(self.nodes[0], 0.5)
            await asyncio.sleep(draw.choice((0.0, 0.001, 0.05)))

    async def _read_to_end(self, reader: Consumer, node: Node) -> None:
        end = max(((one.last_index or 0) + 1 for one in self._topic.entries if not is_marker(one)), default=0)
        reached, until = reader.offset, self._loop.time() + PATIENCE_SECONDS
        while reader.offset < end:
            await reader.read_through(node, READ_SECONDS)
            if reader.offset > reached:
                reached, until = reader.offset, self._loop.time() + PATIENCE_SECONDS
            elif self._loop.time() > until:
                raise Violation(
                    f"in the second cluster nothing comes through {node.name} at offset {reader.offset} of {end}"
                )
            await asyncio.sleep(0.1)

    async def _check_reader(self, reader: Consumer, node: Node, expected: Sequence[bytes]) -> None:
        await self._read_to_end(reader, node)
        found = [
            value
            for _, value in sorted(self._history.seen.values.items())
            if value is not None and value not in self._aborted
        ]
        # One that the broker of the first cluster refused alone may come behind what it hid for that: here nobody knew
        # (ADR 25). What it hid is shown here also if its producer has given it up, but once.
        given_up = set(found).difference(expected).intersection(self._beheaded)
        if sorted(found) != sorted([*expected, *given_up]):
            place = next(
                (at for at, pair in enumerate(zip(found, expected, strict=False)) if pair[0] != pair[1]),
                min(len(found), len(expected)),
            )
            there = f"{found[place : place + 3]} of {len(found)}"
            raise Violation(
                f"through {node.name} the second cluster gives {there}, not {expected[place : place + 3]} of "
                f"{len(expected)}"
            )


def _behind_a_missing_first(entries: Sequence[RawEntry]) -> frozenset[bytes]:
    """The values of producers of which the log does not have the first batch first: a broker has refused that one
    alone.
    """
    begun: dict[tuple[int, int], bool] = {}  # whether it begins with its first batch, by producer and epoch
    values: set[bytes] = set()
    for entry in entries:
        for batch in batches_of(entry):
            if (
                batch.producer >= 0
                and not batch.is_control
                and not begun.setdefault((batch.producer, batch.epoch), batch.first == 0)
            ):
                values.update(values_in(batch))
    return frozenset(values)


def _was_sent_again(entry: RawEntry) -> bool:
    """Together with others, maybe: retention may then take some of them."""
    return any(pair.key == b"again" for pair in entry.message_metadata.properties)
