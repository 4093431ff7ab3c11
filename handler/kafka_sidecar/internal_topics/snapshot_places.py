"""Where each value of one partition of `__kept_states` stands. It is read up to its end when somebody asks.

A sidecar that reads a value which nobody has written again for a month has it deleted.

Compaction may take a deletion along with the value. The value's place is then remembered until somebody fetches it and
finds another entry there.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, Protocol

from kafka_sidecar.internal_topics.compacted_topic import MARKER_KEY, CompactedTopic
from kafka_sidecar.internal_topics.snapshot_parts import Head
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.pulsar.admin import COMPACTION
from kafka_sidecar.pulsar.entry import LogStats, Position, RawEntry
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, Refused, Unavailable
from kafka_sidecar.pulsar.messages import Message, read_messages
from kafka_sidecar.pulsar.ports import Admin, Client
from kafka_sidecar.pulsar.raw_entries import NoEntryCame, Patience, raw_entries_from
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

PERMITS: Final = 64
# Time limit, at first, for a reader that delivers nothing. It is shorter than callers wait for an answer, so that they
# can still write a marker and read it.
SILENT_SECONDS: Final = 3.0
LONGEST_SILENT_SECONDS: Final = 8.0
EXPIRY_MS: Final = 30 * 24 * 3_600_000
WRITE_ANEW_MS: Final = EXPIRY_MS // 4


class Kept(NamedTuple):
    value: bytes
    written_at: int

    def age(self, now_ms: int) -> float:
        """Seconds; none where the clock of the sidecar that wrote it is ahead."""
        return max(0, now_ms - self.written_at) / 1000

    def is_old(self, now_ms: int) -> bool:
        """Whether who still uses it had better write it again."""
        return now_ms - self.written_at > WRITE_ANEW_MS


class Housekeeping(Protocol):
    """What its readers do for the topic."""

    def on_replaced(self, key: bytes, head: Head) -> None:
        """Another value stands in the place of one in parts."""
        ...

    async def delete_old(self, still_old: Callable[[], Awaitable[Iterable[bytes]]]) -> None:
        """Delete values that `still_old` names, behind all that was written before it is asked."""
        ...

    async def write_marker(self) -> None:
        """Let the topic end with an entry that compaction leaves."""
        ...


@dataclass(slots=True)
class _Known:
    """What is known of a partition. It is read again as a whole."""

    places: dict[bytes, Position] = field(default_factory=dict)  # position of the last value of each key
    heads: dict[bytes, Head] = field(default_factory=dict)  # heads of the values that are stored in parts
    old: dict[bytes, None] = field(default_factory=dict)  # keys, in order, whose value is old and to be deleted
    read_to: Position | None = None


class SnapshotPlaces:
    def __init__(self, client: Client, admin: Admin, topic: str, housekeeping: Housekeeping, clock: Clock) -> None:
        self._client = client
        self._admin = admin
        self._topic = topic
        self._housekeeping = housekeeping
        self._clock = clock
        self._known = _Known()
        self._looked_at = -math.inf  # when the last read up to the end of the partition began
        self._is_outdated = False
        self._turn = asyncio.Lock()
        self._patience = Patience(SILENT_SECONDS, LONGEST_SILENT_SECONDS)
        self.progress = 0  # number of entries and values that were read, by which callers see progress

    def of(self, key: bytes) -> Position | None:
        return self._known.places.get(key)

    def all(self) -> dict[bytes, Position]:
        """As they are now. They are replaced as a whole."""
        return self._known.places

    def head(self, key: bytes) -> Head | None:
        """Of a value in parts."""
        return self._known.heads.get(key)

    def are_outdated(self) -> None:
        """The next look reads all of them again."""
        self._is_outdated = True

    async def read_if_not_since(self, moment: float) -> bool:
        """Know where values stand that were kept before `moment`. Those who ask at the same time share one look.
        Whether it has read.
        """
        async with self._turn:
            if self._looked_at > moment and not self._is_outdated:
                return True
            begun = asyncio.get_running_loop().time()
            known = _Known() if self._is_outdated else self._known
            self._is_outdated = False
            try:
                stats = await self._stats()
                if known.read_to is not None and not stats.may_hold(known.read_to):
                    known = _Known()  # retention has removed that entry, or the topic was deleted and created again
                has_read = await self._read_on(known, stats.last)
            except BaseException:
                self._is_outdated = self._is_outdated or known is not self._known
                raise
            self._known = known
            self._looked_at = begun
            return has_read

    async def value_at(self, place: Position, key: bytes) -> Kept | None:
        async with aclosing(raw_entries_from(CompactedTopic(self._client, self._topic), place, 1)) as entries:
            for message in _messages(await anext(entries)):
                if message.key == key and message.value is not None:
                    self.progress += 1
                    return Kept(message.value, message.timestamp)
        # Compaction has removed this value: either its key has a later value, or its key was deleted and the tombstone
        # is removed too.
        self._is_outdated = True
        return None

    async def _stats(self) -> LogStats:
        """Of a log that retention has emptied what is compacted is left: a reader that goes to the last entry has to
        find one.
        """
        stats = await self._admin.topics.compaction_stats(self._topic)
        if stats.log.last is None and stats.compacted_to is not None:
            await self._write_marker()
            return await self._admin.topics.log_stats(self._topic)
        return stats.log

    async def _read_on(self, known: _Known, last: Position | None) -> bool:
        """To the last entry. Whether there was something to read."""
        if last is None or (known.read_to is not None and last <= known.read_to):
            return False
        try:
            await self._read_up_to(last, known)
        except NoEntryCame:
            compacted_to = await self._admin.subscriptions.acknowledged(self._topic, COMPACTION)
            if compacted_to is None or compacted_to < last:
                raise
            # The last entry may be a tombstone that compaction has removed. Its writer lost its connection before it
            # wrote the marker behind it.
            await self._write_marker()
            await self._read_up_to((await self._admin.topics.log_stats(self._topic)).last or last, known)
        try:
            if known.old:
                await self._housekeeping.delete_old(partial(self._still_old, known))
        except PulsarError as error:
            log.info("%s is read, and what is old can't be deleted now: %s", self._topic, error)
        return True

    async def _write_marker(self) -> None:
        """A sidecar that may not write the marker can't tell a deletion from slow storage."""
        try:
            await self._housekeeping.write_marker()
        except (NotPermitted, Refused) as error:
            raise Unavailable(
                f"{self._topic} can't be read to its end, and no entry can be written behind it: {error}"
            ) from error

    async def _still_old(self, known: _Known) -> Iterable[bytes]:
        last = (await self._admin.topics.log_stats(self._topic)).last
        if last is not None:
            await self._read_up_to(last, known)
        old, known.old = known.old, {}
        return old

    async def _read_up_to(self, last: Position, known: _Known) -> None:
        if known.read_to is not None and last <= known.read_to:
            return
        oldest = self._clock.wall() - EXPIRY_MS
        begin = None if known.read_to is None else known.read_to.after()
        topic = CompactedTopic(self._client, self._topic, self._patience)
        async with aclosing(raw_entries_from(topic, begin, PERMITS)) as entries:
            while known.read_to is None or known.read_to < last:
                entry = await anext(entries)
                self.progress += 1
                for message in _messages(entry):
                    if message.key is not None and message.key != MARKER_KEY:
                        self._note(known, message.key, message, entry.position, oldest)
                known.read_to = entry.position

    def _note(self, known: _Known, key: bytes, message: Message, position: Position, oldest: int) -> None:
        if message.value:
            known.places[key] = position
        else:
            known.places.pop(key, None)
        known.old.pop(key, None)
        if message.value and message.timestamp < oldest:
            known.old[key] = None
        head = Head.decode(message.value) if message.value else None
        before = known.heads.get(key)
        if before is not None and before != head:
            self._housekeeping.on_replaced(key, before)
        if head is None:
            known.heads.pop(key, None)
        else:
            known.heads[key] = head


def _messages(entry: RawEntry) -> list[Message]:
    try:
        return read_messages(entry.message_metadata, entry.payload)
    except Exception as error:  # any client may have written invalid bytes to the topic
        metrics.UNREADABLE_ENTRIES.inc()
        log.warning("entry %s of the snapshots is passed over: %s", entry.position, error)
        return []
