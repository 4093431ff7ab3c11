"""A coordinator of registers: the least that a term can serve."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from kafka_sidecar.coordination.codec import Codec, LegacyReader, Pair
from kafka_sidecar.coordination.home import Translation
from kafka_sidecar.coordination.shards import Shards
from kafka_sidecar.coordination.term import Term, TermState
from kafka_sidecar.coordination.term_log import TermLog
from kafka_sidecar.loop.supervised import SupervisedTask


class Register(NamedTuple):
    key: str
    value: str | None  # None: it is deleted


class _NoLegacy(LegacyReader):
    def records(self, value: bytes) -> list[Pair] | None:
        return None


class Registers(Codec[Register]):
    def write(self, record: Register) -> Pair:
        return record.key.encode(), None if record.value is None else record.value.encode()

    def read(self, key: bytes, value: bytes | None) -> Register | None:
        return Register(key.decode(), None if value is None else value.decode())

    def translated(self, record: Register, names: Translation) -> Register:
        return record  # there are no topics in it

    def topics_of(self, record: Register) -> Iterable[tuple[str, uuid.UUID | None]]:
        return []

    def legacy_reader(self) -> LegacyReader:
        return _NoLegacy()


class RegisterShard(TermState[Register]):
    def __init__(
        self, name: str, open_log: Callable[[], TermLog[Register]], on_led: Callable[[RegisterShard], None]
    ) -> None:
        self.name = name
        self.term: Term[Register] = Term(name, open_log, self)
        self.values: dict[str, str] = {}
        self._on_led = on_led

    def replay(self, record: Register, legacy: bool) -> None:
        self._apply(record)

    async def on_loaded(self) -> None: ...

    async def on_leading(self, seconds: float) -> None:
        self._on_led(self)

    def on_stored(self, record: Register) -> None:
        self._apply(record)

    @property
    def live_record_count(self) -> int:
        return len(self.values)

    def on_unloaded(self) -> None:
        self.values = {}

    def _apply(self, record: Register) -> None:
        if record.value is None:
            self.values.pop(record.key, None)
        else:
            self.values[record.key] = record.value

    async def put(self, key: str, value: str | None) -> None:
        """Stored when it returns. CoordinatorError if the term ends before."""
        self.term.check_leading()
        await self.term.store_and_wait([Register(key, value)])

    async def get(self, key: str) -> str | None:
        """What is stored when nobody else can lead."""
        self.term.check_leading()
        await self.term.prove()
        return self.values.get(key)


class RegisterCoordinator:
    def __init__(
        self, clock: Callable[[], float], awake_clock: Callable[[], float], on_led: Callable[[RegisterShard], None]
    ) -> None:
        self.shards: Shards[RegisterShard] = Shards(clock, awake_clock)
        self._on_led = on_led

    def begin(self, logs: Sequence[tuple[str, Callable[[], TermLog[Register]]]]) -> None:
        self.shards.begin([RegisterShard(name, open_log, self._on_led) for name, open_log in logs])

    def beat(self) -> None:
        self.shards.beat()

    def tasks(self) -> Sequence[SupervisedTask]:
        return ()
