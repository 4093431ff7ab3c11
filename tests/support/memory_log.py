"""The model of Pulsar (tests/model) as unit tests have it: nothing takes time, and what goes wrong is scripted."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any, cast

from kafka_sidecar.partition.log.formats import KAFKA
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.events import ProducerEvents
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.records import read_produced
from tests.model.conduct import Refusal
from tests.model.connections import Writer
from tests.model.topic import Topic
from tests.model.view import View


class Script:
    """What the network and the broker do. A test changes it as it goes on."""

    def __init__(self) -> None:
        self.swallow_receipts = False
        self.refuse_sends = 0
        self.refuse_with = 2
        self.refuse_saying = "scripted"
        self.hold_sends = False  # a slow connection: what is sent lands when it is let go
        self.held: list[Callable[[], None]] = []
        self.read_delay = 0.0
        self.hold_dispatch: list[Callable[[], None]] | None = None  # where what is to be handed out waits, if it does
        self.at_once = sys.maxsize  # entries that a reader is given, then it waits for `read_delay`
        self.orphans = 0  # so many of the next readers are forgotten by the broker
        self.clock_ms = 1_000  # the broker's, but for a millisecond for each entry
        self.entries_made = 0

    # --- the broker

    def now_ms(self) -> int:
        self.entries_made += 1
        return self.clock_ms + self.entries_made - 1

    def store(self, stored: Callable[[], None]) -> None:
        stored()

    def recovered(self, count: int) -> int:
        return count

    def forgets_reader(self) -> bool:
        forgets = self.orphans > 0
        self.orphans -= forgets
        return forgets

    # --- who asks

    def way(self, name: str) -> ScriptedWay:
        return ScriptedWay(self)

    async def ask(self) -> None:
        await asyncio.sleep(0)

    async def hear(self) -> None: ...


class ScriptedWay:
    def __init__(self, script: Script) -> None:
        self._script = script

    @property
    def entries_at_once(self) -> int:
        return self._script.at_once

    def up(self, arrive: Callable[[], None]) -> None:
        arrive()

    def send(self, arrive: Callable[[], None], payload: bytes | bytearray, stored: bytes) -> None:
        if self._script.hold_sends:
            self._script.held.append(arrive)
        else:
            # The socket holds the sidecar's bytes until the turn is over: nobody may have changed them by then.
            asyncio.get_running_loop().call_soon(_check_unchanged, payload, stored)
            arrive()

    def down(self, arrive: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(arrive)

    def answer(self, tell: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(tell)

    def end(self, tell: Callable[[], None]) -> None:
        tell()

    def dispatch(self, hand_out: Callable[[], None]) -> None:
        if self._script.hold_dispatch is not None:
            self._script.hold_dispatch.append(hand_out)
        else:
            asyncio.get_running_loop().call_later(self._script.read_delay, hand_out)

    def refusal(self) -> Refusal | None:
        script = self._script
        if not script.refuse_sends:
            return None
        script.refuse_sends -= 1
        return Refusal(script.refuse_with, script.refuse_saying, ends_writer=False)

    def loses_receipt(self) -> bool:
        return self._script.swallow_receipts

    def is_unknown_at_once(self) -> bool:
        return True

    def lands_though_unknown(self) -> bool:
        """What is held may land as late as a test wants."""
        return True


class MemoryLog(Script, Topic, View):
    """One partition's topic, its script, and the log as the writer `writer_name` has it."""

    def __init__(self, writer_name: str = "kafka-sidecar-test", **state: Any) -> None:
        """`state`: attributes that begin otherwise."""
        Script.__init__(self)
        Topic.__init__(self, self, names_markers=True)
        View.__init__(self, self, writer_name, self)
        self._foreign = -1
        for name, value in state.items():
            assert hasattr(self, name), name
            setattr(self, name, value)

    def named(self, writer_name: str) -> EntryLog:
        """The same log as another sidecar sees it."""
        return cast(EntryLog, _Named(self, writer_name))

    def write(self, data: bytes) -> Position:
        """A batch of some other sidecar's, of which nobody here has heard."""
        self._foreign += 1
        metadata = MessageMetadata(producer_name=b"kafka-sidecar-before", sequence_id=self._foreign, publish_time=1)
        metadata.MergeFromString(KAFKA.fields)
        return self.append(metadata, read_produced(data).offset_count, data)

    def let_go(self) -> None:
        held, self.held = self.held, []
        for land in held:
            land()

    def trim(self, entries: int) -> None:
        self.trimmed = entries
        self.note_index()


class _Named:
    """Whatever a test replaces in the log counts here as well."""

    def __init__(self, log: MemoryLog, writer_name: str) -> None:
        self._log = log
        self._name = writer_name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def writer(self, events: ProducerEvents) -> Writer:
        await self._log.ask()
        return self._log.writer_as(self._name, events, self._log)


def _check_unchanged(payload: bytes | bytearray, stored: bytes) -> None:
    assert bytes(payload) == stored, "what is written to the broker was changed before it had left"
