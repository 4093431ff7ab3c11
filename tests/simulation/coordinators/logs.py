"""What an internal log holds by its entries, of which the model forgets none: nothing is compacted for who judges."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import Any, NamedTuple

from kafka_sidecar.coordination.shards import shard_of
from kafka_sidecar.coordination.term_log import HOME_KEY
from kafka_sidecar.coordination.term_log import MARKER_KEY as TERM_MARKER
from kafka_sidecar.internal_topics.compacted_topic import MARKER_KEY as FOLLOWED_MARKER
from tests.model.cluster import Cluster
from tests.model.compaction import messages_in
from tests.model.internal_log import InternalLog
from tests.simulation.history import Violation

State = dict[str, str]
# What a message says of a key; None where that is nothing.
Read = Callable[[bytes, bytes | None], tuple[str, str | None] | None]


class Written(NamedTuple):
    key: str
    value: str | None  # None: it is deleted


def as_text(key: bytes, value: bytes | None) -> tuple[str, str | None]:
    return key.decode(), value.decode() if value else None


class JudgedLog:
    """Entry by entry, as they are stored."""

    def __init__(self, log: InternalLog, read: Read) -> None:
        self._log = log
        self._read = read
        self._looked_at = 0
        self.written: list[Written] = []  # in order
        self._times: list[float] = []  # when each was written, in seconds
        self.markers: dict[str, int] = {}  # the first marker of each writer: how much was written before
        self.home = ""
        self.writer = ""  # of the term that the last marker began

    def look(self) -> None:
        for entry in self._log.entries[self._looked_at :]:
            writer = entry.message_metadata.producer_name.decode()
            for message in messages_in(entry):
                key = message.key or b""
                if key == TERM_MARKER:
                    self.markers.setdefault(writer, len(self.written))
                    self.writer = writer
                elif key == HOME_KEY:
                    self._note_home((message.value or b"").decode())
                elif key != FOLLOWED_MARKER and (told := self._read(key, message.value or None)) is not None:
                    self.written.append(Written(*told))
                    self._times.append((entry.broker_timestamp or 0) / 1000)
                if self.writer and writer != self.writer:
                    raise Violation(f"{writer} has written entry {entry.position} in the term of {self.writer}")
        self._looked_at = len(self._log.entries)

    def _note_home(self, namespace: str) -> None:
        """What short names mean. What is stored can't mean something else later."""
        if self.home not in ("", namespace) or (self.written and not self.home):
            raise Violation(
                f"short names are said to be of {namespace}, after {len(self.written)} records, and were of {self.home}"
            )
        self.home = namespace

    @property
    def count(self) -> int:
        self.look()
        return len(self.written)

    def count_at(self, time: float) -> int:
        self.look()
        return bisect_right(self._times, time)

    def state(self, count: int) -> State:
        """What counts when so much is written."""
        found: State = {}
        for key, value in self.written[:count]:
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value
        return found

    def held(self, key: str, begin: int, end: int) -> list[str | None]:
        """The values that a key had, from when `begin` was written until `end` was."""
        values = [self.state(begin).get(key)]
        values += [value for of, value in self.written[begin:end] if of == key]
        return values


class JudgedTopic:
    def __init__(self, cluster: Cluster, topic: str, partitions: int, read: Read = as_text) -> None:
        self.topic = topic
        self._cluster = cluster
        self._partitions = partitions
        self._read = read
        self._logs: dict[int, JudgedLog] = {}

    @property
    def is_there(self) -> bool:
        return self.topic in self._cluster.topics

    def log(self, number: int) -> JudgedLog:
        if number not in self._logs:
            self._logs[number] = JudgedLog(self._cluster.log(f"{self.topic}-partition-{number}"), self._read)
        return self._logs[number]

    def of(self, key: str) -> JudgedLog:
        return self.log(shard_of(key, self._partitions))

    def count_of(self, key: str) -> int:
        return self.of(key).count if self.is_there else 0

    def check_loaded(self, name: str, term: Any, found: State) -> None:
        """What a term was loaded with is what its log held before its marker."""
        judged = self.log(int(name.rpartition("-")[2]))
        judged.look()
        writer = term._term_log._producer.name
        before = judged.markers.get(writer)
        if before is None:
            raise Violation(f"{name} is led by {writer}, whose marker is not in the log")
        if found != judged.state(before):
            raise Violation(f"{name} was loaded as {found} by {writer}, and is {judged.state(before)}")
